// Declares asserts and prints of kernels on a GPU: the block that they write, and its evaluation on the host.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_REPORT_H
#define KPKG_CUDA_REPORT_H

#include "runtime/device/Launch.h"
#include "runtime/device/cuda/Memory.h"

#include <vector>

namespace kpkg::cuda {

/// The block of one launch, on the launch's stream. The device's context is current.
class Report {
public:
  /// Refuses while the stream is captured into a graph, because the host must read the block after the kernel.
  static Result<Report> prepare(bool hasPrints, int32_t device, Stream stream);
  Report(Report &&other) noexcept;
  Report &operator=(Report &&) = delete;
  ~Report();

  /// The block's address in GPU memory.
  uint64_t address() const { return block; }
  /// Waits for the stream. Passes prints on, and fills `report`.
  Status finish(const device::PrintSink &prints, device::LaunchReport &report);

private:
  Report(Stream stream, uint64_t block, std::vector<uint64_t> words)
      : stream(stream), block(block), words(std::move(words)) {}

  Stream stream;
  uint64_t block;
  std::vector<uint64_t> words;
};

} // namespace kpkg::cuda
#endif
