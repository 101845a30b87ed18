// Writes a kernel of the tile dialect as a tile program: the JSON that `kpkg.jax` builds a Pallas kernel from.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"
#include "llvm/Support/Error.h"
#include <string>

namespace kpkg::compiler {

/// The bytes of VMEM that XLA gives a kernel on a TPU, unless it is told otherwise.
inline constexpr int64_t kVmemBytes = int64_t(16) << 20;

/// Returns why a tile program cannot have the kernel: the first construct that it lacks. Empty if it can.
std::string whyNoTileProgram(tile::KernelOp kernel);

/// Returns the first op with a result of 64-bit integers that may need more than the 32 bits of a TPU; empty if none
/// does. Integers in memory fit: kpkg.jax refuses tensors of int64, and takes int32 in their place.
std::string whyNo32Bits(tile::KernelOp kernel);

/// Returns the bytes of VMEM that the kernel needs. It has a buffer for each shape that it loads or stores, and the
/// tiles that are live at once. The last two dimensions are rounded up to the TPU's tiling.
int64_t vmemBytes(tile::KernelOp kernel);

/// Returns the tile program of a kernel that whyNoTileProgram() accepts. docs/package-format.md describes it.
std::string tileProgram(tile::KernelOp kernel);

} // namespace kpkg::compiler
