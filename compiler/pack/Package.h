// Writes the results of a build to one .kpkg file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/pack/PackageContents.h"
#include "llvm/Support/Error.h"

namespace kpkg::compiler {

/// Returns the file's bytes. Equal contents give equal bytes.
llvm::Expected<std::string> writePackage(const PackageContents &contents);

} // namespace kpkg::compiler
