// From laid-out kernels to GPU modules: first in the GPU dialect, then in the LLVM and NVVM dialects.
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

/// The dialects that the lowering makes ops of; load them before it runs inside of a pass.
void registerLoweringDialects(mlir::DialectRegistry &registry);

/// Replaces the `tile.kernel`s of `module`, all laid out for one chip and verified, by a `gpu.module` with a kernel
/// `gpu.func` for each: the code of one thread in the gpu, nvvm, llvm, arith, math and scf dialects. Its parameters are
/// one word for each word of KpkgCpuCall::args in kernel_abi.h, then the logical grid (x, y, z as i32), then, with
/// `kgpu.dynamic`, which counter is the launch's (i32), then, for kernels with asserts or prints, the address of a
/// KpkgGpuReport, then each tensor map by value (128 bytes). What cannot be lowered is an error at the op's location.
mlir::LogicalResult lowerToGpu(mlir::ModuleOp module);

/// The same, and on to an `llvm.func` for each kernel: nothing but the LLVM and NVVM dialects remains inside.
mlir::LogicalResult lowerToNvvm(mlir::ModuleOp module);

/// Messages of a laid-out kernel's asserts and formats of its prints, by the numbers that the lowered kernel reports.
struct ReportTexts {
  std::vector<std::string> asserts, prints;
};
ReportTexts reportTexts(tile::KernelOp kernel);

/// Registers `--lower-gpu` and `--lower-nvvm`, which begins with it.
void registerLowerNvvmPasses();

} // namespace kpkg::lower::nvvm
