// Calls ops with host tensors of PyTorch directly, without its dispatcher.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_TORCH_DIRECT_H
#define KPKG_RUNTIME_TORCH_DIRECT_H

#include <Python.h>

namespace kpkg::torch_nodes {

/// Adds the type `DirectCall(next, op, positional)`, a callable. Returns false with a Python exception set.
///
/// `op` is the address of a kpkg_op that does not write to arguments. `positional` is how many of its arguments may be
/// given by position. A call runs the op directly if PyTorch's dispatcher would only run it. Arguments must have
/// exactly the schema's types, tensors must be dense and on the host, and autograd must have nothing to record. No
/// mode, transform, autocast, profiler or tracer may be active.
///
/// Every other call goes to `next` with the same arguments; if `next` is None, the result is NotImplemented. So does a
/// call that no kernel of a package can run.
///
/// `use(op)` changes the op to one of the same schema, or with 0 to none; then every call goes to `next`. `__wrapped__`
/// is `next`.
bool defineDirect(PyObject *module);

} // namespace kpkg::torch_nodes

#endif // KPKG_RUNTIME_TORCH_DIRECT_H
