// Source files in, package out: the whole compiler behind one function.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/Support/Error.h"
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kpkg::compiler {

class DiagnosticEngine;
class SourceManager;

struct CompileOptions {
  /// Files, or folders whose .k files are all taken.
  std::vector<std::string> inputs;
  /// In place of `inputs`: sources that are in memory, name and text.
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<std::string> importPaths;
  std::vector<std::pair<std::string, std::string>> defines;
  /// Names in packages, such as "x86-64-v3"; empty: this machine's.
  std::vector<std::string> targets;
  /// Files with rows of tuning tables, as `kpkg tune --rows` writes them. A folder among `inputs` gives its
  /// `tuning.json` too.
  std::vector<std::string> tuning;
  unsigned optLevel = 2;
  /// Threads; 0: one for each processor.
  unsigned jobs = 0;
};

/// A kernel of the source for which a target has no code: it is too large, or needs what the target lacks. The message
/// begins with its place.
class KernelRefused : public llvm::ErrorInfo<KernelRefused, llvm::StringError> {
public:
  explicit KernelRefused(const std::string &message) : ErrorInfo(message, llvm::inconvertibleErrorCode()) {}
  static char ID;
};

/// The command line asks for what there is not, such as a target of an unknown name.
class WrongUse : public llvm::ErrorInfo<WrongUse, llvm::StringError> {
public:
  explicit WrongUse(const std::string &message) : ErrorInfo(message, llvm::inconvertibleErrorCode()) {}
  static char ID;
};

/// What a build has to say besides errors: called after it, once for each remark.
using Remark = std::function<void(const std::string &text)>;

/// Called from any thread, one call at a time, after each compiled instance: how many of how many are done, and which
/// it was.
using Progress = std::function<void(size_t done, size_t total, const std::string &what)>;

/// The package's bytes; nothing when the source has errors, which then are in `diags`; an error when the world is at
/// fault or the compiler cannot do it.
llvm::Expected<std::optional<std::string>> compile(const CompileOptions &options, SourceManager &sources,
                                                   DiagnosticEngine &diags, const Progress &progress = nullptr,
                                                   const Remark &remark = nullptr);

/// Checks every instance and op for the targets and makes no code; errors of the source are in `diags`.
llvm::Error check(const CompileOptions &options, SourceManager &sources, DiagnosticEngine &diags,
                  const Remark &remark = nullptr);

/// Reads the sources and what they import on any of the targets, and does nothing with them.
llvm::Error loadOnly(const CompileOptions &options, SourceManager &sources, DiagnosticEngine &diags);

/// The files that decide what a package holds: those that `sources` has from the disk, and tuning tables.
std::vector<std::string> filesRead(const CompileOptions &options, const SourceManager &sources);

/// What `--emit` shows instead of a package, for the first target; Llvm is a stage of CPUs and GPUs.
enum class Stage { Tile, Plan, Llvm, Kgpu, Gpu, Nvvm, Ptx, Sass };
llvm::Expected<std::optional<std::string>> emit(const CompileOptions &options, Stage stage, SourceManager &sources,
                                                DiagnosticEngine &diags);

} // namespace kpkg::compiler
