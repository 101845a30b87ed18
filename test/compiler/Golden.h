// Golden tests: .k files that carry what a stage is expected to say about them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/diag/Diagnostics.h"
#include "compiler/source/Source.h"
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace kpkg::compiler::test {

/// A golden file is source, then comment lines that start with "#| ": the text that the stage under test gives for the
/// source, followed by the rendered diagnostics. Its name starts with "fail_" if and only if there are errors.
/// Several tests in one file: a line "# --- name" starts the next one. With KPKG_UPDATE_GOLDEN=1 in the environment
/// the expectations are rewritten.
struct GoldenFile {
  std::filesystem::path path;
};

/// All .k files of a folder, sorted by name.
std::vector<GoldenFile> goldenFiles(const std::filesystem::path &folder);

/// Names a parameterised test after its file.
std::string goldenName(const GoldenFile &file);

/// Runs the stage on each part of the file and compares; failures are GoogleTest failures.
/// `stage` returns the text to expect (may be empty) and reports to the engine.
void checkGolden(const GoldenFile &file,
                 const std::function<std::string(const SourceFile &, SourceManager &, DiagnosticEngine &)> &stage);

} // namespace kpkg::compiler::test
