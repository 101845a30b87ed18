// Converts tensors from and to DLPack's structures.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_DLPACK_H
#define KPKG_PACKAGE_DLPACK_H

#include <kpkg/kpkg.h>
#include <kpkg/result.hpp>

namespace kpkg::package {

/// Converts `dlTensor`, a DLTensor. The result borrows its memory and shape. A dtype that kpkg lacks becomes
/// KPKG_NO_DTYPE.
Result<kpkg_tensor> fromDlpack(const void *dlTensor);

/// Returns a DLManagedTensor, or a DLManagedTensorVersioned. Its deleter calls release(owner).
Result<void *> toDlpack(const kpkg_tensor &tensor, bool versioned, void *owner, void (*release)(void *owner));

} // namespace kpkg::package
#endif
