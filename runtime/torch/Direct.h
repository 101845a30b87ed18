// Calls of ops with plain PyTorch tensors of the host, without PyTorch's dispatcher.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_TORCH_DIRECT_H
#define KPKG_RUNTIME_TORCH_DIRECT_H

#include <Python.h>

namespace kpkg::torch_nodes {

/// Adds the type `DirectCall(next, op, positional)`, a callable. `op` is the address of a kpkg_op that writes
/// into no argument, `positional` how many of its arguments may be given by position. A call runs the op at once when
/// PyTorch's dispatcher would do nothing but run it: arguments have exactly the types of the schema, tensors are dense
/// and on the host, autograd has nothing to record, and no mode, transform, autocast, profiler or tracer is to see the
/// call. Every other call is `next`'s, called with the same arguments; where `next` is None, its result is
/// NotImplemented. So is a call that no kernel of a package can run.
///
/// `use(op)` changes the op to one of the same schema, or with 0 to none, and then every call is `next`'s.
/// `__wrapped__` is `next`.
///
/// False with a Python exception set.
bool defineDirect(PyObject *module);

} // namespace kpkg::torch_nodes

#endif // KPKG_RUNTIME_TORCH_DIRECT_H
