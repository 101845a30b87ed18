// Tracks value numbers, ranges and conditions on the paths of an op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/ValueRanges.h"
#include "compiler/check/IntChoices.h"

#include <algorithm>

namespace kpkg::compiler {

using hir::Kind;

namespace {

/// Returns whether a node's value depends only on its operands, so that equal operands give equal values.
bool isPure(Kind kind) {
  switch (kind) {
  case Kind::Set:
  case Kind::If:
  case Kind::For:
  case Kind::While:
  case Kind::And: // have regions
  case Kind::Or:
  case Kind::Nothing:
  case Kind::Return:
#define HIR_EFFECT(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    return false;
  case Kind::Constant:
  case Kind::Get:
  case Kind::Parameter:
  case Kind::Result:
#define HIR_FLOW(Name)
#define HIR_BODY(Name)
#define HIR_EFFECT(Name)
#define HIR(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    break;
  }
  return true;
}

/// Returns whether the node is a tensor with the elements of operand 0, or a copy of these.
bool isTensorForm(Kind kind) {
  switch (kind) {
#define HIR_TENSOR_FORM(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    return true;
#define HIR_TENSOR_FORM(Name)
#define HIR(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    break;
  }
  return false;
}

} // namespace

std::string ValueRanges::keyOf(Kind kind, const std::vector<Number> &operands) {
  std::string key = std::to_string(static_cast<int>(kind));
  for (Number number : operands)
    key += " " + std::to_string(number);
  return key;
}

ValueRanges::Number ValueRanges::numberOf(const hir::Node *node) const {
  auto found = numbers.find(node);
  return found == numbers.end() ? 0 : found->second;
}

const hir::Node *ValueRanges::dtypeSource(const hir::Node *tensor) const {
  while (true) {
    if (tensor->kind == Kind::Get) {
      Number number = numberOf(tensor);
      if (!number || !definition[number] || definition[number] == tensor)
        return tensor;
      tensor = definition[number];
    } else if (tensor->kind == Kind::EmptyLike || isTensorForm(tensor->kind)) {
      tensor = tensor->operands[0];
    } else {
      return tensor;
    }
  }
}

void ValueRanges::record(const hir::Node *node) {
  if (definition.empty())
    definition.push_back(nullptr); // number 0: unknown
  auto fresh = [&] {
    definition.push_back(node);
    return static_cast<Number>(definition.size() - 1);
  };
  if (node->kind == Kind::Get) {
    auto found = variables.find(node->local);
    if (found == variables.end()) {
      definition.push_back(nullptr);
      found = variables.emplace(node->local, static_cast<Number>(definition.size() - 1)).first;
    }
    numbers[node] = found->second;
    return;
  }
  if (!isPure(node->kind)) {
    numbers[node] = fresh();
    return;
  }
  if (node->kind == Kind::DTypeOf) {
    numbers[node] = dtypeNumber(numberOf(node->operands[0]));
    return;
  }
  std::vector<Number> operands;
  for (const hir::Node *operand : node->operands) {
    operands.push_back(numberOf(operand));
    if (operands.back() == 0) {
      numbers[node] = fresh();
      return;
    }
  }
  std::string key = keyOf(node->kind, operands);
  for (int64_t value : node->ints)
    key += " #" + std::to_string(value);
  if (node->kind == Kind::Constant)
    key += node->value.str() + node->type->str();
  auto [entry, isNew] = byKey.emplace(key, 0);
  if (isNew)
    entry->second = fresh();
  numbers[node] = entry->second;
}

void ValueRanges::assign(const hir::Local *local, const hir::Node *value) { variables[local] = numberOf(value); }

void ValueRanges::forget(const hir::Local *local) { variables.erase(local); }

void ValueRanges::restore(State state) {
  ranges = std::move(state.ranges);
  gapped = std::move(state.gapped);
  truths = std::move(state.truths);
  variables = std::move(state.variables);
  knownDTypes = std::move(state.dtypes);
  unreachable = state.unreachable;
}

void ValueRanges::join(const State &a, bool aArrives, const State &b, bool bArrives) {
  if (!aArrives && !bArrives) {
    restore(a);
    unreachable = true;
    return;
  }
  if (!aArrives || !bArrives)
    return restore(aArrives ? a : b);
  State both;
  for (const auto &[number, range] : a.ranges)
    if (auto other = b.ranges.find(number); other != b.ranges.end())
      both.ranges[number] = {std::min(range.low, other->second.low), std::max(range.high, other->second.high)};
  for (const auto &[number, truth] : a.truths)
    if (auto other = b.truths.find(number); other != b.truths.end() && other->second == truth)
      both.truths[number] = truth;
  for (const auto &[number, list] : a.dtypes)
    if (auto other = b.dtypes.find(number); other != b.dtypes.end())
      both.dtypes[number] = list | other->second;
  std::vector<std::pair<const hir::Local *, Number>> differing;
  for (const auto &[local, number] : a.variables)
    if (auto other = b.variables.find(local); other != b.variables.end()) {
      if (other->second == number)
        both.variables[local] = number;
      else if (number != 0 && other->second != 0)
        differing.emplace_back(local, other->second);
    }
  // A variable that differs has one of two values.
  std::vector<Interval> intervals;
  using Choices = std::optional<std::vector<int64_t>>;
  std::vector<Choices> differingChoices;
  std::map<Number, Choices> choices;
  restore(a);
  for (const auto &[local, number] : differing) {
    intervals.push_back(rangeOf(a.variables.at(local), 0));
    differingChoices.push_back(choicesOf(a.variables.at(local), 0));
  }
  for (const auto &[number, range] : both.ranges)
    choices.emplace(number, choicesOf(number, 0));
  restore(b);
  for (auto &[number, list] : choices)
    list = eitherOf(std::move(list), choicesOf(number, 0));
  for (size_t i = 0; i < differing.size(); ++i) {
    Interval other = rangeOf(differing[i].second, 0);
    Interval either{std::min(intervals[i].low, other.low), std::max(intervals[i].high, other.high)};
    definition.push_back(nullptr);
    Number fresh = static_cast<Number>(definition.size() - 1);
    both.variables[differing[i].first] = fresh;
    both.ranges[fresh] = either;
    joinDTypes(differing[i].first, a, a.variables.at(differing[i].first), b, differing[i].second, both);
    choices.emplace(fresh, eitherOf(std::move(differingChoices[i]), choicesOf(differing[i].second, 0)));
  }
  for (auto &[number, list] : choices)
    if (list && hasGaps(*list))
      both.gapped.emplace(number, std::move(*list));
  both.unreachable = a.unreachable && b.unreachable;
  restore(std::move(both));
}

void ValueRanges::narrow(Number number, Interval to) {
  if (number == 0)
    return;
  Interval known = rangeOf(number, 0);
  Interval both{std::max(known.low, to.low), std::min(known.high, to.high)};
  if (auto few = gapped.find(number); few != gapped.end()) {
    std::vector<int64_t> kept = std::move(few->second);
    gapped.erase(few);
    std::erase_if(kept, [&](int64_t value) { return value < both.low || value > both.high; });
    return setChoices(number, std::move(kept));
  }
  ranges[number] = both;
  unreachable |= both.isEmpty();
}

void ValueRanges::bound(const hir::Node *index, const hir::Node *begin, const hir::Node *end) {
  Interval first = range(begin), last = range(end);
  ranges[numberOf(index)] = {first.low, last.high == INT64_MAX ? INT64_MAX : last.high - 1};
}

void ValueRanges::assumeCompare(Kind kind, const hir::Node *lhs, const hir::Node *rhs, bool truth) {
  if (!lhs->type->isScalar(DType::Int))
    return;
  if (!truth) {
    switch (kind) {
    case Kind::Less:
      return assumeCompare(Kind::LessEqual, rhs, lhs, true);
    case Kind::LessEqual:
      return assumeCompare(Kind::Less, rhs, lhs, true);
    case Kind::Greater:
      return assumeCompare(Kind::LessEqual, lhs, rhs, true);
    case Kind::GreaterEqual:
      return assumeCompare(Kind::Less, lhs, rhs, true);
    case Kind::Equal:
      kind = Kind::NotEqual;
      break;
    case Kind::NotEqual:
      kind = Kind::Equal;
      break;
#define HIR_COMPARISON(Name)
#define HIR(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
      return;
    }
  }
  Interval a = range(lhs), b = range(rhs);
  Number x = numberOf(lhs), y = numberOf(rhs);
  switch (kind) {
  case Kind::Greater:
    return assumeCompare(Kind::Less, rhs, lhs, true);
  case Kind::GreaterEqual:
    return assumeCompare(Kind::LessEqual, rhs, lhs, true);
  case Kind::Less:
    narrow(x, {INT64_MIN, b.high == INT64_MAX ? INT64_MAX : b.high - 1});
    narrow(y, {a.low == INT64_MIN ? INT64_MIN : a.low + 1, INT64_MAX});
    return;
  case Kind::LessEqual:
    narrow(x, {INT64_MIN, b.high});
    narrow(y, {a.low, INT64_MAX});
    return;
  case Kind::Equal:
    narrow(x, b);
    narrow(y, a);
    return;
  case Kind::NotEqual:
    if (b.low == b.high && a.low == b.low)
      narrow(x, {a.low + 1, INT64_MAX});
    else if (b.low == b.high && a.high == b.low)
      narrow(x, {INT64_MIN, a.high - 1});
    else if (b.low == b.high)
      exclude(x, b.low);
    return;
#define HIR_COMPARISON(Name)
#define HIR(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    return;
  }
}

void ValueRanges::assume(const hir::Node *condition, bool truth) {
  Number number = numberOf(condition);
  // Replaces a variable by the node that was assigned to it.
  if (condition->kind == Kind::Get && number && definition[number])
    condition = definition[number];
  if (auto known = this->truth(condition); known && *known != truth)
    unreachable = true;
  if (number)
    truths[number] = truth;
  if (condition->kind == Kind::DTypeEqual)
    return assumeDTypes(condition->operands[0], condition->operands[1], truth);
  switch (condition->kind) {
  case Kind::Not:
    return assume(condition->operands[0], !truth);
  case Kind::And:
  case Kind::Or:
    if (condition->regions.empty() || condition->regions[0]->yields.empty())
      return;
    if (truth != (condition->kind == Kind::And))
      return assumeEither(condition->operands[0], condition->regions[0]->yields[0], truth);
    assume(condition->operands[0], truth);
    assume(condition->regions[0]->yields[0], truth);
    return;
  case Kind::BitAnd:
  case Kind::BitOr:
    if (truth != (condition->kind == Kind::BitAnd))
      return assumeEither(condition->operands[0], condition->operands[1], truth);
    for (const hir::Node *operand : condition->operands)
      assume(operand, truth);
    return;
#define HIR_COMPARISON(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    return assumeCompare(condition->kind, condition->operands[0], condition->operands[1], truth);
  case Kind::Constant:
  case Kind::Get:
  case Kind::Set:
  case Kind::Nothing:
  case Kind::If:
  case Kind::For:
  case Kind::While:
  case Kind::BitXor:
  case Kind::ShiftLeft:
  case Kind::ShiftRight:
  case Kind::Invert:
#define HIR_FLOW(Name)
#define HIR_BITWISE(Name)
#define HIR_COMPARISON(Name)
#define HIR(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    return;
  }
}

std::optional<bool> ValueRanges::truth(const hir::Node *node) const {
  if (node->kind == Kind::Constant && node->value.isBool())
    return node->value.asBool();
  auto found = truths.find(numberOf(node));
  if (found != truths.end())
    return found->second;
  return node->kind == Kind::DTypeEqual ? dtypeTruth(node->operands[0], node->operands[1]) : std::nullopt;
}

void ValueRanges::joinAll(std::vector<State> paths) {
  if (paths.empty())
    return;
  bool several = paths.size() > 1;
  restore(std::move(paths.back()));
  paths.pop_back();
  for (const State &path : paths) {
    State before = save();
    join(before, !before.unreachable || path.unreachable, path, !path.unreachable);
  }
  if (several)
    truths[severalReturns] = true;
}

} // namespace kpkg::compiler
