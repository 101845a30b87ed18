// Whether autograd's engine, which runs now, goes on to a node.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_PYTHON_EXECUTED_H
#define KPKG_RUNTIME_PYTHON_EXECUTED_H

#include <nanobind/nanobind.h>

namespace kpkg::python {

/// Whether the engine goes on to `node`, an entry of `next_functions` of the node that it runs now on this thread. True
/// also for leaves whose gradient torch.autograd.grad is asked for. Throws python_error.
bool isExecuted(nanobind::handle node);

} // namespace kpkg::python

#endif // KPKG_RUNTIME_PYTHON_EXECUTED_H
