// Keeps the blocks of memory of a stream in lists by size.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory.h"

#include <map>
#include <vector>

namespace decoder {

namespace {

/// Free blocks by size. One thread uses them.
struct Blocks {
  kpkg_device device;
  std::shared_ptr<void> stream;
  std::map<size_t, std::vector<void *>> free;

  ~Blocks() {
    for (auto &[bytes, blocks] : free)
      for (void *block : blocks)
        kpkg_memory_free(device, block, stream.get());
  }
};

/// Rounds up to a quarter of a power of two, so that prompts of similar lengths share blocks.
size_t roundedUp(size_t bytes) {
  size_t step = 512;
  while (bytes > 8 * step)
    step *= 2;
  return (bytes + step - 1) / step * step;
}

} // namespace

kpkg::Stream streamWithMemory(kpkg_device device) {
  kpkg::Stream stream = kpkg::Stream::create(device).value();
  auto blocks = std::make_shared<Blocks>(Blocks{device, stream.owner, {}});
  stream.allocate = [blocks](size_t wanted) -> kpkg::Result<std::shared_ptr<void>> {
    size_t bytes = roundedUp(wanted);
    std::vector<void *> &list = blocks->free[bytes];
    void *block = nullptr;
    if (!list.empty()) {
      block = list.back();
      list.pop_back();
    } else if (kpkg_memory_allocate(blocks->device, bytes, blocks->stream.get(), &block) != KPKG_OK) {
      return kpkg::Error::last();
    }
    return std::shared_ptr<void>(block, [blocks, bytes](void *back) { blocks->free[bytes].push_back(back); });
  };
  return stream;
}

} // namespace decoder
