// Declares graphs that are captured from a stream.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_GRAPH_H
#define KPKG_CUDA_GRAPH_H

#include "runtime/device/cuda/Driver.h"

namespace kpkg::cuda {

/// Begins a capture of the stream's work. Other threads may call the driver meanwhile.
Status beginCapture(Stream stream);
/// Ends the capture, and prepares the graph for replays.
Result<std::unique_ptr<device::Graph>> endCapture(Stream stream);

} // namespace kpkg::cuda
#endif
