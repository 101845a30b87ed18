// From tile kernels to functions in the LLVM dialect for one CPU target.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/cpu/CpuTarget.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace kpkg::lower::cpu {

/// Attributes of the `llvm.func` that a `tile.kernel` becomes.
namespace attributes {
inline constexpr llvm::StringLiteral kernel = "kpkg.kernel";         ///< unit: this function is a kernel's entry
inline constexpr llvm::StringLiteral scratch = "kpkg.scratch";       ///< i64: bytes of scratch memory per task
inline constexpr llvm::StringLiteral persistent = "kpkg.persistent"; ///< unit: `<symbol>$tiles` gives the tile count
inline constexpr llvm::StringLiteral asserts = "kpkg.asserts";       ///< array of strings: messages of tile.assert
inline constexpr llvm::StringLiteral prints = "kpkg.prints";         ///< array of strings: formats of tile.print
} // namespace attributes

/// Suffix of the function that counts the tiles of a persistent kernel.
inline constexpr llvm::StringLiteral tilesSuffix = "$tiles";

/// The dialects that lowerToLLVM makes ops of; load them before it runs inside of a pass.
void registerLoweringDialects(mlir::DialectRegistry &registry);

/// Replaces every `tile.kernel` by an `llvm.func` with the C signature of kernel_abi.h; nothing but the LLVM dialect
/// remains. What cannot be lowered is an error at the op's location.
mlir::LogicalResult lowerToLLVM(mlir::ModuleOp module, const CpuTarget &target);

/// The first half of it: scf, arith, math, vector and llvm ops inside of `llvm.func`; math ops are not expanded yet.
mlir::LogicalResult emitKernels(mlir::ModuleOp module, const CpuTarget &target);

/// Registers `--lower-cpu="isa=..."` and `--lower-cpu-emit="isa=..."` (the first half alone).
void registerLowerCpuPasses();

} // namespace kpkg::lower::cpu
