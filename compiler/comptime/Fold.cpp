// Implements operators on comptime values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/comptime/Fold.h"
#include "compiler/comptime/FunctionEntity.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kpkg::compiler {
namespace {

using ast::BinaryOp;
using ast::CompareOp;

Folded overflow() { return Folded::failure("the result does not fit 64 bits"); }

Folded power(int64_t base, int64_t exponent) {
  if (exponent < 0)
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  int64_t result = 1;
  for (; exponent; exponent >>= 1) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result))
      return overflow();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base))
      return overflow();
  }
  return Value(result);
}

Folded binaryInt(BinaryOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
  case BinaryOp::Add:
    return __builtin_add_overflow(a, b, &result) ? overflow() : Value(result);
  case BinaryOp::Sub:
    return __builtin_sub_overflow(a, b, &result) ? overflow() : Value(result);
  case BinaryOp::Mul:
    return __builtin_mul_overflow(a, b, &result) ? overflow() : Value(result);
  case BinaryOp::Div:
    if (b == 0)
      return Folded::failure("division by zero");
    return Value(static_cast<double>(a) / static_cast<double>(b));
  case BinaryOp::FloorDiv:
  case BinaryOp::Mod: {
    if (b == 0)
      return Folded::failure("division by zero");
    if (b == -1) // the quotient of the smallest integer overflows
      return op == BinaryOp::Mod ? Value(int64_t(0)) : binaryInt(BinaryOp::Sub, 0, a);
    int64_t quotient = a / b, rest = a % b;
    if (rest != 0 && (rest < 0) != (b < 0)) {
      --quotient;
      rest += b;
    }
    return Value(op == BinaryOp::Mod ? rest : quotient);
  }
  case BinaryOp::Pow:
    return power(a, b);
  case BinaryOp::BitAnd:
    return Value(a & b);
  case BinaryOp::BitOr:
    return Value(a | b);
  case BinaryOp::BitXor:
    return Value(a ^ b);
  case BinaryOp::ShiftLeft:
    if (b < 0 || b > 63)
      return Folded::failure("shift by " + std::to_string(b));
    if ((a << b) >> b != a)
      return overflow();
    return Value(a << b);
  case BinaryOp::ShiftRight:
    if (b < 0 || b > 63)
      return Folded::failure("shift by " + std::to_string(b));
    return Value(a >> b);
  }
  return Folded::failure("unknown operator");
}

Folded binaryFloat(BinaryOp op, double a, double b) {
  switch (op) {
  case BinaryOp::Add:
    return Value(a + b);
  case BinaryOp::Sub:
    return Value(a - b);
  case BinaryOp::Mul:
    return Value(a * b);
  case BinaryOp::Div:
    return Value(a / b);
  case BinaryOp::FloorDiv:
    return Value(std::floor(a / b));
  case BinaryOp::Mod: {
    double rest = std::fmod(a, b);
    return Value(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
  }
  case BinaryOp::Pow:
    return Value(std::pow(a, b));
  default:
    return Folded::failure("`" + std::string(spelling(op)) + "` is not for Float");
  }
}

bool isNumber(const Value &value) { return value.isInt() || value.isFloat(); }

Folded binarySequence(BinaryOp op, const Value &lhs, const Value &rhs) {
  const Sequence &a = lhs.asSequence();
  std::vector<Value> items = a.items;
  if (op == BinaryOp::Add && rhs.isSequence() && rhs.asSequence().isList == a.isList) {
    items.insert(items.end(), rhs.asSequence().items.begin(), rhs.asSequence().items.end());
  } else if (op == BinaryOp::Mul && rhs.isInt()) {
    items.clear();
    if (rhs.asInt() > 0 && a.items.size() * static_cast<uint64_t>(rhs.asInt()) > (1u << 20))
      return Folded::failure("the sequence has more than 2^20 items");
    for (int64_t i = 0; i < rhs.asInt(); ++i)
      items.insert(items.end(), a.items.begin(), a.items.end());
  } else {
    return Folded::failure("`" + std::string(spelling(op)) + "` is not for " + kindName(lhs) + " and " + kindName(rhs));
  }
  return a.isList ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

bool contains(const Value &container, const Value &item) {
  for (const Value &candidate : container.asSequence().items)
    if (candidate == item)
      return true;
  return false;
}

template <typename T> bool ordered(CompareOp op, const T &a, const T &b) {
  switch (op) {
  case CompareOp::Eq:
    return a == b;
  case CompareOp::Ne:
    return a != b;
  case CompareOp::Lt:
    return a < b;
  case CompareOp::Le:
    return a <= b;
  case CompareOp::Gt:
    return a > b;
  default:
    return a >= b;
  }
}

} // namespace

std::string kindName(const Value &value) {
  if (value.isNone())
    return "None";
  if (value.isBool())
    return "Bool";
  if (value.isInt())
    return "Int";
  if (value.isFloat())
    return "Float";
  if (value.isString())
    return "String";
  if (value.isDType())
    return "DType";
  if (value.isFunction())
    return "function";
  if (value.isStructName())
    return "struct `" + value.str() + "`";
  if (value.isStruct())
    return value.asStruct().structure->name();
  return value.asSequence().isList ? "list" : "tuple";
}

Folded foldBinary(BinaryOp op, const Value &lhs, const Value &rhs) {
  if (lhs.isInt() && rhs.isInt())
    return binaryInt(op, lhs.asInt(), rhs.asInt());
  if (isNumber(lhs) && isNumber(rhs))
    return binaryFloat(op, lhs.asNumber(), rhs.asNumber());
  if (lhs.isBool() && rhs.isBool()) {
    if (op == BinaryOp::BitAnd)
      return Value(lhs.asBool() && rhs.asBool());
    if (op == BinaryOp::BitOr)
      return Value(lhs.asBool() || rhs.asBool());
    if (op == BinaryOp::BitXor)
      return Value(lhs.asBool() != rhs.asBool());
  }
  if (lhs.isString() && rhs.isString() && op == BinaryOp::Add)
    return Value(lhs.asString() + rhs.asString());
  if (lhs.isSequence())
    return binarySequence(op, lhs, rhs);
  return Folded::failure("`" + std::string(spelling(op)) + "` is not for " + kindName(lhs) + " and " + kindName(rhs));
}

Folded foldUnary(ast::UnaryOp op, const Value &operand) {
  switch (op) {
  case ast::UnaryOp::Plus:
    if (isNumber(operand))
      return operand;
    break;
  case ast::UnaryOp::Minus:
    if (operand.isInt())
      return binaryInt(BinaryOp::Sub, 0, operand.asInt());
    if (operand.isFloat())
      return Value(-operand.asFloat());
    break;
  case ast::UnaryOp::Invert:
    if (operand.isInt())
      return Value(~operand.asInt());
    if (operand.isBool())
      return Value(!operand.asBool());
    break;
  case ast::UnaryOp::Not:
    if (operand.isBool())
      return Value(!operand.asBool());
    break;
  }
  return Folded::failure("`" + std::string(spelling(op)) + "` is not for " + kindName(operand));
}

Folded foldCompare(CompareOp op, const Value &lhs, const Value &rhs) {
  if (op == CompareOp::Is || op == CompareOp::IsNot) {
    if (!rhs.isNone() && !lhs.isNone())
      return Folded::failure("`is` compares with None only");
    return Value((lhs.isNone() && rhs.isNone()) == (op == CompareOp::Is));
  }
  if (!lhs.isWhole() || !rhs.isWhole())
    return Folded::failure("a field of " + kindName(lhs) + " is not known while compiling");
  if (op == CompareOp::In || op == CompareOp::NotIn) {
    if (!rhs.isSequence())
      return Folded::failure("`in` needs a tuple or list, found " + kindName(rhs));
    return Value(contains(rhs, lhs) == (op == CompareOp::In));
  }
  if (lhs.isInt() && rhs.isInt())
    return Value(ordered(op, lhs.asInt(), rhs.asInt()));
  if (isNumber(lhs) && isNumber(rhs))
    return Value(ordered(op, lhs.asNumber(), rhs.asNumber()));
  if (lhs.isString() && rhs.isString())
    return Value(ordered(op, lhs.asString(), rhs.asString()));
  if ((op == CompareOp::Eq || op == CompareOp::Ne) && lhs.data.index() == rhs.data.index())
    return Value((lhs == rhs) == (op == CompareOp::Eq));
  return Folded::failure("`" + std::string(spelling(op)) + "` is not for " + kindName(lhs) + " and " + kindName(rhs));
}

Folded foldIndex(const Value &base, const Value &index) {
  if (!base.isSequence() || !index.isInt())
    return Folded::failure("cannot index " + kindName(base) + " by " + kindName(index));
  const std::vector<Value> &items = base.asSequence().items;
  int64_t size = static_cast<int64_t>(items.size());
  int64_t at = index.asInt() < 0 ? index.asInt() + size : index.asInt();
  if (at < 0 || at >= size)
    return Folded::failure("index " + std::to_string(index.asInt()) + " is outside of " + std::to_string(size) +
                           " items");
  return items[at];
}

Folded foldAttribute(const Value &base, const std::string &name) {
  if (base.isDType()) {
    if (name == "bits")
      return Value(static_cast<int64_t>(bitsOf(base.asDType())));
    if (name == "is_float")
      return Value(isFloat(base.asDType()));
    if (name == "is_signed")
      return Value(isSigned(base.asDType()) || isFloat(base.asDType()));
  }
  if (base.isStruct()) {
    const StructValue &value = base.asStruct();
    size_t number = value.structure->find(name);
    if (number < value.members.size())
      return value.members[number]
                 ? Folded(*value.members[number])
                 : Folded::failure("`." + name + "` of this " + kindName(base) + " is not known while compiling");
  }
  return Folded::failure(kindName(base) + " has no attribute `" + name + "`");
}

std::optional<Value> builtinConstant(const std::string &name) {
  if (name == "inf")
    return Value(std::numeric_limits<double>::infinity());
  if (name == "nan")
    return Value(std::numeric_limits<double>::quiet_NaN());
  if (auto dtype = dtypeOfValueName(name))
    return Value(*dtype);
  return std::nullopt;
}

const std::vector<std::string> &builtinConstantNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"inf", "nan"};
#define KPKG_DTYPE_ROW(constant, Type, name, ...) all.push_back(#name);
#include "runtime/include/kpkg/dtypes.def"
    return all;
  }();
  return names;
}

} // namespace kpkg::compiler
