// Declares the whole compiler behind one function: source files in, package out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/codegen/reproducer/Reproducer.h"
#include "compiler/driver/CompileOptions.h"
#include <optional>

namespace kpkg::compiler {

class DiagnosticEngine;
class SourceManager;

/// Returns the package's bytes; nothing if the source has errors, which are then in `diags`. Returns an error for
/// failures of the environment, or of the compiler.
llvm::Expected<std::optional<std::string>> compile(const CompileOptions &options, SourceManager &sources,
                                                   DiagnosticEngine &diags, const Progress &progress = nullptr,
                                                   const Remark &remark = nullptr);

/// Compiles one instance again, as compile() recorded its kind and number in an Activity, and drops its code. Failures
/// of the compiler end the process. Errors before that are dropped: compile() has reported them.
void compileAlone(const CompileOptions &options, int kind, size_t number, const BeforeStage &beforeStage);

/// Checks every instance and op for the targets without generating code. Errors of the source are in `diags`.
llvm::Error check(const CompileOptions &options, SourceManager &sources, DiagnosticEngine &diags,
                  const Remark &remark = nullptr);

/// Reads the sources and their imports on all targets, and does nothing else.
llvm::Error loadOnly(const CompileOptions &options, SourceManager &sources, DiagnosticEngine &diags);

/// Returns the files that determine a package's contents: those that `sources` read from disk, and tuning tables.
std::vector<std::string> filesRead(const CompileOptions &options, const SourceManager &sources);

llvm::Expected<std::optional<std::string>> emit(const CompileOptions &options, Stage stage, SourceManager &sources,
                                                DiagnosticEngine &diags);

} // namespace kpkg::compiler
