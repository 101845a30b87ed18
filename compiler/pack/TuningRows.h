// Rows of tuning tables, from files beside the sources, for the instances that a build made.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/pack/Package.h"

namespace kpkg::compiler {

/// Adds to the tuning table of `contents` the rows of `text`, as `kpkg tune --rows` writes them, whose instance the
/// build made; others, such as those for another target, are left out with a note. `name` stands for the file in
/// messages.
llvm::Error addTuningRows(PackageContents &contents, const std::string &name, const std::string &text,
                          std::vector<std::string> &notes);

} // namespace kpkg::compiler
