// Finds signatures of built-in names, and rows of docs/language.md.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/BuiltinPage.h"
#include "compiler/check/TypeNames.h"
#include "compiler/comptime/DType.h"
#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

extern const std::string_view kpkgLanguagePage, kpkgSignatures;

namespace kpkg::lsp {

namespace {

/// Adds the names within the code spans of a cell. Those of members come a second time, with their dot.
void addNames(std::string_view cell, std::vector<std::string> &names) {
  bool inCode = false, isMember = false;
  std::string word;
  for (char c : cell) {
    bool isInWord = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    if (isInWord && inCode) {
      word += c;
      continue;
    }
    if (!word.empty() && isMember)
      names.push_back("." + word);
    if (!word.empty())
      names.push_back(std::exchange(word, ""));
    isMember = c == '.';
    inCode ^= c == '`';
  }
}

/// Splits a row of a table into its cells. `\|` is no border.
std::vector<std::string_view> cellsOf(std::string_view row) {
  std::vector<std::string_view> cells;
  size_t begin = 1;
  for (size_t at = 1; at < row.size(); ++at)
    if (row[at] == '|' && row[at - 1] != '\\') {
      cells.push_back(row.substr(begin, at - begin));
      begin = at + 1;
    }
  return cells;
}

std::map<std::string, std::string> readPage() {
  std::map<std::string, std::string> rows;
  std::string_view page = kpkgLanguagePage;
  for (size_t begin = 0; begin < page.size();) {
    size_t end = std::min(page.find('\n', begin), page.size());
    std::string_view line = page.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with("| ") || line.find('`') == std::string_view::npos)
      continue;
    auto cells = cellsOf(line);
    if (cells.size() != 2)
      continue;
    std::string text(cells[0]);
    text = text.substr(1) + "\xE2\x80\x94" + std::string(cells[1]); // an em dash
    std::vector<std::string> names;
    for (std::string_view cell : cells)
      addNames(cell, names);
    for (const std::string &name : names)
      rows.emplace(name, text); // the first row of the page counts
  }
  return rows;
}

std::string_view trimmed(std::string_view text) {
  size_t begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

/// A row of signatures.txt: `base | signature | meaning |`.
struct Signature {
  std::string_view base, text, meaning;
};

/// Functions have no base, or "Op" if they have another meaning in ops.
bool isFunction(std::string_view base) { return base.empty() || base == "Op"; }

/// Maps the names of functions, and those of methods with a dot, to their rows.
std::multimap<std::string, Signature> readSignatures() {
  std::multimap<std::string, Signature> rows;
  std::string_view page = kpkgSignatures;
  for (size_t begin = 0; begin < page.size();) {
    size_t end = std::min(page.find('\n', begin), page.size());
    std::string_view line = page.substr(begin, end - begin);
    begin = end + 1;
    size_t first = line.find('|'), last = line.rfind('|');
    size_t second = line.find('|', first + 1);
    bool isRow = !line.starts_with('#') && !line.starts_with('+') && !line.starts_with('@');
    if (!isRow || second == std::string_view::npos || second == last)
      continue;
    Signature row{trimmed(line.substr(0, first)), trimmed(line.substr(first + 1, second - first - 1)),
                  trimmed(line.substr(second + 1, last - second - 1))};
    std::string name(row.text.substr(0, row.text.find_first_of("[(")));
    rows.emplace((isFunction(row.base) ? "" : ".") + name, row);
  }
  return rows;
}

const std::multimap<std::string, Signature> &signatures() {
  static const std::multimap<std::string, Signature> rows = readSignatures();
  return rows;
}

} // namespace

std::vector<std::string> builtinArguments(const std::string &name) {
  std::vector<std::string> names;
  auto [first, last] = signatures().equal_range(name);
  for (auto row = first; row != last; ++row) {
    std::string_view text = row->second.text;
    size_t open = text.find('(');
    if (open == std::string_view::npos)
      continue;
    for (size_t begin = open + 1; begin < text.size();) {
      size_t end = std::min(text.find_first_of(",)", begin), text.size());
      std::string_view argument = trimmed(text.substr(begin, end - begin));
      argument = argument.substr(0, argument.find('='));
      begin = end + 1;
      if (!argument.empty() && argument != "*" && !argument.ends_with("..."))
        names.emplace_back(argument);
    }
  }
  return names;
}

std::string builtinDocumentation(const std::string &name) {
  std::string lines;
  auto [first, last] = signatures().equal_range(name);
  for (auto row = first; row != last; ++row) {
    const Signature &one = row->second;
    lines += (lines.empty() ? "" : "\n") + std::string(one.base.empty() ? "" : "* " + std::string(one.base) + ": ");
    lines +=
        "`" + std::string(isFunction(one.base) ? "" : ".") + std::string(one.text) + "`: " + std::string(one.meaning);
  }
  if (!lines.empty())
    return lines;
  static const std::map<std::string, std::string> rows = readPage();
  auto found = rows.find(name);
  if (found == rows.end() && name.starts_with("."))
    found = rows.find(name.substr(1));
  return found == rows.end() ? "" : found->second;
}

const std::vector<std::string> &builtinFunctions() {
  static const std::vector<std::string> names = {
#define BUILTIN(name, handler) #name,
#define SAME(name, handler) #name,
#include "compiler/check/Builtins.def"
      // Words with a meaning in a statement, which no handler checks.
      "range", "output_tiles", "block_idx", "grid_dim", "thread_idx", "block_dim", "global_idx", "target", "Error"};
  return names;
}

const std::vector<std::string> &builtinTypes() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all(std::begin(compiler::typeNames), std::end(compiler::typeNames));
    for (std::string &name : compiler::dtypeTypeNames())
      all.push_back(std::move(name));
    return all;
  }();
  return names;
}

/// Returns whether what is listed for `of` belongs to `base`. Scratch memory has all that other memory has.
static bool belongsTo(std::string_view of, std::string_view base) {
  return base.empty() || of == base || (base == "Scratch" && of == "View");
}

std::vector<std::string> methodsOf(std::string_view base) {
  std::vector<std::string> names;
  auto add = [&](std::string_view of, const char *name) {
    if (belongsTo(of, base))
      names.emplace_back(name);
  };
#define METHOD(of, name, handler) add(#of, #name);
#define SAMEMETHOD(of, name, handler) add(#of, #name);
#include "compiler/check/Builtins.def"
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> attributesOf(std::string_view base) {
  std::vector<std::string> names;
  auto add = [&](std::string_view of, const char *name) {
    if (belongsTo(of, base))
      names.emplace_back(name);
  };
#define ATTRIBUTE(of, name) add(#of, #name);
#include "compiler/check/Builtins.def"
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

} // namespace kpkg::lsp
