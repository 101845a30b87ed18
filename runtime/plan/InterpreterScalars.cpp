// Interprets scalars of plan bytecode: integers with overflow checks, floats, comparisons.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plan/Interpreter.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kpkg::plan {

static double asFloat(const Value &value) { return std::bit_cast<double>(value.bits); }
static Value ofFloat(double value) { return {std::bit_cast<int64_t>(value), -1}; }

/// Returns the quotient rounded towards minus infinity. The caller has excluded 0 and overflow.
static int64_t floorDivide(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

/// The remainder of floorDivide(), without a product that could overflow.
static int64_t floorRemainder(int64_t a, int64_t b) {
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static bool power(int64_t base, int64_t exponent, int64_t &result) {
  result = 1;
  for (;; exponent >>= 1) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result))
      return false;
    if (exponent <= 1)
      return true;
    if (__builtin_mul_overflow(base, base, &base))
      return false;
  }
}

/// Returns an operation in source notation.
static std::string written(Opcode op, int64_t a, int64_t b) {
  const char *between = op == Opcode::add_int        ? "+"
                        : op == Opcode::sub_int      ? "-"
                        : op == Opcode::mul_int      ? "*"
                        : op == Opcode::floordiv_int ? "//"
                        : op == Opcode::mod_int      ? "%"
                        : op == Opcode::pow_int      ? "**"
                        : op == Opcode::shl_int      ? "<<"
                        : op == Opcode::shr_int      ? ">>"
                                                     : nullptr;
  if (between)
    return fmt::format("{} {} {}", a, between, b);
  std::string_view name = opcodeName(op);
  return fmt::format("{}({}, {})", name.substr(0, name.find("_int")), a, b);
}

bool Interpreter::intArithmetic(Opcode op, int64_t a, int64_t b, int64_t &result) {
  auto overflow = [&] {
    return fail(Error::Kind::Argument, written(op, a, b) + " does not fit Int, which has 64 bits");
  };
  switch (op) {
  case Opcode::add_int:
    return !__builtin_add_overflow(a, b, &result) || overflow();
  case Opcode::sub_int:
    return !__builtin_sub_overflow(a, b, &result) || overflow();
  case Opcode::mul_int:
    return !__builtin_mul_overflow(a, b, &result) || overflow();
  case Opcode::floordiv_int:
  case Opcode::ceildiv_int:
  case Opcode::truncdiv_int:
  case Opcode::truncrem_int:
  case Opcode::mod_int:
    if (b == 0)
      return fail(Error::Kind::Argument, written(op, a, b) + ": division by zero");
    if (b == -1) { // INT64_MIN / -1 traps
      bool isDivision = op != Opcode::truncrem_int && op != Opcode::mod_int;
      result = 0;
      return !isDivision || !__builtin_sub_overflow(int64_t(0), a, &result) || overflow();
    }
    result = op == Opcode::floordiv_int   ? floorDivide(a, b)
             : op == Opcode::ceildiv_int  ? floorDivide(a, b) + (a % b != 0)
             : op == Opcode::truncdiv_int ? a / b
             : op == Opcode::truncrem_int ? a % b
                                          : floorRemainder(a, b);
    return true;
  case Opcode::pow_int:
    if (b < 0)
      return fail(Error::Kind::Argument, fmt::format("{} to the negative power {}", a, b));
    return power(a, b, result) || overflow();
  case Opcode::min_int:
    result = std::min(a, b);
    return true;
  case Opcode::max_int:
    result = std::max(a, b);
    return true;
  case Opcode::and_int:
    result = a & b;
    return true;
  case Opcode::or_int:
    result = a | b;
    return true;
  case Opcode::xor_int:
    result = a ^ b;
    return true;
  default: // shl_int, shr_int
    if (b < 0 || b > 63)
      return fail(Error::Kind::Argument, written(op, a, b) + ": shifted by less than 0 or more than 63 bits");
    if (op == Opcode::shr_int) {
      result = a >> b;
      return true;
    }
    result = static_cast<int64_t>(static_cast<uint64_t>(a) << b);
    return (result >> b) == a || overflow();
  }
}

static double floatArithmetic(Opcode op, double a, double b) {
  switch (op) {
  case Opcode::add_float:
    return a + b;
  case Opcode::sub_float:
    return a - b;
  case Opcode::mul_float:
    return a * b;
  case Opcode::div_float:
    return a / b;
  case Opcode::mod_float: {
    double rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  case Opcode::pow_float:
    return std::pow(a, b);
  case Opcode::min_float:
    return std::isnan(a) || std::isnan(b) ? a + b : std::min(a, b);
  default: // max_float
    return std::isnan(a) || std::isnan(b) ? a + b : std::max(a, b);
  }
}

static double floatFunction(Opcode op, double a) {
  switch (op) {
  case Opcode::neg_float:
    return -a;
  case Opcode::abs_float:
    return std::fabs(a);
  case Opcode::sqrt:
    return std::sqrt(a);
  case Opcode::rsqrt:
    return 1 / std::sqrt(a);
  case Opcode::exp:
    return std::exp(a);
  case Opcode::exp2:
    return std::exp2(a);
  case Opcode::log:
    return std::log(a);
  case Opcode::log2:
    return std::log2(a);
  case Opcode::sin:
    return std::sin(a);
  case Opcode::cos:
    return std::cos(a);
  case Opcode::tanh:
    return std::tanh(a);
  case Opcode::erf:
    return std::erf(a);
  case Opcode::floor:
    return std::floor(a);
  case Opcode::ceil:
    return std::ceil(a);
  default: // round
    return std::nearbyint(a);
  }
}

/// Returns the bit of a comparison mask that holds for a and b.
template <typename T> static int64_t relation(T a, T b) { return a == b ? 1 : a > b ? 2 : a < b ? 4 : 8; }

bool Interpreter::equalStrings(std::string_view a, std::string_view b, Value &out) {
  out = {a == b, -1};
  return spendOnText(std::min(a.size(), b.size()));
}

bool Interpreter::scalar(const Instruction &i, const Function &f, Value *regs) {
  auto operands = f.operandsOf(i);
  auto in = [&](size_t k) -> const Value & { return regs[operands[k]]; };
  Value &out = regs[f.resultsOf(i)[0]];
  auto set = [&out](Value value) {
    out = value;
    return true;
  };
  int64_t immediate = i.immediates ? f.immediatesOf(i)[0] : 0;
  switch (i.op) {
  case Opcode::const_int:
  case Opcode::const_float:
  case Opcode::const_dtype:
  case Opcode::const_string:
    return set({immediate, -1});
  case Opcode::const_bool:
    return set({immediate != 0, -1});
  case Opcode::none:
    return set({-1, -1});
  case Opcode::processors:
    return set({processors, -1});
  case Opcode::move:
  case Opcode::defer_int:
  case Opcode::defer_float:
  case Opcode::defer_bool:
  case Opcode::bool_to_int:
    return set(in(0));
  case Opcode::select:
    return set(in(0).bits ? in(1) : in(2));
  case Opcode::abs_int:
    if (in(0).bits == INT64_MIN)
      return fail(Error::Kind::Argument, fmt::format("abs({}) does not fit Int, which has 64 bits", in(0).bits));
    return set({std::abs(in(0).bits), -1});
  case Opcode::cmp_int:
    return set({(relation(in(0).bits, in(1).bits) & immediate) != 0, -1});
  case Opcode::cmp_float:
    return set({(relation(asFloat(in(0)), asFloat(in(1))) & immediate) != 0, -1});
  case Opcode::int_to_float:
  case Opcode::bool_to_float:
    return set(ofFloat(static_cast<double>(in(0).bits)));
  case Opcode::fma_float:
    return set(ofFloat(std::fma(asFloat(in(0)), asFloat(in(1)), asFloat(in(2)))));
  case Opcode::float_to_int: {
    double value = std::trunc(asFloat(in(0)));
    if (!(value >= -0x1p63 && value < 0x1p63))
      return fail(Error::Kind::Argument, fmt::format("{} does not fit an Int", value));
    return set({static_cast<int64_t>(value), -1});
  }
  case Opcode::and_bool:
    return set({in(0).bits & in(1).bits, -1});
  case Opcode::or_bool:
    return set({in(0).bits | in(1).bits, -1});
  case Opcode::xor_bool:
    return set({in(0).bits ^ in(1).bits, -1});
  case Opcode::eq_dtype:
    return set({in(0).bits == in(1).bits, -1});
  case Opcode::dtype_size:
    return set({dtypeBytes(static_cast<DType>(in(0).bits)), -1});
  case Opcode::dtype_is_float:
    return set({dtypeIsFloat(static_cast<DType>(in(0).bits)), -1});
  case Opcode::eq_string:
    return equalStrings(strings[static_cast<size_t>(in(0).bits)], strings[static_cast<size_t>(in(1).bits)], out);
  default:
    break;
  }
  if (static_cast<uint8_t>(i.op) < static_cast<uint8_t>(Opcode::and_bool)) {
    int64_t result;
    if (!intArithmetic(i.op, in(0).bits, in(1).bits, result))
      return false;
    return set({result, -1});
  }
  return set(ofFloat(i.operands == 2 ? floatArithmetic(i.op, asFloat(in(0)), asFloat(in(1)))
                                     : floatFunction(i.op, asFloat(in(0)))));
}

} // namespace kpkg::plan
