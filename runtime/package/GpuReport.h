// Declares asserts and prints of kernels on a GPU: the block that they write, and its evaluation on the host.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_GPUREPORT_H
#define KPKG_PACKAGE_GPUREPORT_H

#include "runtime/device/cuda/Memory.h"
#include "runtime/package/Tables.h"

namespace kpkg::package {

inline bool reports(const Instance &instance) { return !instance.asserts.empty() || !instance.prints.empty(); }

/// The block of one launch, on the launch's stream. The device's context is current.
class GpuReport {
public:
  /// Refuses while the stream is captured into a graph, because the host must read the block after the kernel.
  static Result<GpuReport> prepare(const Instance &instance, int32_t device, cuda::Stream stream);
  GpuReport(GpuReport &&other) noexcept;
  GpuReport &operator=(GpuReport &&) = delete;
  ~GpuReport();

  /// The block's address in GPU memory.
  uint64_t address() const { return block; }
  /// Waits for the stream. Logs printed text. The error names the failed assert, without the instance's name.
  Status finish();

private:
  GpuReport(const Instance &instance, cuda::Stream stream, uint64_t block, std::vector<uint64_t> words)
      : instance(&instance), stream(stream), block(block), words(std::move(words)) {}

  const Instance *instance;
  cuda::Stream stream;
  uint64_t block;
  std::vector<uint64_t> words;
};

} // namespace kpkg::package
#endif
