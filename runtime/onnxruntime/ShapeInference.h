// Tells ONNX Runtime the dtypes and shapes of a node's results, also where extents of inputs have only names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_ONNXRUNTIME_SHAPEINFERENCE_H
#define KPKG_RUNTIME_ONNXRUNTIME_SHAPEINFERENCE_H

#include "runtime/onnxruntime/OrtApi.h"

#include <kpkg/kpkg.hpp>

namespace kpkg::ort {

/// Sets the dtypes and shapes of the results of a node that calls the op. Sets nothing if the rank of an input is
/// unknown, or if the op refuses the inputs: the call then says why. Throws Failure if a function of ONNX Runtime
/// fails.
///
/// An extent without a number is probed: the op tells the shapes for several numbers in its place. Extents of results
/// that follow it have its name. Those that change in another way have a name of their own.
void inferShapes(const Api &api, const Op &op, ShapeContext *context);

} // namespace kpkg::ort

#endif // KPKG_RUNTIME_ONNXRUNTIME_SHAPEINFERENCE_H
