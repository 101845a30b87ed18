// Computes the proven ranges of Ints by interval arithmetic.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/ValueRanges.h"
#include "runtime/plan/Limits.h"

#include <algorithm>

namespace kpkg::compiler {

using hir::Kind;

namespace {

constexpr Interval everything;
constexpr Interval notNegative{0, INT64_MAX};

/// Adds with saturation: the ends of the range mean "no bound".
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

Interval ValueRanges::range(const hir::Node *node) const {
  Ranges found;
  return rangeOf(node, 0, found);
}

Interval ValueRanges::rangeOf(Number number, unsigned depth) const {
  Ranges found;
  return rangeOf(number, depth, found);
}

Interval ValueRanges::rangeOf(const hir::Node *node, unsigned depth, Ranges &found) const {
  if (node->kind == Kind::Constant && node->value.isInt())
    return {node->value.asInt(), node->value.asInt()};
  return rangeOf(numberOf(node), depth, found);
}

Interval ValueRanges::rangeOf(Number number, unsigned depth, Ranges &found) const {
  constexpr unsigned maxDepth = 32;
  Interval result = everything;
  if (number == 0 || depth > maxDepth)
    return result;
  if (auto known = found.find(number); known != found.end())
    return known->second;
  auto operand = [&](size_t i) { return rangeOf(definition[number]->operands[i], depth + 1, found); };
  if (const hir::Node *node = definition[number]) {
    if (node->kind == Kind::Constant && node->value.isInt())
      result = {node->value.asInt(), node->value.asInt()};
    else if (node->kind == Kind::Processors)
      result = {1, plan::maxProcessors};
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
  return found[number] = result;
}

} // namespace kpkg::compiler
