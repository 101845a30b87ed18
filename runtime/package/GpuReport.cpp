// Implements asserts and prints of kernels on a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/GpuReport.h"
#include "runtime/package/Log.h"
#include "runtime/package/PrintFormat.h"

#include <cstddef>
#include <cstring>
#include <kpkg/kernel_abi.h>
#include <span>
#include <utility>

namespace kpkg::package {

static constexpr size_t headerWords = offsetof(KpkgGpuReport, messages) / sizeof(uint64_t);
/// Words of messages per launch: 64 KiB.
static constexpr size_t messageWords = 8192;

Result<GpuReport> GpuReport::prepare(const Instance &instance, int32_t device, cuda::Stream stream) {
  auto capturing = cuda::isCapturing(stream);
  if (!capturing)
    return capturing.error();
  if (*capturing)
    return Error{
        KPKG_ERROR_CAPTURE,
        "it has asserts or prints, which the host looks at after each launch: it cannot be captured into a graph",
        {},
        instance.label,
        {}};
  KpkgGpuReport header = {};
  header.capacity = instance.prints.empty() ? 0 : messageWords;
  std::vector<uint64_t> words(headerWords + header.capacity, 0);
  std::memcpy(words.data(), &header, headerWords * sizeof(uint64_t));
  auto block = cuda::allocate(device, int64_t(words.size() * sizeof(uint64_t)), stream);
  if (!block)
    return block.error();
  GpuReport report(instance, stream, *block, std::move(words));
  if (Status status = cuda::copyToDevice(report.block, report.words.data(),
                                         int64_t(report.words.size() * sizeof(uint64_t)), stream);
      !status)
    return status.error();
  return report;
}

GpuReport::GpuReport(GpuReport &&other) noexcept
    : instance(other.instance), stream(other.stream), block(std::exchange(other.block, 0)),
      words(std::move(other.words)) {}

GpuReport::~GpuReport() {
  static_cast<void>(cuda::release(block, stream)); // a destructor cannot report errors
}

Status GpuReport::finish() {
  Status status = cuda::copyToHost(words.data(), block, int64_t(words.size() * sizeof(uint64_t)), stream);
  if (status)
    status = cuda::synchronize(stream);
  if (!status)
    return status;
  KpkgGpuReport header;
  std::memcpy(&header, words.data(), headerWords * sizeof(uint64_t));
  std::span<const uint64_t> messages = std::span(words).subspan(headerWords);
  while (!messages.empty() && messages[0] != 0) {
    size_t format = size_t(messages[0] >> 32) - 1, count = size_t(uint32_t(messages[0]));
    if (format >= instance->prints.size() || count >= messages.size())
      break; // not written by a kpkg kernel
    log(KPKG_LOG_PRINT, formatPrint(instance->prints[format], messages.subspan(1, count)));
    messages = messages.subspan(1 + count);
  }
  if (header.lost)
    log(KPKG_LOG_PRINT, "(" + std::to_string(header.lost) + " more messages of " + instance->label +
                            " are lost: a launch has room for " + std::to_string(messageWords) + " words)");
  if (header.failed == 0)
    return {};
  const auto &asserts = instance->asserts;
  std::string what = header.failed > 0 && size_t(header.failed) <= asserts.size()
                         ? "assertion failed: " + asserts[size_t(header.failed) - 1]
                         : "failed with code " + std::to_string(header.failed);
  return Error{KPKG_ERROR_KERNEL, what, {}, instance->label, {}};
}

} // namespace kpkg::package
