// Computes lists of the few values that an Int can have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/IntChoices.h"

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
  if (values.size() > maxChoices)
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

bool computesChoices(Kind kind) { return computed(kind, 1, 1).has_value(); }

Choices computedChoices(Kind kind, const std::vector<int64_t> &lhs, const std::vector<int64_t> &rhs) {
  std::vector<int64_t> results;
  for (int64_t a : lhs)
    for (int64_t b : rhs) {
      std::optional<int64_t> value = computed(kind, a, b);
      if (!value)
        return std::nullopt;
      results.push_back(*value);
    }
  return sorted(std::move(results));
}

} // namespace kpkg::compiler
