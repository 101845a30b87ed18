// Converts between dtype and device codes of PyTorch and kpkg.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_TORCH_DTYPECODES_H
#define KPKG_RUNTIME_TORCH_DTYPECODES_H

#include <cstdint>

namespace kpkg::torch_abi {

/// Returns the kpkg dtype of PyTorch's dtype code; KPKG_NO_DTYPE if there is none (complex, quantised, ...).
int32_t dtypeFromTorch(int32_t code);
/// Returns PyTorch's code of a kpkg dtype; -1 for KPKG_NO_DTYPE.
int32_t dtypeToTorch(int32_t dtype);
/// Returns DLPack's device number, which kpkg uses, for PyTorch's device code; 0 if kpkg does not know the device.
int32_t deviceFromTorch(int32_t code);
/// Returns PyTorch's code of a DLPack device number.
int32_t deviceToTorch(int32_t device);
/// Returns whether calls on a device with this DLPack number run on PyTorch's current stream.
bool hasStreams(int32_t device);

} // namespace kpkg::torch_abi

#endif // KPKG_RUNTIME_TORCH_DTYPECODES_H
