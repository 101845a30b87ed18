// The callable that stands before a PyTorch op and spares calls without gradients the way through autograd.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_PYTHON_UNRECORDED_H
#define KPKG_RUNTIME_PYTHON_UNRECORDED_H

#include <nanobind/nanobind.h>

namespace kpkg::python {

/// Adds the type `Unrecorded(target, tensor, is_grad_enabled, scope)`. A call of it is `target(*args, **kwargs)`, made within
/// `scope()`, a context manager, when none of the arguments is a `tensor` with a true `requires_grad`, or is_grad_enabled() is false.
void defineUnrecorded(nanobind::module_ &module);

} // namespace kpkg::python

#endif // KPKG_RUNTIME_PYTHON_UNRECORDED_H
