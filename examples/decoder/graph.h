// Declares CUDA graphs: work of a stream, recorded once and replayed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef DECODER_GRAPH_H
#define DECODER_GRAPH_H

#include <kpkg/device.hpp>

#include <functional>

namespace decoder {

/// Recorded work. It finds its inputs at the addresses of the recording.
class Graph {
public:
  /// Records what `work` queues on the stream, and runs nothing. Throws std::runtime_error if the driver refuses.
  Graph(const kpkg::Stream &stream, const std::function<void()> &work);
  ~Graph();
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  /// Queues the work on the stream.
  void replay() const;

private:
  kpkg::Stream stream;
  void *executable = nullptr;
};

} // namespace decoder
#endif
