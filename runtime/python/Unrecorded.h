// The callable that stands before a PyTorch op and spares calls without gradients the way through autograd.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_PYTHON_UNRECORDED_H
#define KPKG_RUNTIME_PYTHON_UNRECORDED_H

#include <nanobind/nanobind.h>

namespace kpkg::python {

/// Adds the type `Unrecorded(target, record, tensor, parameter, is_grad_enabled, count_function_modes, forward_mode,
/// casts)`. A call of it is `target(*args, **kwargs)`, made below autograd when none of the arguments is a `tensor`
/// with a true `requires_grad` or is_grad_enabled() is false, and else `record(self, *args)` where nothing but autograd
/// and autocast has to see it: tensors are of the types `tensor` and `parameter` themselves, and there are no modes and
/// no transforms. `forward_mode` is the dictionary of torch.autograd.forward_ad, whose level is looked at. `casts` says
/// what floating-point arguments become under autocast, on the CPU and on a GPU: a dtype, a callable that gives one, or
/// None, which leaves them unless their dtypes differ; it is None where autocast does nothing to the op.
///
/// Adds `use_dispatch_state`, without which each call goes to `target`.
void defineUnrecorded(nanobind::module_ &module);

} // namespace kpkg::python

#endif // KPKG_RUNTIME_PYTHON_UNRECORDED_H
