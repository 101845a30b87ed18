// Lowers laid-out kernels to GPU modules: first to the GPU dialect, then to the LLVM and NVVM dialects.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include <string>
#include <vector>

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace kpkg::tile {
class KernelOp;
} // namespace kpkg::tile

namespace kpkg::lower::nvvm {

/// Registers the dialects of the ops that the lowering creates. A pass must load them before it runs the lowering.
void registerLoweringDialects(mlir::DialectRegistry &registry);

/// Replaces the `tile.kernel`s of `module` by a `gpu.module` with a kernel `gpu.func` for each. The kernels must be
/// laid out for one chip and verified. A function has the code of one thread, in the gpu, nvvm, llvm, arith, math and
/// scf dialects.
///
/// Its parameters begin with one word for each word of KpkgCpuCall::args in kernel_abi.h. Then follows the logical grid
/// (x, y, z as i32) and, with `dynamic`, the number of the launch's counter (i32). Kernels with asserts or prints
/// then take the address of a KpkgGpuReport. Each tensor map follows by value (128 bytes). An op that cannot be lowered
/// is an error at its location.
mlir::LogicalResult lowerToGpu(mlir::ModuleOp module);

/// Runs lowerToGpu, and lowers each kernel to an `llvm.func`. Only the LLVM and NVVM dialects remain inside.
mlir::LogicalResult lowerToNvvm(mlir::ModuleOp module);

/// The messages of a laid-out kernel's asserts and the formats of its prints, by the numbers that the lowered kernel
/// reports.
struct ReportTexts {
  std::vector<std::string> asserts, prints;
};
ReportTexts reportTexts(tile::KernelOp kernel);

/// Registers `--lower-gpu` and `--lower-nvvm`, which begins with `--lower-gpu`.
void registerLowerNvvmPasses();

} // namespace kpkg::lower::nvvm
