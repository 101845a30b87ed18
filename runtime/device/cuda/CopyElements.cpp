// Describes strided copies for the kernels of CopyElements.device.cpp, loads these on first use, and launches them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/CopyElements.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

namespace kpkg::cuda {

namespace {
constexpr char kernels[] =
#include "CopyElements.ptx.inc"
    ;
constexpr uint32_t threads = turnThreads;

/// Returns null during graph capture if nothing was loaded before.
Result<void *> loadedKernels(Stream stream) {
  static std::mutex mutex;
  static void *loaded = nullptr;
  std::scoped_lock lock(mutex);
  if (loaded)
    return loaded;
  auto capturing = isCapturing(stream);
  if (!capturing)
    return capturing.error();
  if (*capturing)
    return nullptr;
  auto image = loadImage(kernels, "the runtime's copies");
  if (!image)
    return image.error();
  return loaded = *image;
}

bool areMultiples(const StridedElements &copy, uint64_t n) {
  for (uint32_t dim = 1; dim < copy.rank; ++dim)
    if (copy.fromStrides[dim] % int64_t(n) || copy.toStrides[dim] % int64_t(n))
      return false;
  return true;
}
} // namespace

StridedElements describeCopy(uint64_t from, std::span<const int64_t> fromStrides, uint64_t to,
                             std::span<const int64_t> toStrides, std::span<const int64_t> shape,
                             int64_t &elementBytes) {
  StridedElements copy = {from, to, 1, 0, 0, {}, {}, {}};
  for (size_t dim = shape.size(); dim-- > 0;) {
    uint64_t extent = uint64_t(shape[dim]);
    copy.count *= extent;
    if (extent == 1)
      continue;
    if (copy.rank) {
      uint32_t inner = copy.rank - 1;
      int64_t span = int64_t(copy.shape[inner]);
      if (fromStrides[dim] == copy.fromStrides[inner] * span && toStrides[dim] == copy.toStrides[inner] * span) {
        copy.shape[inner] *= extent;
        continue;
      }
    }
    copy.shape[copy.rank] = extent;
    copy.fromStrides[copy.rank] = fromStrides[dim];
    copy.toStrides[copy.rank++] = toStrides[dim];
  }
  while (copy.rank && copy.fromStrides[0] == 1 && copy.toStrides[0] == 1 && elementBytes < 16 &&
         copy.shape[0] % 2 == 0 && areMultiples(copy, 2) && (from | to) % uint64_t(2 * elementBytes) == 0) {
    copy.shape[0] /= 2, copy.count /= 2, elementBytes *= 2;
    for (uint32_t dim = 1; dim < copy.rank; ++dim)
      copy.fromStrides[dim] /= 2, copy.toStrides[dim] /= 2;
  }
  return copy;
}

uint64_t turnCopy(StridedElements &copy, int64_t elementBytes) {
  constexpr uint64_t least = 16; // with a smaller extent, squares would be mostly empty
  uint32_t first = copy.rank, second = copy.rank;
  for (uint32_t dim = 0; dim < copy.rank; ++dim) {
    if (copy.toStrides[dim] == 1)
      first = dim;
    if (copy.fromStrides[dim] == 1)
      second = dim;
  }
  if (elementBytes > 8 || first == second || first == copy.rank || second == copy.rank || copy.shape[first] < least ||
      copy.shape[second] < least)
    return 0;
  auto exchange = [&](uint32_t one, uint32_t other) {
    std::swap(copy.shape[one], copy.shape[other]);
    std::swap(copy.fromStrides[one], copy.fromStrides[other]);
    std::swap(copy.toStrides[one], copy.toStrides[other]);
  };
  exchange(0, first);
  exchange(1, second == 0 ? first : second);
  uint64_t side = elementBytes < 4 ? 64 : 32;
  uint64_t squares = ((copy.shape[0] + side - 1) / side) * ((copy.shape[1] + side - 1) / side);
  for (uint32_t dim = 2; dim < copy.rank; ++dim)
    squares *= copy.shape[dim];
  return squares;
}

Result<bool> copyElements(StridedElements copy, int64_t elementBytes, Stream stream) {
  auto image = loadedKernels(stream);
  if (!image)
    return image.error();
  if (!*image)
    return false;
  uint64_t squares = turnCopy(copy, elementBytes);
  auto function = findFunction(*image, (squares ? "kpkg_turn_" : "kpkg_copy_") + std::to_string(elementBytes));
  if (!function)
    return function.error();
  Launch launch;
  launch.function = *function;
  launch.threads = threads;
  constexpr uint64_t mostBlocks = 1 << 16; // beyond that, threads copy several elements
  launch.grid[0] =
      uint32_t(std::clamp<uint64_t>(squares ? squares : (copy.count + threads - 1) / threads, 1, mostBlocks));
  void *parameters[] = {&copy};
  if (Status status = cuda::launch(launch, stream, parameters); !status)
    return status.error();
  return true;
}

} // namespace kpkg::cuda
