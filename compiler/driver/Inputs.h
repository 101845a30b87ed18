// Finds the source files that the command line names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/pack/Package.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace kpkg::compiler {

class SourceManager;

/// Returns the named files. Folders are replaced by the .k files below them, sorted. Missing names and folders without
/// sources are errors.
llvm::Expected<std::vector<std::string>> findSources(llvm::ArrayRef<std::string> inputs);

/// Returns each `tuning.json` in the folders of `inputs`.
std::vector<std::string> findTuning(llvm::ArrayRef<std::string> inputs);

/// Returns the sources that were read, by their file names. A number distinguishes equal names.
std::vector<PackedSource> packedSources(const SourceManager &sources);

} // namespace kpkg::compiler
