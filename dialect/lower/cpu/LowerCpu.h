// Lowers tile kernels to functions in the LLVM dialect for one CPU target.
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
inline constexpr llvm::StringLiteral kernel = "kpkg.kernel";         ///< Unit: this function is a kernel's entry.
inline constexpr llvm::StringLiteral scratch = "kpkg.scratch";       ///< i64: bytes of scratch memory per task.
inline constexpr llvm::StringLiteral persistent = "kpkg.persistent"; ///< Unit: `<symbol>$tiles` returns the tile count.
inline constexpr llvm::StringLiteral asserts = "kpkg.asserts";       ///< Array of strings: messages of tile.assert.
inline constexpr llvm::StringLiteral prints = "kpkg.prints";         ///< Array of strings: formats of tile.print.
inline constexpr llvm::StringLiteral threads = "kpkg.threads";       ///< i64: coroutines of a task, with a frame each.
inline constexpr llvm::StringLiteral coroutine = "kpkg.coroutine";   ///< Unit: this function waits at some calls.
} // namespace attributes

/// The suffixes of a kernel's coroutine, which is the code of one thread, and of the global with its frame's bytes.
inline constexpr llvm::StringLiteral coroutineSuffix = "$thread";
inline constexpr llvm::StringLiteral frameBytesSuffix = "$frame_bytes";
/// Functions that later steps replace: a suspension; (address of the global, bytes) that tells the size of a frame.
inline constexpr llvm::StringLiteral suspendName = "kpkg.suspend";
inline constexpr llvm::StringLiteral frameSizeName = "kpkg.frame_size";
/// The function that runs the threads of a cluster.
inline constexpr llvm::StringLiteral runThreadsName = "kpkg.run_threads";

/// The suffix of the function that counts the tiles of a persistent kernel.
inline constexpr llvm::StringLiteral tilesSuffix = "$tiles";

/// Registers the dialects of the ops that lowerToLLVM creates. A pass must load them before it runs the lowering.
void registerLoweringDialects(mlir::DialectRegistry &registry);

/// Replaces every `tile.kernel` by an `llvm.func` with the C signature of kernel_abi.h. Only ops of the LLVM dialect
/// remain. An op that cannot be lowered is an error at its location.
mlir::LogicalResult lowerToLLVM(mlir::ModuleOp module, const CpuTarget &target);

/// Runs the first half of lowerToLLVM. The `llvm.func` contains scf, arith, math, vector and llvm ops, and math ops are
/// not expanded yet.
mlir::LogicalResult emitKernels(mlir::ModuleOp module, const CpuTarget &target);

/// Registers `--lower-cpu="isa=..."` and `--lower-cpu-emit="isa=..."`, which runs the first half alone.
void registerLowerCpuPasses();

} // namespace kpkg::lower::cpu
