// Declares the options of a build, its errors, and the receivers of its progress and remarks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/Support/Error.h"
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace kpkg::compiler {

struct CompileOptions {
  /// Files, or folders whose .k files are all used.
  std::vector<std::string> inputs;
  /// Sources in memory, name and text, instead of `inputs`.
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<std::string> importPaths;
  std::vector<std::pair<std::string, std::string>> defines;
  /// Names in packages, such as "x86-64-v3". Empty: the targets of this machine.
  std::vector<std::string> targets;
  /// Files with rows of tuning tables, as written by `kpkg tune --rows`. A folder in `inputs` contributes its
  /// `tuning.json`.
  std::vector<std::string> tuning;
  unsigned optLevel = 2;
  /// Compiles one variant of each kernel, which takes any arguments, and of alternatives those that have it.
  bool fast = false;
  /// Names of dtypes such as "float32". Of each kind (floats, integers, bool) that has a name here, instances for other
  /// dtypes are left out.
  std::vector<std::string> dtypes;
  /// Tells debuggers and profilers the source line of each instruction.
  bool lineTables = false;
  /// The checks of `--sanitize`, with which kernels end a call with an error.
  bool checkBounds = false, checkNan = false, checkUninit = false, checkRace = false;
  /// Finds the lines of this kernel's source that spill registers on GPUs. Empty: those of all kernels if there are
  /// line tables, else none.
  std::string explainedKernel;
  /// Compiles this kernel alone. Empty: all kernels.
  std::string onlyKernel;
  /// Threads. 0: one for each processor.
  unsigned jobs = 0;
};

/// Error: a target has no code for a kernel of the source, which is too large, or needs features that the target lacks.
/// The message begins with the kernel's place.
class KernelRefused : public llvm::ErrorInfo<KernelRefused, llvm::StringError> {
public:
  explicit KernelRefused(const std::string &message) : ErrorInfo(message, llvm::inconvertibleErrorCode()) {}
  static char ID;
};

/// Error: the command line requests something that does not exist, such as an unknown target.
class WrongUse : public llvm::ErrorInfo<WrongUse, llvm::StringError> {
public:
  explicit WrongUse(const std::string &message) : ErrorInfo(message, llvm::inconvertibleErrorCode()) {}
  static char ID;
};

/// Receives remarks of a build besides errors. Called after the build, once for each remark.
using Remark = std::function<void(const std::string &text)>;

/// Reports progress after each compiled instance: finished instances, their total, and the instance. Called from any
/// thread, one call at a time.
using Progress = std::function<void(size_t done, size_t total, const std::string &what)>;

/// The stages that `--emit` prints instead of a package, for the first target. Llvm is a stage of both CPUs and GPUs.
enum class Stage { Tile, Plan, Llvm, Kgpu, Gpu, Nvvm, Ptx, Sass };

} // namespace kpkg::compiler
