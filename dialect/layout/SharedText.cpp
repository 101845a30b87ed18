// Prints and parses layouts of shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/Shared.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

namespace kpkg::layout {
std::string SharedLayout::str() const {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << fields.elementBytes << "B ";
  for (auto [dim, bases] : llvm::enumerate(fields.bases)) {
    if (bases.empty())
      continue;
    out << dim << ':';
    llvm::interleave(bases, out, ",");
    out << ' ';
  }
  out << "rep ";
  if (rank() == 0)
    out << "none";
  llvm::interleave(fields.repeats, out, "x");
  if (llvm::any_of(fields.repeats, [](int64_t repeat) { return repeat != 1; })) {
    out << " stride ";
    llvm::interleave(fields.strides, out, ",");
  }
  return text;
}

llvm::Expected<SharedLayout> SharedLayout::parse(llvm::StringRef text) {
  auto wrong = [&](llvm::StringRef what, llvm::StringRef word) {
    return llvm::createStringError(llvm::formatv("shared layout \"{0}\": {1} at \"{2}\"", text, what, word).str());
  };
  auto numbers = [](llvm::StringRef word, char separator, auto &into) {
    llvm::SmallVector<llvm::StringRef, 8> pieces;
    word.split(pieces, separator);
    return llvm::all_of(pieces, [&](llvm::StringRef piece) { return !piece.getAsInteger(10, into.emplace_back()); });
  };
  llvm::SmallVector<llvm::StringRef> tokens;
  llvm::SplitString(text, tokens);
  Fields fields;
  llvm::SmallVector<std::pair<unsigned, llvm::SmallVector<uint32_t, 8>>, 4> bases;
  bool hasRepeats = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    llvm::StringRef word = tokens[i];
    if (i == 0) {
      if (!word.consume_back("B") || word.getAsInteger(10, fields.elementBytes))
        return wrong("expected an element size such as 2B", word);
    } else if (word == "rep" && i + 1 < tokens.size() && !hasRepeats) {
      hasRepeats = true;
      if (tokens[++i] != "none" && !numbers(tokens[i], 'x', fields.repeats))
        return wrong("expected repeats such as 1x3", tokens[i]);
    } else if (word == "stride" && i + 1 < tokens.size() && fields.strides.empty()) {
      if (!numbers(tokens[++i], ',', fields.strides))
        return wrong("expected strides such as 0,4096", tokens[i]);
    } else {
      auto [dim, list] = word.split(':');
      auto &entry = bases.emplace_back();
      if (dim.getAsInteger(10, entry.first) || !numbers(list, ',', entry.second))
        return wrong("expected bases such as 0:128,256", word);
    }
  }
  if (!hasRepeats)
    return wrong("missing rep", tokens.empty() ? "" : tokens.back());
  unsigned rank = fields.repeats.size();
  if (fields.strides.empty())
    fields.strides.assign(rank, 0);
  fields.bases.resize(rank);
  for (auto &[dim, list] : bases) {
    if (dim >= rank || !fields.bases[dim].empty())
      return wrong("dimension given twice or beyond the rank", llvm::Twine(dim).str());
    fields.bases[dim] = std::move(list);
  }
  llvm::Expected<SharedLayout> layout = get(std::move(fields));
  if (!layout)
    return llvm::createStringError(
        llvm::formatv("shared layout \"{0}\": {1}", text, llvm::toString(layout.takeError())).str());
  return layout;
}
} // namespace kpkg::layout
