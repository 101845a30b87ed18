// Prints and parses layouts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/Layout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace kpkg::layout {
namespace {
constexpr std::array<llvm::StringRef, partCount> words = {"reg", "lane", "warp", "block"};

/// Returns the only dimension in which a basis moves, or nothing when it is free or moves in several.
std::optional<unsigned> onlyDim(const Layout::Basis &basis) {
  std::optional<unsigned> found;
  for (auto [dim, value] : llvm::enumerate(basis)) {
    if (value == 0)
      continue;
    if (found)
      return std::nullopt;
    found = dim;
  }
  return found;
}

void printSum(llvm::raw_ostream &out, const Layout::Basis &basis) {
  llvm::ListSeparator plus("+");
  for (auto [dim, value] : llvm::enumerate(basis))
    if (value != 0)
      out << plus << dim << ':' << value;
}

/// Prints the longest run that starts at `bases[0]` and returns its length.
unsigned printRun(llvm::raw_ostream &out, llvm::ArrayRef<Layout::Basis> bases) {
  unsigned length = 1;
  if (llvm::all_of(bases.front(), [](int32_t value) { return value == 0; })) {
    while (length < bases.size() && bases[length] == bases.front())
      ++length;
    out << '*';
    if (length > 1)
      out << length;
    return length;
  }
  printSum(out, bases.front());
  std::optional<unsigned> dim = onlyDim(bases.front());
  if (!dim)
    return 1;
  while (length < bases.size() && onlyDim(bases[length]) == dim && bases[length][*dim] == 2 * bases[length - 1][*dim])
    ++length;
  if (length > 1)
    out << '-' << bases[length - 1][*dim];
  return length;
}

using Terms = llvm::SmallVector<std::pair<unsigned, int32_t>, 2>;

/// Appends the bases of one word. Returns false when the word is malformed.
bool parseRun(llvm::StringRef word, llvm::SmallVectorImpl<Terms> &bases) {
  if (word.consume_front("*")) {
    unsigned count = 1;
    if (!word.empty() && (word.getAsInteger(10, count) || count == 0 || count > 16))
      return false;
    bases.append(count, Terms());
    return true;
  }
  Terms terms;
  llvm::SmallVector<llvm::StringRef, 2> pieces;
  word.split(pieces, '+');
  for (llvm::StringRef piece : pieces) {
    auto [dimText, valueText] = piece.split(':');
    auto [firstText, lastText] = valueText.split('-');
    unsigned dim;
    int32_t first, last;
    if (dimText.getAsInteger(10, dim) || dim > 15 || firstText.getAsInteger(10, first) || first <= 0)
      return false;
    if (valueText.contains('-')) {
      if (pieces.size() != 1 || lastText.getAsInteger(10, last) || last <= first)
        return false;
      for (; first < last; first *= 2)
        bases.push_back({{dim, first}});
      if (first != last)
        return false;
    }
    terms.push_back({dim, first});
  }
  bases.push_back(terms);
  return true;
}

template <typename Number>
bool parseList(llvm::StringRef word, char separator, llvm::SmallVectorImpl<Number> &numbers) {
  llvm::SmallVector<llvm::StringRef, 4> pieces;
  word.split(pieces, separator);
  for (llvm::StringRef piece : pieces)
    if (piece.getAsInteger(10, numbers.emplace_back()))
      return false;
  return true;
}
} // namespace

std::string Layout::str() const {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (Part part : parts) {
    llvm::ArrayRef<Basis> rest = bases(part);
    if (rest.empty())
      continue;
    out << words[static_cast<unsigned>(part)] << ' ';
    while (!rest.empty()) {
      rest = rest.drop_front(printRun(out, rest));
      out << ' ';
    }
  }
  out << "rep ";
  if (rank() == 0)
    out << "none";
  llvm::interleave(repeats(), out, "x");
  llvm::SmallVector<unsigned, 4> repeating, sorted;
  for (unsigned dim : order())
    if (repeats()[dim] != 1)
      repeating.push_back(dim);
  sorted = repeating;
  llvm::sort(sorted, std::greater<>());
  if (repeating != sorted) {
    out << " order ";
    llvm::interleave(order(), out, ",");
  }
  return text;
}

llvm::Expected<Layout> Layout::parse(llvm::StringRef text) {
  auto wrong = [&](llvm::StringRef what, llvm::StringRef word) {
    return llvm::createStringError(llvm::formatv("layout \"{0}\": {1} at \"{2}\"", text, what, word).str());
  };
  llvm::SmallVector<llvm::StringRef> tokens;
  llvm::SplitString(text, tokens);
  std::array<llvm::SmallVector<Terms>, partCount> bases;
  std::array<bool, partCount> seen = {};
  Fields fields;
  bool hasRepeats = false;
  int current = -1;
  for (size_t i = 0; i < tokens.size(); ++i) {
    llvm::StringRef word = tokens[i];
    const auto *known = llvm::find(words, word);
    if (known != words.end()) {
      current = known - words.begin();
      if (std::exchange(seen[current], true))
        return wrong("part given twice", word);
    } else if (word == "rep" && i + 1 < tokens.size() && !hasRepeats) {
      hasRepeats = true;
      current = -1;
      if (tokens[++i] != "none" && !parseList(tokens[i], 'x', fields.repeats))
        return wrong("expected repeats such as 1x3", tokens[i]);
    } else if (word == "order" && i + 1 < tokens.size() && fields.order.empty()) {
      current = -1;
      if (!parseList(tokens[++i], ',', fields.order))
        return wrong("expected dimensions such as 1,0", tokens[i]);
    } else if (current < 0) {
      return wrong("expected reg, lane, warp, block, rep or order", word);
    } else if (!parseRun(word, bases[current])) {
      return wrong("expected a basis such as 1:8, 1:1-8, 0:1+1:4, * or *3", word);
    }
  }
  if (!hasRepeats)
    return wrong("missing rep", tokens.empty() ? "" : tokens.back());
  for (unsigned part = 0; part < partCount; ++part)
    for (const Terms &terms : bases[part]) {
      Basis basis(fields.repeats.size(), 0);
      for (auto [dim, value] : terms) {
        if (dim >= basis.size() || basis[dim] != 0)
          return wrong("dimension given twice or beyond the rank", llvm::formatv("{0}:{1}", dim, value).str());
        basis[dim] = value;
      }
      fields.bases[part].push_back(basis);
    }
  llvm::Expected<Layout> layout = get(std::move(fields));
  if (!layout)
    return llvm::createStringError(
        llvm::formatv("layout \"{0}\": {1}", text, llvm::toString(layout.takeError())).str());
  return layout;
}
} // namespace kpkg::layout
