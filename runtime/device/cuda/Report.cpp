// Implements asserts and prints of kernels on a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/Report.h"

#include <cstddef>
#include <cstring>
#include <kpkg/kernel_abi.h>
#include <span>
#include <utility>

namespace kpkg::cuda {

static constexpr size_t headerWords = offsetof(KpkgGpuReport, messages) / sizeof(uint64_t);
/// Words of messages per launch: 64 KiB.
static constexpr size_t messageWords = 8192;

Result<Report> Report::prepare(bool hasPrints, int32_t device, Stream stream) {
  auto capturing = isCapturing(stream);
  if (!capturing)
    return capturing.error();
  if (*capturing)
    return Error{
        KPKG_ERROR_CAPTURE,
        "it has asserts or prints, which the host looks at after each launch: it cannot be captured into a graph",
        {},
        {},
        {}};
  KpkgGpuReport header = {};
  header.capacity = hasPrints ? messageWords : 0;
  std::vector<uint64_t> words(headerWords + header.capacity, 0);
  std::memcpy(words.data(), &header, headerWords * sizeof(uint64_t));
  auto block = allocate(device, int64_t(words.size() * sizeof(uint64_t)), stream);
  if (!block)
    return block.error();
  Report report(stream, *block, std::move(words));
  if (Status status =
          copyToDevice(report.block, report.words.data(), int64_t(report.words.size() * sizeof(uint64_t)), stream);
      !status)
    return status.error();
  return report;
}

Report::Report(Report &&other) noexcept
    : stream(other.stream), block(std::exchange(other.block, 0)), words(std::move(other.words)) {}

Report::~Report() {
  static_cast<void>(release(block, stream)); // a destructor cannot report errors
}

Status Report::finish(const device::PrintSink &prints, device::LaunchReport &report) {
  Status status = copyToHost(words.data(), block, int64_t(words.size() * sizeof(uint64_t)), stream);
  if (status)
    status = synchronize(stream);
  if (!status)
    return status;
  KpkgGpuReport header;
  std::memcpy(&header, words.data(), headerWords * sizeof(uint64_t));
  std::span<const uint64_t> messages = std::span(words).subspan(headerWords);
  while (!messages.empty() && messages[0] != 0) {
    uint64_t format = (messages[0] >> 32) - 1;
    size_t count = size_t(uint32_t(messages[0]));
    if (format > INT32_MAX || count >= messages.size())
      break; // not written by a kpkg kernel
    prints.print(prints.context, int32_t(format), messages.data() + 1, int32_t(count));
    messages = messages.subspan(1 + count);
  }
  report.lostMessages = header.lost;
  report.failed = header.failed;
  return {};
}

} // namespace kpkg::cuda
