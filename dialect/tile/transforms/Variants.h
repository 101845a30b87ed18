// Copies kernels for different facts about their arguments.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::tile {

/// The processor that runs the kernels, which determines the facts that are worth a copy of the code.
enum class VariantKind { Cpu, Gpu };

/// Replaces each kernel of `module` by its variants, whose symbols end in the variant's name. The types of the views
/// state the facts.
///
/// CPUs have two variants. "unit" states stride 1 in the last dimension of every view, except views that are only read
/// as operands of dots. Those are packed, and packing handles any strides. "any" states nothing.
///
/// GPUs have these variants:
/// * "vector" is for views where all accesses along the last dimension are whole 16-byte vectors. They are contiguous
///   there, aligned to 16 bytes and divisible by the vector. Every offset fits 32 bits; for dot operands this holds for
///   offsets in one matrix.
/// * "vector_nt" and the like are "vector" with other contiguous dimensions of dot operands. One letter for each
///   operand names the last dimension (n) or the one before it (t).
/// * "vector64" is "vector" with 64-bit offsets.
/// * "unit32", at thread level, states stride 1 in the last dimensions and that every offset fits 32 bits.
/// * "unit" states stride 1 in the last dimensions.
/// * "any" states nothing.
///
/// A kernel without vector accesses has no "vector" variants. A variant that would state no more than a later one is
/// left out.
void makeVariants(mlir::ModuleOp module, VariantKind kind);

} // namespace kpkg::tile
