// Follows the values that a DType can have on the current path.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/ValueRanges.h"

#include <algorithm>

namespace kpkg::compiler {

using hir::Kind;

ValueRanges::Number ValueRanges::dtypeNumber(Number tensor) {
  // Views and copies of a tensor have its dtype. A new tensor has the dtype that it was created with.
  const hir::Node *source = definition[tensor] ? dtypeSource(definition[tensor]) : nullptr;
  if (source && source->kind == Kind::Empty)
    return numberOf(source->operands[1]);
  auto [entry, isNew] = byKey.emplace("dtype " + std::to_string(source ? numberOf(source) : tensor), 0);
  if (isNew) {
    definition.push_back(nullptr);
    entry->second = static_cast<Number>(definition.size() - 1);
  }
  return entry->second;
}

ValueRanges::DTypes ValueRanges::dtypesOf(Number number, const std::map<Number, DTypes> &known) const {
  if (auto found = known.find(number); found != known.end())
    return found->second;
  const hir::Node *node = definition[number];
  bool isConstant = node && node->kind == Kind::Constant && node->value.isDType();
  return isConstant ? DTypes().set(size_t(node->value.asDType())) : DTypes().set();
}

void ValueRanges::setDTypes(Number number, DTypes values) {
  unreachable |= values.none();
  if (number != 0)
    knownDTypes[number] = values;
}

std::optional<bool> ValueRanges::dtypeTruth(const hir::Node *lhs, const hir::Node *rhs) const {
  if (sameValue(lhs, rhs))
    return true;
  for (auto [one, other] : {std::pair(lhs, rhs), std::pair(rhs, lhs)}) {
    auto test = byKey.find(keyOf(Kind::DTypeEqual, {numberOf(one), numberOf(other)}));
    if (auto found = test == byKey.end() ? truths.end() : truths.find(test->second); found != truths.end())
      return found->second;
  }
  DTypes one = dtypesOf(numberOf(lhs)), other = dtypesOf(numberOf(rhs));
  if (one.count() == 1 && one == other)
    return true;
  return (one & other).none() ? std::optional(false) : std::nullopt;
}

void ValueRanges::assumeDTypes(const hir::Node *lhs, const hir::Node *rhs, bool truth) {
  Number x = numberOf(lhs), y = numberOf(rhs);
  DTypes one = dtypesOf(x), other = dtypesOf(y);
  if (truth) {
    setDTypes(x, one & other);
    setDTypes(y, one & other);
    return;
  }
  if (other.count() == 1)
    setDTypes(x, one & ~other);
  if (one.count() == 1)
    setDTypes(y, other & ~one);
}

bool ValueRanges::agree(Number number, DType value, Number other, DType otherValue) const {
  auto found = paths.find(number);
  return found == paths.end() || std::any_of(found->second.begin(), found->second.end(), [&](const Path &path) {
           return dtypesOf(path.value, path.known)[size_t(value)] && dtypesOf(other, path.known)[size_t(otherValue)] &&
                  (path.value != other || value == otherValue) && agree(path.value, value, other, otherValue);
         });
}

bool ValueRanges::mayBe(const hir::Node *node, DType value, const hir::Node *other, DType otherValue) const {
  if (!mayBe(node, value) || !mayBe(other, otherValue))
    return false;
  if (auto equal = dtypeTruth(node, other); equal && *equal != (value == otherValue))
    return false;
  Number x = numberOf(node), y = numberOf(other);
  return agree(x, value, y, otherValue) && agree(y, otherValue, x, value);
}

void ValueRanges::joinDTypes(const hir::Local *local, const State &a, Number one, const State &b, Number other,
                             State &both) {
  Number number = both.variables.at(local);
  if (local->type->isTensor() || local->type->isOptionalTensor()) {
    auto isAbsent = [&](Number tensor) { return definition[tensor] && definition[tensor]->kind == Kind::NoTensor; };
    // A tensor that is absent has no dtype, and reading one is an error.
    Number first = dtypeNumber(isAbsent(one) ? other : one);
    other = dtypeNumber(isAbsent(other) ? one : other);
    one = first;
    if (one == other) {
      byKey["dtype " + std::to_string(number)] = one;
      return;
    }
    number = dtypeNumber(number);
  } else if (local->type->kind != TypeKind::DType) {
    return;
  }
  paths[number] = {{one, a.dtypes}, {other, b.dtypes}};
  both.dtypes[number] = dtypesOf(one, a.dtypes) | dtypesOf(other, b.dtypes);
}

} // namespace kpkg::compiler
