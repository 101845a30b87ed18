// Collects and finds types.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/Types.h"
#include "compiler/check/Members.h"
#include "compiler/comptime/FunctionEntity.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kpkg::lsp {

using compiler::Type, compiler::TypeKind, compiler::Value;

Types::Types(Text text, std::vector<Entry> entries, GpuFindings gpu)
    : checked(std::move(text)), all(std::move(entries)), findings(std::move(gpu)) {
  std::sort(all.begin(), all.end());
}

llvm::ArrayRef<LayoutAt> Types::layoutsAt(uint32_t begin) const {
  auto there = std::ranges::equal_range(findings.layouts, begin, {}, &LayoutAt::begin);
  return {there.data(), there.size()};
}

const Types::Entry *Types::at(Span span) const {
  auto found = std::lower_bound(all.begin(), all.end(), span,
                                [](const Entry &entry, const Span &wanted) { return entry.span < wanted; });
  return found != all.end() && found->span == span ? &*found : nullptr;
}

static std::string sizeText(uint64_t bytes) {
  constexpr uint64_t kib = 1024;
  return bytes < kib || bytes % kib != 0 ? fmt::format("{} bytes", bytes) : fmt::format("{} KiB", bytes / kib);
}

static std::string memoryOf(const Type &type) {
  if (type.kind != TypeKind::Tile && type.kind != TypeKind::Window && !type.isScratch())
    return "";
  uint64_t bits = uint64_t(type.size()) * bitsOf(type.element);
  return fmt::format("{} elements of {} bits, {}", fmt::join(type.shape, " x "), bitsOf(type.element),
                     sizeText((bits + 7) / 8));
}

static TypeAt described(const Type &type, const Value *value) {
  TypeAt at{type.str(), memoryOf(type), std::string(memberBaseOf(type))};
  if (type.isStruct())
    at.structName = type.structure->name();
  if (!value)
    return at;
  constexpr size_t longest = 80;
  std::string text = value->str();
  if (text.size() > longest)
    text = text.substr(0, longest) + "...";
  if (value->isDType())
    at.members = "DType";
  at.text = type.isNone() ? "= " + text : at.text + " = " + text; // values of modules come without a type
  return at;
}

void TypeCollector::add(compiler::SourceRange range, const Type &type, const Value *value) {
  Found &found = places[{range.file, range.begin, range.end}];
  bool isRepeated = found.lastType == &type && !found.lastHadValue && !value;
  if (found.hasMore || isRepeated)
    return;
  found.lastType = &type;
  found.lastHadValue = value != nullptr;
  TypeAt at = described(type, value);
  for (const TypeAt &known : found.types)
    if (known.text == at.text)
      return;
  if (found.types.size() == Types::maxTypes) {
    found.hasMore = true;
  } else {
    found.types.push_back(std::move(at));
    found.structFiles.push_back(type.isStruct() ? type.structure->syntax->name.range.file : range.file);
  }
}

std::vector<Types::Entry> TypeCollector::take(uint32_t file, llvm::function_ref<std::string(uint32_t)> pathOf) const {
  std::vector<Types::Entry> entries;
  for (const auto &[place, found] : places)
    if (place.file == file) {
      Types::Entry &entry = entries.emplace_back(Types::Entry{{place.begin, place.end}, found.types, found.hasMore});
      for (size_t i = 0; i < entry.types.size(); ++i)
        if (!entry.types[i].structName.empty())
          entry.types[i].structPath = pathOf(found.structFiles[i]);
    }
  return entries;
}

} // namespace kpkg::lsp
