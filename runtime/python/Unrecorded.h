// Wraps a PyTorch op in a callable that bypasses autograd for calls without gradients.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_PYTHON_UNRECORDED_H
#define KPKG_RUNTIME_PYTHON_UNRECORDED_H

#include <nanobind/nanobind.h>

namespace kpkg::python {

/// Adds the type `Unrecorded(target, record, tensor, parameter, is_grad_enabled, count_function_modes, forward_mode,
/// casts)`. An instance chooses for each call:
///
/// * It calls `target(*args, **kwargs)` below autograd if nothing is to be recorded, and no transform, dispatch mode or
///   trace is active. Nothing is recorded if no argument is a `tensor` with a true `requires_grad`, or if
///   is_grad_enabled() is false.
/// * It calls `record(self, *args)` if gradients are recorded and only autograd and autocast have to see the call. Then
///   all arguments are positional, tensors are exactly of the types `tensor` and `parameter`, and no modes and no
///   transforms are active.
/// * It calls `target(*args, **kwargs)` as it is in all other cases.
///
/// `forward_mode` is the dictionary of torch.autograd.forward_ad; calls within a level of it go to `target`.
///
/// `casts` is None if autocast does not change the op, else a pair for the CPU and for a GPU. An entry is the dtype
/// that floating-point arguments get under autocast, or a callable that returns it, or None. With None, arguments keep
/// their dtype, and `target` gets calls whose dtypes differ.
///
/// Also adds `use_dispatch_state`. Until it succeeds, each call goes to `target`.
void defineUnrecorded(nanobind::module_ &module);

} // namespace kpkg::python

#endif // KPKG_RUNTIME_PYTHON_UNRECORDED_H
