// Translation between PyTorch's dtype and device codes and kpkg's.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_TORCH_DTYPECODES_H
#define KPKG_RUNTIME_TORCH_DTYPECODES_H

#include <cstdint>

namespace kpkg::torch_abi {

/// The kpkg dtype of PyTorch's dtype code; KPKG_NO_DTYPE when kpkg has none (complex, quantised, ...).
int32_t dtypeFromTorch(int32_t code);
/// PyTorch's code of a kpkg dtype; -1 for KPKG_NO_DTYPE.
int32_t dtypeToTorch(int32_t dtype);
/// DLPack's device number, which kpkg uses, of PyTorch's device code; 0 when kpkg knows no such device.
int32_t deviceFromTorch(int32_t code);
/// PyTorch's code of a DLPack device number.
int32_t deviceToTorch(int32_t device);

} // namespace kpkg::torch_abi

#endif // KPKG_RUNTIME_TORCH_DTYPECODES_H
