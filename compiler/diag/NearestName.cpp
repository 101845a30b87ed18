// Finds the known name nearest to a wrong one by the restricted edit distance (Damerau, Levenshtein).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/NearestName.h"
#include "compiler/diag/Diagnostics.h"
#include "compiler/diag/ForeignNames.h"

#include <algorithm>
#include <utility>

namespace kpkg::compiler {

static size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> beforeLast, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], beforeLast[j - 2] + 1);
    }
    beforeLast = std::exchange(last, row);
  }
  return last[b.size()];
}

std::string nearestName(std::string_view wrong, const std::vector<std::string> &candidates) {
  constexpr size_t shortest = 4, longest = 64;
  std::string nearest;
  if (wrong.size() < shortest || wrong.size() > longest)
    return nearest;
  size_t fewest = wrong.size() / 3 + 1;
  for (const std::string &candidate : candidates)
    if (candidate.size() >= shortest && candidate.size() <= longest)
      if (size_t changes = distance(wrong, candidate); changes < fewest) {
        fewest = changes;
        nearest = candidate;
      }
  return nearest;
}

static void fix(DiagnosticBuilder report, const std::string &name, SourceRange range,
                const std::vector<std::string> &known) {
  if (std::string nearest = nearestName(name, known); !nearest.empty())
    report.fix(range, nearest);
}

void reportUnknownName(DiagnosticEngine &diags, const std::string &name, SourceRange range,
                       const std::vector<std::string> &known) {
  if (std::string_view advice = adviceForForeignName(name); !advice.empty()) {
    diags.report(diag::NotInLanguage, range, name, advice);
    return;
  }
  fix(diags.report(diag::UnknownName, range, name), name, range, known);
}

void reportUnknownAttribute(DiagnosticEngine &diags, const std::string &base, const std::string &name,
                            SourceRange range, const std::vector<std::string> &known) {
  fix(diags.report(diag::UnknownAttribute, range, base, name), name, range, known);
}

} // namespace kpkg::compiler
