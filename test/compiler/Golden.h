// Golden tests: .k files that contain the expected output of a compiler stage.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/diag/Diagnostics.h"
#include "compiler/source/Source.h"
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace kpkg::compiler::test {

/// A golden file is source followed by comment lines that start with "#| ". They hold the text that the stage under
/// test returns for the source, then the rendered diagnostics. The file name starts with "fail_" if and only if there
/// are errors. A line "# --- name" starts the next test of a file. KPKG_UPDATE_GOLDEN=1 in the environment rewrites the
/// expectations.
struct GoldenFile {
  std::filesystem::path path;
};

/// Returns all .k files of a folder, sorted by name.
std::vector<GoldenFile> goldenFiles(const std::filesystem::path &folder);

/// Names a parameterised test after its file.
std::string goldenName(const GoldenFile &file);

/// Runs the stage on each part of the file and compares the output; differences are GoogleTest failures.
///
/// `stage` returns the expected text, which may be empty, and reports diagnostics to the engine.
void checkGolden(const GoldenFile &file,
                 const std::function<std::string(const SourceFile &, SourceManager &, DiagnosticEngine &)> &stage);

} // namespace kpkg::compiler::test
