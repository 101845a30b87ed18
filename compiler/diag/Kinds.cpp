// Implements the table of all kinds, look-up by code, and the long explanations.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/Kinds.h"
#include <algorithm>
#include <array>
#include <string>
#include <vector>

using namespace kpkg::compiler;

// Generated from docs/diagnostics.md.
extern const std::string_view kpkgDiagnosticsPage;

namespace {
struct Numbered {
  KindInfo info;
  int number;
};
// Notes have no code, because they never stand alone.
constexpr Numbered numbered[] = {
#define KPKG_ERROR(Name, Number, Text, ...) {{DiagnosticId::Name, #Name, {}, Severity::Error, Text}, Number},
#define KPKG_WARNING(Name, Number, Text, ...) {{DiagnosticId::Name, #Name, {}, Severity::Warning, Text}, Number},
#define KPKG_NOTE(Name, Text, ...) {{DiagnosticId::Name, #Name, {}, Severity::Note, Text}, 0},
#include "compiler/diag/Diagnostics.def"
};
constexpr size_t kindCount = std::size(numbered);

constexpr bool numbersAreUnique() {
  for (size_t i = 0; i < kindCount; ++i)
    for (size_t j = i + 1; j < kindCount; ++j)
      if (numbered[i].number != 0 && numbered[i].number == numbered[j].number)
        return false;
  return true;
}
static_assert(numbersAreUnique(), "two kinds in Diagnostics.def have the same number");

struct Table {
  std::array<std::string, kindCount> codes;
  std::vector<KindInfo> kinds;
  Table() {
    for (size_t i = 0; i < kindCount; ++i) {
      kinds.push_back(numbered[i].info);
      if (numbered[i].number == 0)
        continue;
      codes[i] = fmt::format("K{:04}", numbered[i].number);
      kinds.back().code = codes[i];
    }
  }
};
const Table &table() {
  static const Table table;
  return table;
}
} // namespace

std::span<const KindInfo> kpkg::compiler::allKinds() { return table().kinds; }

const KindInfo &kpkg::compiler::info(DiagnosticId id) { return table().kinds[static_cast<size_t>(id)]; }

const KindInfo *kpkg::compiler::findKind(std::string_view code) {
  if (!code.empty() && (code.front() == 'K' || code.front() == 'k'))
    code.remove_prefix(1);
  if (code.empty() || code.size() > 4 ||
      !std::all_of(code.begin(), code.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return nullptr;
  int number = std::stoi(std::string(code));
  for (size_t i = 0; i < kindCount; ++i)
    if (number != 0 && numbered[i].number == number)
      return &table().kinds[i];
  return nullptr;
}

std::string_view kpkg::compiler::explanation(DiagnosticId id) {
  // A section is "## K0121: title" up to the next "## ".
  std::string_view code = info(id).code;
  if (code.empty())
    return {};
  std::string_view page = kpkgDiagnosticsPage;
  size_t begin = page.find(fmt::format("\n## {}:", code));
  if (begin == std::string_view::npos)
    return {};
  begin += 1;
  size_t end = page.find("\n## ", begin);
  std::string_view section = page.substr(begin, end == std::string_view::npos ? end : end + 1 - begin);
  return section;
}
