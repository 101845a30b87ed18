// Reads from a package how it was built, and its sources.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/driver/CompileOptions.h"
#include "tools/kpkg/edit/EditedPackage.h"
#include <string>

namespace kpkg::command::edit {

/// Returns the options of the build that made the package, with the targets for which it has code. The files that they
/// name are written into `folder`: the package's sources, where their imports find each other, and its tuning rows.
///
/// The error says why another build could not have the same bytes. The package may have no sources, be made by another
/// kpkg or LLVM, or record too little.
Result<compiler::CompileOptions> packedBuild(const OpenedPackage &package, const std::string &folder);

} // namespace kpkg::command::edit
