// Converts between dtype and device codes of PyTorch and kpkg.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/torch/DTypeCodes.h"
#include "runtime/torch/StableAbi.h"
#include <kpkg/kpkg.h>

#include <array>

namespace kpkg::torch_abi {
namespace {

/// A type of devices that kpkg and PyTorch both have.
struct DeviceType {
  int32_t kpkg;
  int32_t (*torchCode)();
  bool hasStreams;
};
constexpr DeviceType deviceTypes[] = {{KPKG_DEVICE_CPU, aoti_torch_device_type_cpu, false},
                                      {KPKG_DEVICE_CUDA, aoti_torch_device_type_cuda, true}};

/// Both directions, queried from PyTorch once: its codes are not part of the stable ABI.
struct Codes {
  std::array<int32_t, KPKG_DTYPE_COUNT> toTorch;
  std::array<uint8_t, 128> fromTorch{};
  std::array<int32_t, std::size(deviceTypes)> devices; ///< in the order of `deviceTypes`

  Codes() {
    for (size_t i = 0; i < devices.size(); ++i)
      devices[i] = deviceTypes[i].torchCode();
    toTorch.fill(-1);
#define KPKG_CODE_IF_0(name) -1
#define KPKG_CODE_IF_1(name) (aoti_torch_dtype_##name ? aoti_torch_dtype_##name() : -1)
#define KPKG_DTYPE_ROW(constant, Type, name, code, bits, kind, exponent, mantissa, infinity, dlpack, numpy, torch,     \
                       stable)                                                                                         \
  add(KPKG_##constant, KPKG_CODE_IF_##stable(name));
#include <kpkg/dtypes.def>
    if (toTorch[KPKG_FLOAT8_E8M0FNU] < 0)
      add(KPKG_FLOAT8_E8M0FNU, float8E8m0fnuCode);
  }

  void add(int32_t dtype, int32_t code) {
    toTorch[dtype] = code;
    if (code >= 0 && code < int32_t(fromTorch.size()))
      fromTorch[code] = uint8_t(dtype);
  }
};

const Codes &codes() {
  static const Codes instance;
  return instance;
}

} // namespace

int32_t dtypeFromTorch(int32_t code) {
  const Codes &all = codes();
  return code >= 0 && code < int32_t(all.fromTorch.size()) ? all.fromTorch[code] : int32_t(KPKG_NO_DTYPE);
}

int32_t dtypeToTorch(int32_t dtype) { return dtype >= 0 && dtype < KPKG_DTYPE_COUNT ? codes().toTorch[dtype] : -1; }

int32_t deviceFromTorch(int32_t code) {
  for (size_t i = 0; i < std::size(deviceTypes); ++i)
    if (codes().devices[i] == code)
      return deviceTypes[i].kpkg;
  return 0;
}

int32_t deviceToTorch(int32_t device) {
  for (size_t i = 0; i < std::size(deviceTypes); ++i)
    if (deviceTypes[i].kpkg == device)
      return codes().devices[i];
  return codes().devices[0];
}

bool hasStreams(int32_t device) {
  for (const DeviceType &type : deviceTypes)
    if (type.kpkg == device)
      return type.hasStreams;
  return false;
}

} // namespace kpkg::torch_abi
