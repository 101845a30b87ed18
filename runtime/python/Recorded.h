// Saves and differentiates a recorded call of an op: the functions of autograd's node.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_PYTHON_RECORDED_H
#define KPKG_RUNTIME_PYTHON_RECORDED_H

#include <nanobind/nanobind.h>

namespace kpkg::python {

/// Adds the types `GradientPlan` and `Recorder`, and the function `needed`.
///
/// * A GradientPlan says how to differentiate an op whose package has its gradient.
/// * A Recorder has the functions of a subclass of torch.autograd.Function that records calls of one op. A node follows
///   the `plan` that its recorder had at the time of the call.
/// * A plan is a GradientPlan, or an object with `save(node, arguments, results)` and `backward(node, gradients)`. Its
///   `backward` returns a gradient or None for each input of the node.
/// * The inputs of a node are a callable that makes the call, and the op's arguments.
/// * `needed(node)` returns a tuple of bools: the inputs whose gradients this run of the backward asks for.
void defineRecorded(nanobind::module_ &module);

} // namespace kpkg::python

#endif // KPKG_RUNTIME_PYTHON_RECORDED_H
