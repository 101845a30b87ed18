// Finds the known name nearest to a wrong one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/source/Source.h"
#include <string>
#include <string_view>
#include <vector>

namespace kpkg::compiler {

class DiagnosticEngine;

/// Returns the candidate with the smallest edit distance to `wrong`, the first of several. Exchanging two adjacent
/// letters counts as one edit. The result is empty if the distance exceeds a third of the letters, or for names of
/// fewer than four letters, which are too similar.
std::string nearestName(std::string_view wrong, const std::vector<std::string> &candidates);

/// Reports that nothing is called `name`, with the nearest of `known` as a fix.
void reportUnknownName(DiagnosticEngine &diags, const std::string &name, SourceRange range,
                       const std::vector<std::string> &known);
/// Reports an unknown attribute or method of a value described as `base`, with the nearest of `known` as a fix.
void reportUnknownAttribute(DiagnosticEngine &diags, const std::string &base, const std::string &name,
                            SourceRange range, const std::vector<std::string> &known);

} // namespace kpkg::compiler
