// The node that autograd keeps of a recorded call of an op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_PYTHON_RECORDED_H
#define KPKG_RUNTIME_PYTHON_RECORDED_H

#include <nanobind/nanobind.h>

namespace kpkg::python {

/// Adds the types `GradientPlan`, how an op with a gradient in its package is differentiated, and `Recorder`: the
/// functions of a subclass of torch.autograd.Function that records calls of one op. They do what the recorder's `plan`
/// says when the call is made: a GradientPlan, or an object with `save(node, arguments, results)` and `backward(node,
/// gradients)`, which gives a gradient or None for each input of the node. Inputs of the node are a callable that makes
/// the call, and the op's arguments.
void defineRecorded(nanobind::module_ &module);

} // namespace kpkg::python

#endif // KPKG_RUNTIME_PYTHON_RECORDED_H
