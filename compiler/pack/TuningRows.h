// Adds rows of tuning tables from files in source folders, for the instances of a build.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/pack/Package.h"

namespace kpkg::compiler {

/// Adds the rows of `text`, as written by `kpkg tune --rows`, to the tuning table of `contents`. Rows without an
/// instance in this build, such as those for another target, are skipped with a note. `name` is the file's name in
/// messages.
llvm::Error addTuningRows(PackageContents &contents, const std::string &name, const std::string &text,
                          std::vector<std::string> &notes);

} // namespace kpkg::compiler
