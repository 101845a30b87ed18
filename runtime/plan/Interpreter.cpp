// Interprets control flow and lists of plan bytecode.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plan/Interpreter.h"
#include <algorithm>
#include <fmt/format.h>

namespace kpkg::plan {

/// Limit of an evaluation's cost, and thus of its time. An instruction costs 1. So do each `valuesPerStep` registers
/// that a call clears, and each `bytesPerStep` bytes that a comparison of strings reads.
static constexpr int64_t maxSteps = 1 << 20;
static constexpr size_t valuesPerStep = 16, bytesPerStep = 256;
static constexpr size_t maxPool = 1u << 18;
static constexpr size_t maxTensorLists = 1u << 16; // of an evaluation

Interpreter::Interpreter(const DecodedModule &module, CallSignature call, Resolution &resolution, int64_t processors,
                         Workspace &workspace)
    : module(module), call(call), resolution(resolution), memory(resolution, workspace.memory), stack(workspace.stack),
      values(workspace.values), pool(workspace.pool), strings(workspace.strings), active(workspace.active),
      tensorLists(workspace.tensorLists), listed(workspace.listed), fuel(maxSteps),
      processors(std::clamp<int64_t>(processors, 1, maxProcessors)) {
  stack.clear();
  values.clear();
  pool.clear();
  active.clear();
  tensorLists.clear();
  listed.clear();
  strings.assign(module.strings.begin(), module.strings.end());
}

bool Interpreter::fail(Error::Kind kind, std::string message, int32_t argument) {
  const std::string &entry = module.strings[module.functions.front().name];
  if (active.size() > 1)
    message += fmt::format(" (in {})", module.strings[module.functions[active.back()].name]);
  failure = Error{kind, std::move(message), entry, argument};
  return false;
}

bool Interpreter::spend(size_t steps) {
  fuel -= static_cast<int64_t>(steps);
  return fuel >= 0 || fail(Error::Kind::Limit, fmt::format("more than {} instructions", maxSteps));
}

bool Interpreter::spendOnText(size_t bytes) { return spend(bytes / bytesPerStep); }

bool Interpreter::failMemory() {
  return fail(memory.errorIsLimit() ? Error::Kind::Limit : Error::Kind::Argument, memory.error(), memory.blamed());
}

bool Interpreter::failTensor(Opcode op, TensorId id, const std::string &why) {
  // Names an argument as the user passed it, and a derived tensor with the operation that refused it.
  std::string what =
      memory.isWholeArgument(id) ? memory.describe(id) : fmt::format("{} of {}", opcodeName(op), memory.describe(id));
  return fail(Error::Kind::Argument, fmt::format("{}: {}", what, why), memory.argumentOf(id));
}

//===--- Calls and control ----------------------------------------------------------------------------------------===//

bool Interpreter::callFunction(const Instruction &i, const Function &f, size_t frame) {
  const auto index = static_cast<uint32_t>(f.immediatesOf(i)[0]);
  if (!spend(module.functions[index].registerTypes.size() / valuesPerStep))
    return false;
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

/// Advances the counter of a `for` loop with these operands. Returns false after the last iteration.
static bool advance(std::span<const uint16_t> loop, Value *regs) {
  int64_t next;
  if (__builtin_add_overflow(regs[loop[0]].bits, regs[loop[2]].bits, &next) || next >= regs[loop[1]].bits)
    return false;
  regs[loop[0]].bits = next;
  return true;
}

bool Interpreter::runFunction(uint32_t index, size_t frame) {
  const Function &f = module.functions[index];
  active.push_back(index);
  std::vector<size_t> loops; // index of the instruction after each active while loop
  for (size_t pc = 0;; ++pc) {
    if (!spend(1))
      return false;
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
      if (begin.op == Opcode::loop_while || advance(f.operandsOf(begin), regs))
        pc = target();
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
      // Families by number, in the groups of Opcodes.def.
      auto number = static_cast<uint8_t>(i.op);
      bool ok = number < 104   ? scalar(i, f, regs)
                : number < 113 ? list(i, f, regs)
                : number < 120 ? tensorList(i, f, regs)
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
    return fmt::format("{}", std::bit_cast<double>(value.bits));
  case 'b':
    return value.bits ? "True" : "False";
  case 'l':
    return describeShape(listOf(value));
  case 'd':
    return std::string(dtypeName(static_cast<DType>(value.bits)));
  case 's':
    return std::string(strings[static_cast<size_t>(value.bits)]);
  case 'v':
    return fmt::format("a list of {} tensors", tensorLists[static_cast<size_t>(value.bits)].count);
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
    else if (argument < 0 && f.registerTypes[reg] == 'v')
      argument = tensorLists[static_cast<size_t>(regs[reg].bits)].argument;
  return fail(Error::Kind::Raised, std::move(message), argument);
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
  // Copied, because entries in the pool move when it grows.
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

bool Interpreter::makesRoomFor(size_t tensors) {
  if (tensors > maxTensorList)
    return fail(Error::Kind::Limit, fmt::format("a list of {} tensors, more than {}", tensors, maxTensorList));
  if (listed.size() + tensors > maxPool || tensorLists.size() >= maxTensorLists)
    return fail(Error::Kind::Limit, fmt::format("more than {} lists of tensors, or lists with more than {} tensors",
                                                maxTensorLists, maxPool));
  return true;
}

bool Interpreter::tensorList(const Instruction &i, const Function &f, Value *regs) {
  auto operands = f.operandsOf(i);
  Value &out = regs[f.resultsOf(i)[0]];
  auto given = [&](size_t k) { return tensorLists[static_cast<size_t>(regs[operands[k]].bits)]; };
  /// Makes a list of a part of another one, and tensors behind it.
  auto make = [&](TensorList head, size_t more, auto tensor) {
    if (!makesRoomFor(head.count + more))
      return false;
    TensorList made{listed.size(), head.count + more, -1};
    for (size_t k = 0; k < head.count; ++k)
      listed.push_back(TensorId(listed[head.first + k]));
    for (size_t k = 0; k < more; ++k)
      listed.push_back(TensorId(tensor(k)));
    out = {static_cast<int64_t>(tensorLists.size()), -1};
    tensorLists.push_back(made);
    return true;
  };
  auto ofRegister = [&](size_t from) {
    return [&, from](size_t k) { return static_cast<TensorId>(regs[operands[from + k]].bits); };
  };
  switch (i.op) {
  case Opcode::tensors:
    return make({}, operands.size(), ofRegister(0));
  case Opcode::tensors_append:
    return make(given(0), 1, ofRegister(1));
  case Opcode::tensors_concat:
    return make(given(0), given(1).count, [&, tail = given(1)](size_t k) { return listed[tail.first + k]; });
  case Opcode::tensors_slice: {
    TensorList list = given(0);
    auto length = static_cast<int64_t>(list.count);
    auto cut = [&](int64_t bound) { return std::clamp<int64_t>(bound < 0 ? bound + length : bound, 0, length); };
    int64_t from = cut(regs[operands[1]].bits), to = std::max(from, cut(regs[operands[2]].bits));
    return make({list.first + static_cast<size_t>(from), static_cast<size_t>(to - from), -1}, 0, ofRegister(0));
  }
  case Opcode::tensors_len:
    out = {static_cast<int64_t>(given(0).count), -1};
    return true;
  default: { // tensors_get
    TensorList list = given(0);
    auto length = static_cast<int64_t>(list.count);
    int64_t index = regs[operands[1]].bits;
    if (index < -length || index >= length) {
      std::string name =
          list.argument < 0 ? "a list" : fmt::format("`{}`", module.arguments[static_cast<size_t>(list.argument)].name);
      return fail(Error::Kind::Argument,
                  fmt::format("index {} is out of range for {} of {} tensors", index, name, length), list.argument);
    }
    out = {listed[list.first + static_cast<size_t>(index < 0 ? index + length : index)], -1};
    return true;
  }
  }
}

} // namespace kpkg::plan
