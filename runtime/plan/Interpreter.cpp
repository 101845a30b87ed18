// Control flow, scalars and lists of plan bytecode.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plan/Interpreter.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kpkg::plan {

static constexpr int64_t maxInstructions = 1 << 20;
static constexpr size_t maxPool = 1u << 18;

static double asFloat(const Value &value) { return std::bit_cast<double>(value.bits); }
static Value ofFloat(double value) { return {std::bit_cast<int64_t>(value), -1}; }

Interpreter::Interpreter(const DecodedModule &module, CallSignature call, Resolution &resolution, int64_t processors,
                         Workspace &workspace)
    : module(module), call(call), resolution(resolution), memory(resolution, workspace.memory), stack(workspace.stack),
      values(workspace.values), pool(workspace.pool), strings(workspace.strings), active(workspace.active),
      fuel(maxInstructions), processors(std::clamp<int64_t>(processors, 1, maxProcessors)) {
  stack.clear();
  values.clear();
  pool.clear();
  active.clear();
  strings.assign(module.strings.begin(), module.strings.end());
}

bool Interpreter::fail(Error::Kind kind, std::string message, int32_t argument) {
  const std::string &entry = module.strings[module.functions.front().name];
  if (active.size() > 1)
    message += fmt::format(" (in {})", module.strings[module.functions[active.back()].name]);
  failure = Error{kind, std::move(message), entry, argument};
  return false;
}

bool Interpreter::failMemory() {
  return fail(memory.errorIsLimit() ? Error::Kind::Limit : Error::Kind::Argument, memory.error(), memory.blamed());
}

bool Interpreter::failTensor(Opcode op, TensorId id, const std::string &why) {
  // An argument is named as the user gave it; what was made of it, with the operation that refused it.
  std::string what =
      memory.isWholeArgument(id) ? memory.describe(id) : fmt::format("{} of {}", opcodeName(op), memory.describe(id));
  return fail(Error::Kind::Argument, fmt::format("{}: {}", what, why), memory.argumentOf(id));
}

//===--- Calls and control ----------------------------------------------------------------------------------------===//

bool Interpreter::callFunction(const Instruction &i, const Function &f, size_t frame) {
  const auto index = static_cast<uint32_t>(f.immediatesOf(i)[0]);
  const size_t inner = pushFrame(index);
  size_t next = inner;
  for (uint16_t reg : f.operandsOf(i))
    stack[next++] = stack[frame + reg];
  if (!runFunction(index, inner))
    return false;
  for (size_t k = 0; k < values.size(); ++k)
    stack[frame + f.resultsOf(i)[k]] = values[k];
  return true;
}

size_t Interpreter::pushFrame(uint32_t index) {
  const size_t frame = stack.size();
  stack.resize(frame + module.functions[index].registerTypes.size());
  return frame;
}

bool Interpreter::runFunction(uint32_t index, size_t frame) {
  const Function &f = module.functions[index];
  active.push_back(index);
  std::vector<size_t> loops; // index of the instruction after each active while loop
  for (size_t pc = 0;; ++pc) {
    if (--fuel < 0)
      return fail(Error::Kind::Limit, fmt::format("more than {} instructions", maxInstructions));
    const Instruction &i = f.code[pc];
    Value *regs = stack.data() + frame;
    auto operands = f.operandsOf(i);
    auto immediates = f.immediatesOf(i);
    auto target = [&] { return static_cast<size_t>(immediates[0]); };
    switch (i.op) {
    case Opcode::jump:
      pc = target() - 1;
      break;
    case Opcode::branch_unless:
      if (!regs[operands[0]].bits)
        pc = target() - 1;
      break;
    case Opcode::loop_for:
      if (regs[operands[2]].bits < 1)
        return fail(Error::Kind::Argument,
                    fmt::format("loop with step {}, expected at least 1", regs[operands[2]].bits));
      if (regs[operands[0]].bits >= regs[operands[1]].bits)
        pc = target() - 1;
      break;
    case Opcode::loop_while:
      loops.push_back(target());
      break;
    case Opcode::break_unless:
      if (!regs[operands[0]].bits) {
        pc = loops.back() - 1;
        loops.pop_back();
      }
      break;
    case Opcode::loop_end: {
      const Instruction &begin = f.code[target()];
      if (begin.op == Opcode::loop_while) {
        pc = target();
        break;
      }
      auto counted = f.operandsOf(begin);
      int64_t next;
      if (!__builtin_add_overflow(regs[counted[0]].bits, regs[counted[2]].bits, &next) &&
          next < regs[counted[1]].bits) {
        regs[counted[0]].bits = next;
        pc = target();
      }
      break;
    }
    case Opcode::call:
      if (!callFunction(i, f, frame))
        return false;
      break;
    case Opcode::ret:
      values.clear();
      for (uint16_t reg : operands)
        values.push_back(regs[reg]);
      stack.resize(frame);
      active.pop_back();
      return true;
    case Opcode::raise:
      return raise(i, f, regs);
    case Opcode::launch:
      if (!launch(i, f, regs))
        return false;
      break;
    default: {
      // Families by number, as Opcodes.def groups them.
      auto number = static_cast<uint8_t>(i.op);
      bool ok = number < 104   ? scalar(i, f, regs)
                : number < 120 ? list(i, f, regs)
                : number < 136 ? query(i, f, regs)
                               : tensor(i, f, regs);
      if (!ok)
        return false;
      break;
    }
    }
  }
}

std::string Interpreter::format(const Value &value, RegisterType type) const {
  switch (type) {
  case 'i':
    return fmt::format("{}", value.bits);
  case 'f':
    return fmt::format("{}", asFloat(value));
  case 'b':
    return value.bits ? "True" : "False";
  case 'l':
    return describeShape(listOf(value));
  case 'd':
    return std::string(dtypeName(static_cast<DType>(value.bits)));
  case 's':
    return std::string(strings[static_cast<size_t>(value.bits)]);
  default: // the author's text names the tensor
    return value.bits < 0 ? "None" : describeView(memory.view(static_cast<TensorId>(value.bits)));
  }
}

bool Interpreter::raise(const Instruction &i, const Function &f, Value *regs) {
  const std::string &text = module.strings[static_cast<size_t>(f.immediatesOf(i)[0])];
  auto operands = f.operandsOf(i);
  std::string message;
  size_t next = 0;
  for (size_t k = 0; k < text.size(); ++k) {
    bool isPair = k + 1 < text.size() && (text[k] == '{' || text[k] == '}');
    if (isPair && text[k] == '{' && text[k + 1] == '}' && next < operands.size()) {
      message += format(regs[operands[next]], f.registerTypes[operands[next]]);
      ++next, ++k;
    } else {
      message += text[k];
      k += isPair && text[k + 1] == text[k];
    }
  }
  int32_t argument = -1;
  for (uint16_t reg : operands)
    if (argument < 0 && f.registerTypes[reg] == 't')
      argument = memory.argumentOf(static_cast<TensorId>(regs[reg].bits));
  return fail(Error::Kind::Raised, std::move(message), argument);
}

//===--- Scalars --------------------------------------------------------------------------------------------------===//

/// Quotient rounded towards minus infinity; the caller has excluded 0 and overflow.
static int64_t floorDivide(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

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

/// An operation as sources write it.
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
                                          : a - floorDivide(a, b) * b;
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

/// The bit of a comparison mask that holds for a and b.
template <typename T> static int64_t relation(T a, T b) { return a == b ? 1 : a > b ? 2 : a < b ? 4 : 8; }

bool Interpreter::scalar(const Instruction &i, const Function &f, Value *regs) {
  auto operands = f.operandsOf(i);
  auto in = [&](size_t k) -> const Value & { return regs[operands[k]]; };
  Value &out = regs[f.resultsOf(i)[0]];
  int64_t immediate = i.immediates ? f.immediatesOf(i)[0] : 0;
  switch (i.op) {
  case Opcode::const_int:
  case Opcode::const_float:
  case Opcode::const_dtype:
  case Opcode::const_string:
    out = {immediate, -1};
    return true;
  case Opcode::const_bool:
    out = {immediate != 0, -1};
    return true;
  case Opcode::none:
    out = {-1, -1};
    return true;
  case Opcode::processors:
    out = {processors, -1};
    return true;
  case Opcode::move:
  case Opcode::defer_int:
  case Opcode::defer_float:
  case Opcode::defer_bool:
  case Opcode::bool_to_int:
    out = in(0);
    return true;
  case Opcode::select:
    out = in(0).bits ? in(1) : in(2);
    return true;
  case Opcode::abs_int:
    if (in(0).bits == INT64_MIN)
      return fail(Error::Kind::Argument, fmt::format("abs({}) does not fit Int, which has 64 bits", in(0).bits));
    out = {std::abs(in(0).bits), -1};
    return true;
  case Opcode::cmp_int:
    out = {(relation(in(0).bits, in(1).bits) & immediate) != 0, -1};
    return true;
  case Opcode::cmp_float:
    out = {(relation(asFloat(in(0)), asFloat(in(1))) & immediate) != 0, -1};
    return true;
  case Opcode::int_to_float:
  case Opcode::bool_to_float:
    out = ofFloat(static_cast<double>(in(0).bits));
    return true;
  case Opcode::fma_float:
    out = ofFloat(std::fma(asFloat(in(0)), asFloat(in(1)), asFloat(in(2))));
    return true;
  case Opcode::float_to_int: {
    double value = std::trunc(asFloat(in(0)));
    if (!(value >= -0x1p63 && value < 0x1p63))
      return fail(Error::Kind::Argument, fmt::format("{} does not fit an Int", value));
    out = {static_cast<int64_t>(value), -1};
    return true;
  }
  case Opcode::and_bool:
    out = {in(0).bits & in(1).bits, -1};
    return true;
  case Opcode::or_bool:
    out = {in(0).bits | in(1).bits, -1};
    return true;
  case Opcode::xor_bool:
    out = {in(0).bits ^ in(1).bits, -1};
    return true;
  case Opcode::eq_dtype:
    out = {in(0).bits == in(1).bits, -1};
    return true;
  case Opcode::dtype_size:
    out = {dtypeBytes(static_cast<DType>(in(0).bits)), -1};
    return true;
  case Opcode::dtype_is_float:
    out = {dtypeIsFloat(static_cast<DType>(in(0).bits)), -1};
    return true;
  case Opcode::eq_string:
    out = {strings[static_cast<size_t>(in(0).bits)] == strings[static_cast<size_t>(in(1).bits)], -1};
    return true;
  default:
    break;
  }
  if (static_cast<uint8_t>(i.op) < static_cast<uint8_t>(Opcode::and_bool)) {
    int64_t result;
    if (!intArithmetic(i.op, in(0).bits, in(1).bits, result))
      return false;
    out = {result, -1};
    return true;
  }
  out = ofFloat(i.operands == 2 ? floatArithmetic(i.op, asFloat(in(0)), asFloat(in(1)))
                                : floatFunction(i.op, asFloat(in(0))));
  return true;
}

//===--- Lists ----------------------------------------------------------------------------------------------------===//

bool Interpreter::makeList(std::span<const int64_t> entries, Value &value) {
  if (entries.size() > maxList)
    return fail(Error::Kind::Limit, fmt::format("a list of {} entries, more than {}", entries.size(), maxList));
  if (pool.size() + entries.size() > maxPool)
    return fail(Error::Kind::Limit, fmt::format("lists with more than {} entries together", maxPool));
  value = {static_cast<int64_t>(pool.size()) << 8 | static_cast<int64_t>(entries.size()), -1};
  pool.insert(pool.end(), entries.begin(), entries.end());
  return true;
}

bool Interpreter::list(const Instruction &i, const Function &f, Value *regs) {
  auto operands = f.operandsOf(i);
  Value &out = regs[f.resultsOf(i)[0]];
  // A copy: entries that stay in the pool move when it grows.
  std::array<int64_t, 2 * maxList> entries;
  size_t size = 0;
  auto append = [&](std::span<const int64_t> more) {
    std::copy(more.begin(), more.end(), entries.begin() + static_cast<ptrdiff_t>(size));
    size += more.size();
  };
  auto make = [&](size_t from, size_t to) { return makeList({entries.data() + from, entries.data() + to}, out); };

  if (i.op == Opcode::list) {
    if (operands.size() > maxList)
      return fail(Error::Kind::Limit, fmt::format("a list of {} entries, more than {}", operands.size(), maxList));
    for (uint16_t reg : operands)
      entries[size++] = regs[reg].bits;
    return make(0, size);
  }

  append(listOf(regs[operands[0]]));
  auto wrapIndex = [&](int64_t index, size_t &at) {
    auto length = static_cast<int64_t>(size);
    if (index < -length || index >= length)
      return fail(Error::Kind::Argument, fmt::format("index {} is out of range for the list {}", index,
                                                     describeShape({entries.data(), size})));
    at = static_cast<size_t>(index < 0 ? index + length : index);
    return true;
  };
  size_t at;
  switch (i.op) {
  case Opcode::list_len:
    out = {static_cast<int64_t>(size), -1};
    return true;
  case Opcode::list_get:
    if (!wrapIndex(regs[operands[1]].bits, at))
      return false;
    out = {entries[at], -1};
    return true;
  case Opcode::list_set:
    if (!wrapIndex(regs[operands[1]].bits, at))
      return false;
    entries[at] = regs[operands[2]].bits;
    return make(0, size);
  case Opcode::list_append:
    entries[size++] = regs[operands[1]].bits;
    return make(0, size);
  case Opcode::list_concat:
    append(listOf(regs[operands[1]]));
    return make(0, size);
  case Opcode::list_slice: {
    auto length = static_cast<int64_t>(size);
    auto cut = [&](int64_t bound) { return std::clamp<int64_t>(bound < 0 ? bound + length : bound, 0, length); };
    int64_t from = cut(regs[operands[1]].bits), to = cut(regs[operands[2]].bits);
    return make(static_cast<size_t>(from), static_cast<size_t>(std::max(from, to)));
  }
  case Opcode::list_eq:
    out = {std::ranges::equal(std::span<const int64_t>(entries.data(), size), listOf(regs[operands[1]])), -1};
    return true;
  default: { // broadcast_shapes
    Dims shape;
    std::string why;
    if (!broadcastShapes({entries.data(), size}, listOf(regs[operands[1]]), shape, why))
      return fail(Error::Kind::Argument, why);
    return makeList(shape.span(), out);
  }
  }
}

} // namespace kpkg::plan
