// Kernel variants to machine code and PTX for GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/codegen/nvptx/Ptxas.h"
#include "compiler/driver/Compile.h"
#include "compiler/pack/Package.h"
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::compiler {

/// One variant for one chip.
struct GpuCode {
  PackedLaunch launch;
  double flopsPerCycle = 0, flopsPerCycleAlone = 0, bytesPerCycle = 0; ///< of a multiprocessor, at most
  unsigned resident = 1;                                               ///< CTAs that a multiprocessor holds at once
  std::optional<unsigned> sharedCoordinate; ///< along which a cluster's CTAs take tiles together
  PackedObject object;
  std::string ptx;                          ///< what ptxas made the machine code of
  std::vector<std::string> asserts, prints; ///< messages and formats by the numbers that the code reports
  std::string remark;                       ///< why the code is slow; or empty
  std::string target;                       ///< as the manifest names it: "sm_90a", or "compute_80" for PTX
};

/// What becomes of a kernel none of whose launches is free of spills, stack and warnings.
enum class SlowCode {
  Refuse,
  Accept, ///< the launch that spills least is taken: for tests, where only the results count
};

/// Whether a kernel has alternatives that can serve in its place.
enum class Others { None, Serve };

/// No launch of a kernel runs at full speed. The message says what each suffers from; `brief` what the last one does.
class NoFastLaunch : public llvm::ErrorInfo<NoFastLaunch, llvm::StringError> {
public:
  NoFastLaunch(const std::string &message, std::string brief)
      : ErrorInfo(message, llvm::inconvertibleErrorCode()), brief(std::move(brief)) {}
  const std::string brief;
  static char ID;
};

/// Tries the kernel's launches in their order until ptxas makes code without spills, stack or warnings, so the first
/// that is as fast as it was written is taken. When none is, the variants for any strides get the code that spills
/// least, with a remark, so that such arguments work at all; for the others the error is a NoFastLaunch. Where a
/// product has launches with roles, those without are much slower, and are not tried when others serve; nor are
/// products whose accumulators leave few registers for operands, or that cannot be given out to the clusters that they
/// ask for. Without optimisation the first launch is taken, however fast. `kernel` is at tile level and stays as it is.
/// Errors of the lowering itself go to the context's diagnostics.
llvm::Expected<GpuCode> compileForChip(tile::KernelOp kernel, llvm::StringRef chip, const Ptxas &ptxas,
                                       unsigned optLevel, SlowCode slow = SlowCode::Refuse,
                                       Others others = Others::None);

/// The code of a variant, or why there is none, in full and in short.
struct GpuAttempt {
  std::optional<GpuCode> code;
  std::string why, brief;
  bool isToolAtFault = false;
};
GpuAttempt attemptOf(llvm::Expected<GpuCode> made);

/// PTX of the first launch, which the driver compiles for `chip` and later ones.
llvm::Expected<GpuCode> compileToPackedPtx(tile::KernelOp kernel, llvm::StringRef chip, unsigned optLevel);
/// The PTX of which `code` was made, in its place.
GpuCode asPackedPtx(const GpuCode &code, llvm::StringRef chip, llvm::StringRef symbol);

/// A stage between the laid-out kernel and its PTX (Kgpu, Gpu, Nvvm, Llvm or Ptx) as text, of the first launch.
llvm::Expected<std::string> stageText(mlir::ModuleOp variants, llvm::StringRef chip, unsigned optLevel, Stage stage);
/// Machine code as text, of the launch that compileForChip takes; needs ptxas and a disassembler.
llvm::Expected<std::string> sassText(mlir::ModuleOp variants, llvm::StringRef chip, unsigned optLevel);

} // namespace kpkg::compiler
