// Converts between dtype and device codes of PyTorch and kpkg.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/torch/DTypeCodes.h"
#include "runtime/torch/StableAbi.h"
#include <kpkg/kpkg.h>

#include <array>

namespace kpkg::torch_abi {
namespace {

/// Both directions, queried from PyTorch once: its codes are not part of the stable ABI.
struct Codes {
  std::array<int32_t, KPKG_DTYPE_COUNT> toTorch;
  std::array<uint8_t, 128> fromTorch{};
  int32_t cpu = aoti_torch_device_type_cpu();
  int32_t cuda = aoti_torch_device_type_cuda();

  Codes() {
    toTorch.fill(-1);
#define KPKG_CODE_IF_0(name) -1
#define KPKG_CODE_IF_1(name) aoti_torch_dtype_##name()
#define KPKG_DTYPE_ROW(constant, Type, name, code, bits, kind, exponent, mantissa, infinity, dlpack, numpy, torch,     \
                       stable)                                                                                         \
  add(KPKG_##constant, KPKG_CODE_IF_##stable(name));
#include <kpkg/dtypes.def>
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
  const Codes &all = codes();
  return code == all.cpu ? KPKG_DEVICE_CPU : code == all.cuda ? KPKG_DEVICE_CUDA : 0;
}

int32_t deviceToTorch(int32_t device) { return device == KPKG_DEVICE_CUDA ? codes().cuda : codes().cpu; }

} // namespace kpkg::torch_abi
