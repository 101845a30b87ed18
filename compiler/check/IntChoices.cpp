// Computes the few values that an Int can have, beyond its range.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/IntChoices.h"
#include "compiler/check/ValueRanges.h"

#include <algorithm>

namespace kpkg::compiler {

using hir::Kind;
using Choices = std::optional<std::vector<int64_t>>;

bool hasGaps(const std::vector<int64_t> &values) {
  return !values.empty() && uint64_t(values.back()) - uint64_t(values.front()) != values.size() - 1;
}

/// Returns the values in ascending order without repetition; nothing if there are too many.
static Choices sorted(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (values.size() > ValueRanges::maxChoices)
    return std::nullopt;
  return values;
}

Choices eitherOf(Choices a, const Choices &b) {
  if (!a || !b)
    return std::nullopt;
  a->insert(a->end(), b->begin(), b->end());
  return sorted(std::move(*a));
}

/// Returns nothing if the result has no value, or does not fit.
static std::optional<int64_t> computed(Kind kind, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (kind) {
  case Kind::Add:
    return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  case Kind::Sub:
    return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  case Kind::Mul:
    return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  case Kind::FloorDiv:
    return b <= 0 ? std::nullopt : std::optional(a / b - (a % b < 0));
  case Kind::Mod:
    return b <= 0 ? std::nullopt : std::optional(a % b + (a % b < 0 ? b : 0));
  case Kind::Min:
    return std::min(a, b);
  case Kind::Max:
    return std::max(a, b);
  case Kind::Div: // of floats
  case Kind::Pow:
  case Kind::Negate:
#define HIR_ARITHMETIC(Name)
#define HIR(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    break;
  }
  return std::nullopt;
}

Choices ValueRanges::computedChoices(const hir::Node &node, unsigned depth) const {
  if (node.operands.size() != 2 || !computed(node.kind, 1, 1))
    return std::nullopt;
  std::vector<int64_t> operands[2], results;
  for (size_t i = 0; i < 2; ++i) {
    const hir::Node *operand = node.operands[i];
    Choices list = operand->kind == Kind::Constant && operand->value.isInt() ? Choices({operand->value.asInt()})
                                                                             : choicesOf(numberOf(operand), depth + 1);
    if (!list)
      return std::nullopt;
    operands[i] = std::move(*list);
  }
  for (int64_t a : operands[0])
    for (int64_t b : operands[1]) {
      std::optional<int64_t> value = computed(node.kind, a, b);
      if (!value)
        return std::nullopt;
      results.push_back(*value);
    }
  return sorted(std::move(results));
}

Choices ValueRanges::choicesOf(Number number, unsigned depth) const {
  constexpr unsigned maxDepth = 4;
  if (number == 0)
    return std::nullopt;
  if (auto few = gapped.find(number); few != gapped.end())
    return few->second;
  Interval range = rangeOf(number, depth);
  bool isShort = range.isEmpty() || (range.low != INT64_MIN && range.high != INT64_MAX &&
                                     uint64_t(range.high) - uint64_t(range.low) < maxChoices);
  if (definition[number] && depth < maxDepth)
    if (Choices list = computedChoices(*definition[number], depth)) {
      std::erase_if(*list, [&](int64_t value) { return value < range.low || value > range.high; });
      return list;
    }
  if (!isShort)
    return std::nullopt;
  std::vector<int64_t> values;
  if (!range.isEmpty())
    for (int64_t value = range.low; value <= range.high; ++value)
      values.push_back(value);
  return values;
}

Choices ValueRanges::choices(const hir::Node *node) const {
  if (node->kind == Kind::Constant && node->value.isInt())
    return Choices({node->value.asInt()});
  return choicesOf(numberOf(node), 0);
}

void ValueRanges::setChoices(Number number, std::vector<int64_t> values) {
  unreachable |= values.empty();
  ranges[number] = values.empty() ? Interval{1, 0} : Interval{values.front(), values.back()};
  gapped.erase(number);
  if (hasGaps(values))
    gapped[number] = std::move(values);
}

void ValueRanges::exclude(Number number, int64_t value) {
  Choices list = choicesOf(number, 0);
  if (!list || std::erase(*list, value) == 0)
    return;
  setChoices(number, std::move(*list));
}

void ValueRanges::assumeEither(const hir::Node *one, const hir::Node *other, bool truth) {
  State before = save();
  assume(one, truth);
  State first = save();
  restore(std::move(before));
  assume(other, truth);
  State second = save();
  join(first, !first.unreachable, second, !second.unreachable);
}

} // namespace kpkg::compiler
