// Copies of a kernel for different facts about its arguments.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::tile {

/// What runs the kernels: it decides which facts are worth a copy of the code.
enum class VariantKind { Cpu, Gpu };

/// Replaces each kernel of `module` by its variants, whose symbols end in the variant's name; the facts are in the
/// types of the views.
///
/// For CPUs: "unit", where every view that is not only read as an operand of dots has stride 1 in its last dimension
/// (operands of dots are packed, which looks at the strides that it finds), and "any", which states nothing.
///
/// For GPUs: "vector", where every view that is only accessed in whole 16-byte vectors along its last dimension is
/// contiguous there, aligned to 16 bytes and divisible by the vector, and every offset fits 32 bits, of factors of
/// products every offset in one matrix; "vector_nt" and the like, the same but with the factors of products contiguous
/// along the last dimension (n) or the one before it (t), one letter for each; "vector64", the same as "vector" with
/// 64-bit offsets; "unit", where the last dimensions have stride 1; and "any". Without vector accesses the first two
/// are not made.
///
/// A variant that would state nothing more than a later one is left out.
void makeVariants(mlir::ModuleOp module, VariantKind kind);

} // namespace kpkg::tile
