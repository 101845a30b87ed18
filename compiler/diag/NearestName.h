// The known name that a wrong one was probably meant to be.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/source/Source.h"
#include <string>
#include <string_view>
#include <vector>

namespace kpkg::compiler {

class DiagnosticEngine;

/// The candidate that fewest changes of single letters make of `wrong` (two neighbours that changed places are one
/// change), the first of several; empty where that takes more than a third of its letters. Names of fewer than four
/// letters have no such candidates: they are too much alike.
std::string nearestName(std::string_view wrong, const std::vector<std::string> &candidates);

/// Reports that nothing is called `name`, with the nearest of `known` as a fix.
void reportUnknownName(DiagnosticEngine &diags, const std::string &name, SourceRange range,
                       const std::vector<std::string> &known);
/// The same for an attribute or a method of what is described as `base`.
void reportUnknownAttribute(DiagnosticEngine &diags, const std::string &base, const std::string &name,
                            SourceRange range, const std::vector<std::string> &known);

} // namespace kpkg::compiler
