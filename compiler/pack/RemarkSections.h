// Writes the remarks of passes to the sections of a package that `kpkg info --why` reads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/pack/PackageContents.h"
#include "llvm/ADT/ArrayRef.h"

namespace kpkg::compiler {

/// Returns the name and the text of a section for each GPU target that has remarks (docs/package-format.md). Equal
/// remarks, and equal lists of them, are stored once.
std::vector<std::pair<std::string, std::string>> remarkSections(llvm::ArrayRef<PackedInstance> instances);

} // namespace kpkg::compiler
