// Compiles kernel variants to machine code and PTX for GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/codegen/nvptx/Ptxas.h"
#include "compiler/driver/CompileOptions.h"
#include "compiler/pack/Package.h"
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::compiler {

/// The code of one variant for one chip.
struct GpuCode {
  manifest::Launch launch;
  double flopsPerCycle = 0, flopsPerCycleAlone = 0, bytesPerCycle = 0; ///< maximum of a multiprocessor
  unsigned resident = 1;                                               ///< CTAs that are resident on a multiprocessor
  std::optional<unsigned> sharedCoordinate; ///< along which a cluster's CTAs process tiles together
  PackedObject object;
  std::string ptx;                          ///< the PTX from which ptxas made the machine code
  std::vector<std::string> asserts, prints; ///< messages and formats, by the numbers that the code reports
  std::string remark;                       ///< why the code is slow, or empty
  std::vector<PackedRemark> remarks;        ///< of the passes
  std::string target;                       ///< in the manifest: "sm_90a", or "compute_80" for PTX
};

/// Options that determine the machine code of a kernel.
struct CodeOptions {
  CodeOptions(unsigned optLevel, bool lineTables = false) : optLevel(optLevel), lineTables(lineTables) {}
  unsigned optLevel;
  bool lineTables;           ///< the PTX and the machine code name the source line of each instruction
  bool shortestCode = false; ///< build time matters more than the code: takes kgpu::shortestLaunch() where it is one
  bool findsSpills = lineTables; ///< remarks and refused launches name the lines that spill
};
inline CodeOptions codeOptionsOf(const CompileOptions &options) {
  CodeOptions result(options.optLevel, options.lineTables);
  result.shortestCode = options.fast && options.optLevel == 0;
  return result;
}

/// The treatment of a kernel if each of its launches has spills, a stack frame or warnings.
enum class SlowCode {
  Refuse,
  Accept, ///< uses the launch with the fewest spills: for tests, where only results matter
};

/// Whether a kernel has alternatives that can replace it.
enum class Others { None, Serve };

/// Error: no launch of a kernel runs at full speed. The message gives the problem of each launch; `brief` gives that of
/// the last one.
class NoFastLaunch : public llvm::ErrorInfo<NoFastLaunch, llvm::StringError> {
public:
  NoFastLaunch(const std::string &message, std::string brief)
      : ErrorInfo(message, llvm::inconvertibleErrorCode()), brief(std::move(brief)) {}
  const std::string brief;
  static char ID;
};

/// Tries the kernel's launches in order, and uses the first one that ptxas compiles without spills, stack or warnings.
///
/// If none compiles so, variants for any strides use the code with the fewest spills, with a remark, so that such
/// arguments work at all. Other variants return a NoFastLaunch.
///
/// If a product has launches with roles, launches without roles are much slower, and are not tried if alternatives can
/// replace the kernel. The same holds for products whose accumulators leave few registers for operands, and for
/// products that cannot be scheduled on the clusters that they request.
///
/// Without optimisation the first launch is used, at any speed. `kernel` is at tile level and is not changed. Errors of
/// the lowering itself go to the context's diagnostics.
llvm::Expected<GpuCode> compileForChip(tile::KernelOp kernel, llvm::StringRef chip, const Ptxas &ptxas,
                                       CodeOptions options, SlowCode slow = SlowCode::Refuse,
                                       Others others = Others::None);

/// The code of a variant, or the reason why there is none, in full and in short.
struct GpuAttempt {
  std::optional<GpuCode> code;
  std::string why, brief;
  bool isToolAtFault = false;
};
GpuAttempt attemptOf(llvm::Expected<GpuCode> made);

/// Returns the PTX of the first launch, which the driver compiles for `chip` and newer chips.
llvm::Expected<GpuCode> compileToPackedPtx(tile::KernelOp kernel, llvm::StringRef chip, CodeOptions options);
/// Returns the PTX from which `code` was made, as code of its own.
GpuCode asPackedPtx(const GpuCode &code, llvm::StringRef chip, llvm::StringRef symbol);

/// Returns a stage between the laid-out kernel and its PTX (Kgpu, Gpu, Nvvm, Llvm or Ptx) as text, for the first
/// launch. A kernel that the chip cannot run with that launch leaves a comment, unless none can run.
llvm::Expected<std::string> stageText(mlir::ModuleOp variants, llvm::StringRef chip, CodeOptions options, Stage stage);
/// Returns machine code as text, for the launch that compileForChip uses. Needs ptxas and a disassembler.
llvm::Expected<std::string> sassText(mlir::ModuleOp variants, llvm::StringRef chip, CodeOptions options);

} // namespace kpkg::compiler
