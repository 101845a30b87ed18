// Chooses the slots, parts and delay of the channels between roles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/analysis/RolePartition.h"
#include "dialect/kgpu/ir/Remarks.h"

namespace kpkg::kgpu {

/// The tile of a published operand that parts divide, and the tile of a part.
inline constexpr int64_t kPartRows = 64, kPartColumns = 32, kOperandParts = 2;

/// Chooses slots, parts and delay of all channels for the shared memory that the kernel's other buffers leave, and
/// emits remarks on them. Reports an error at the kernel if two slots of each copied operand do not fit.
///
/// Copies of the innermost loops get all of the room. Copies of outer loops get two slots if the others still have
/// enough, or no fewer than beside one slot. Copies for the next tile can then start while this one is computed.
mlir::LogicalResult planChannels(tile::KernelOp kernel, RolePartition &partition);

/// Returns the ops that compute the tile element by element, in order, if it can be computed in parts. They stand in
/// the block of `tile`.
llvm::SmallVector<mlir::Operation *> elementwiseOps(mlir::Value tile, unsigned consumers);
/// Returns whether the tile has two parts, and a layout of which every warpgroup holds a copy.
bool hasParts(mlir::Value tile, unsigned consumers);

/// Returns the ops of the loop's body that compute the offsets of the store.
llvm::SetVector<mlir::Operation *> offsetsOf(TensorStoreOp store, mlir::scf::ForOp loop);

} // namespace kpkg::kgpu
