// Loads zeros as a variable of an image. The driver allows that while a graph is captured, unlike allocations.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/Zeros.h"
#include "runtime/device/cuda/Api.h"

#include <array>
#include <mutex>

namespace kpkg::cuda {

static constexpr char variable[] = "kpkg_zeros";
static constexpr std::string_view image = ".version 7.8\n.target sm_90\n.address_size 64\n"
                                          ".visible .global .align 16 .b8 kpkg_zeros[16];\n";

Result<uint64_t> zeros(int32_t device) {
  if (device < 0 || device >= maxDevices)
    return deviceError("device " + std::to_string(device) + " is beyond those that zeros are kept for");
  static std::array<uint64_t, maxDevices> addresses = {};
  static std::mutex lock;
  std::lock_guard guard(lock);
  uint64_t &address = addresses[size_t(device)];
  if (address)
    return address;
  auto library = loadImage(image, "the runtime's zeros");
  if (!library)
    return library.error();
  size_t bytes = 0;
  if (Status status = check(loadedApi().libraryGlobal(&address, &bytes, *library, variable), "cuLibraryGetGlobal");
      !status)
    return status.error();
  return address;
}

} // namespace kpkg::cuda
