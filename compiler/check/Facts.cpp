// Value numbers, ranges and conditions on the paths of an op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Facts.h"
#include "compiler/check/IntChoices.h"

#include <algorithm>

namespace kpkg::compiler {

using hir::Kind;

namespace {

constexpr Interval everything;
constexpr Interval notNegative{0, INT64_MAX};
/// The runtime clamps what devices say to this.
constexpr int64_t maxProcessors = 65535;

/// Nodes whose value follows from their operands alone: equal operands give equal values.
bool isPure(Kind kind) {
  switch (kind) {
  case Kind::Set:
  case Kind::If:
  case Kind::For:
  case Kind::While:
  case Kind::And: // hold regions
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

/// Whether the node is a tensor with the elements of operand 0, or a copy of these.
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

/// Saturating: the ends of the range mean "no bound".
int64_t plus(int64_t a, int64_t b) {
  if (a == INT64_MIN || b == INT64_MIN)
    return INT64_MIN;
  if (a == INT64_MAX || b == INT64_MAX)
    return INT64_MAX;
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? (a > 0 ? INT64_MAX : INT64_MIN) : sum;
}

int64_t times(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    return (a > 0) == (b > 0) ? INT64_MAX : INT64_MIN;
  return product;
}

int64_t negative(int64_t a) { return a == INT64_MIN ? INT64_MAX : a == INT64_MAX ? INT64_MIN : -a; }

int64_t floorDivide(int64_t a, int64_t b) {
  if (a == INT64_MIN || a == INT64_MAX)
    return b > 0 ? a : negative(a);
  int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

} // namespace

Facts::Number Facts::numberOf(const hir::Node *node) const {
  auto found = numbers.find(node);
  return found == numbers.end() ? 0 : found->second;
}

const hir::Node *Facts::dtypeSource(const hir::Node *tensor) const {
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

void Facts::record(const hir::Node *node) {
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
    // Views and copies of a tensor have its dtype; a new tensor has the one that it was made with.
    const hir::Node *source = dtypeSource(node->operands[0]);
    if (source->kind == Kind::Empty) {
      numbers[node] = numberOf(source->operands[1]);
      return;
    }
    auto [entry, isNew] = byKey.emplace("dtype " + std::to_string(numberOf(source)), 0);
    if (isNew)
      entry->second = fresh();
    numbers[node] = entry->second;
    return;
  }
  std::string key = std::to_string(static_cast<int>(node->kind));
  for (const hir::Node *operand : node->operands) {
    Number number = numberOf(operand);
    key += " " + std::to_string(number);
    if (number == 0) {
      numbers[node] = fresh();
      return;
    }
  }
  for (int64_t value : node->ints)
    key += " #" + std::to_string(value);
  if (node->kind == Kind::Constant)
    key += node->value.str() + node->type->str();
  auto [entry, isNew] = byKey.emplace(key, 0);
  if (isNew)
    entry->second = fresh();
  numbers[node] = entry->second;
}

void Facts::assign(const hir::Local *local, const hir::Node *value) { variables[local] = numberOf(value); }

void Facts::forget(const hir::Local *local) { variables.erase(local); }

void Facts::restore(State state) {
  ranges = std::move(state.ranges);
  gapped = std::move(state.gapped);
  truths = std::move(state.truths);
  variables = std::move(state.variables);
  unreachable = state.unreachable;
}

void Facts::join(const State &a, bool aArrives, const State &b, bool bArrives) {
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
    choices.emplace(fresh, eitherOf(std::move(differingChoices[i]), choicesOf(differing[i].second, 0)));
  }
  for (auto &[number, list] : choices)
    if (list && hasGaps(*list))
      both.gapped.emplace(number, std::move(*list));
  both.unreachable = a.unreachable && b.unreachable;
  restore(std::move(both));
}

void Facts::narrow(Number number, Interval to) {
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

void Facts::bound(const hir::Node *index, const hir::Node *begin, const hir::Node *end) {
  Interval first = range(begin), last = range(end);
  ranges[numberOf(index)] = {first.low, last.high == INT64_MAX ? INT64_MAX : last.high - 1};
}

Interval Facts::range(const hir::Node *node) const {
  if (node->kind == Kind::Constant && node->value.isInt())
    return {node->value.asInt(), node->value.asInt()};
  return rangeOf(numberOf(node), 0);
}

Interval Facts::rangeOf(Number number, unsigned depth) const {
  constexpr unsigned maxDepth = 32;
  Interval result = everything;
  if (number == 0 || depth > maxDepth)
    return result;
  auto operand = [&](size_t i) {
    const hir::Node *node = definition[number]->operands[i];
    return node->kind == Kind::Constant && node->value.isInt() ? Interval{node->value.asInt(), node->value.asInt()}
                                                               : rangeOf(numberOf(node), depth + 1);
  };
  if (const hir::Node *node = definition[number]) {
    if (node->kind == Kind::Constant && node->value.isInt())
      result = {node->value.asInt(), node->value.asInt()};
    else if (node->kind == Kind::Processors)
      result = {1, maxProcessors};
    else if (node->kind == Kind::ListGet && node->operands[0]->kind == Kind::Shape)
      result = notNegative;
    switch (node->kind) {
#define HIR_COUNT(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
      result = notNegative;
      break;
    case Kind::Add: {
      Interval a = operand(0), b = operand(1);
      result = {plus(a.low, b.low), plus(a.high, b.high)};
      break;
    }
    case Kind::Sub: {
      Interval a = operand(0), b = operand(1);
      result = {plus(a.low, negative(b.high)), plus(a.high, negative(b.low))};
      break;
    }
    case Kind::Negate: {
      Interval a = operand(0);
      result = {negative(a.high), negative(a.low)};
      break;
    }
    case Kind::Mul: {
      Interval a = operand(0), b = operand(1);
      if (a.low >= 0 && b.low >= 0)
        result = {times(a.low, b.low), times(a.high, b.high)};
      break;
    }
    case Kind::FloorDiv: {
      Interval a = operand(0), b = operand(1);
      if (b.low == b.high && b.low > 0)
        result = {floorDivide(a.low, b.low), floorDivide(a.high, b.low)};
      break;
    }
    case Kind::Mod: {
      Interval b = operand(1);
      if (b.low > 0)
        result = {0, b.high == INT64_MAX ? INT64_MAX : b.high - 1};
      break;
    }
    case Kind::Min: {
      Interval a = operand(0), b = operand(1);
      result = {std::min(a.low, b.low), std::min(a.high, b.high)};
      break;
    }
    case Kind::Max: {
      Interval a = operand(0), b = operand(1);
      result = {std::max(a.low, b.low), std::max(a.high, b.high)};
      break;
    }
    case Kind::Div: // of floats
    case Kind::Pow:
#define HIR_COUNT(Name)
#define HIR_ARITHMETIC(Name)
#define HIR(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
      break;
    }
  }
  if (auto assumed = ranges.find(number); assumed != ranges.end())
    result = {std::max(result.low, assumed->second.low), std::min(result.high, assumed->second.high)};
  return result;
}

void Facts::assumeCompare(Kind kind, const hir::Node *lhs, const hir::Node *rhs, bool truth) {
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

void Facts::assume(const hir::Node *condition, bool truth) {
  Number number = numberOf(condition);
  // A variable stands for the node that it was assigned.
  if (condition->kind == Kind::Get && number && definition[number])
    condition = definition[number];
  if (auto known = this->truth(condition); known && *known != truth)
    unreachable = true;
  if (number)
    truths[number] = truth;
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

std::optional<bool> Facts::truth(const hir::Node *node) const {
  if (node->kind == Kind::Constant && node->value.isBool())
    return node->value.asBool();
  auto found = truths.find(numberOf(node));
  return found == truths.end() ? std::nullopt : std::optional(found->second);
}

} // namespace kpkg::compiler
