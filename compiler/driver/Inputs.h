// The source files that the command line names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/pack/Package.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace kpkg::compiler {

class SourceManager;

/// Files as they are named; folders become the .k files below them, sorted. A name that does not exist, and a folder
/// without sources, are errors.
llvm::Expected<std::vector<std::string>> findSources(llvm::ArrayRef<std::string> inputs);

/// Each `tuning.json` in the folders among them.
std::vector<std::string> findTuning(llvm::ArrayRef<std::string> inputs);

/// The sources that were read, by their file names; equal names are told apart by a number.
std::vector<PackedSource> packedSources(const SourceManager &sources);

} // namespace kpkg::compiler
