// Verifies plan bytecode: accepts only code that can run for any call without further checks of the code itself.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One pass over each function. The state is the set of registers that are assigned on every path to the instruction. A
// forward jump passes its state to its target, where states are intersected.
//
// A loop's body starts with the state before the loop, because later iterations have assigned at least as much.
// Unreachable code may read anything, because it never runs.
#include "runtime/plan/Decoded.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace kpkg::plan {

namespace {

using Bits = std::vector<uint64_t>;

struct Loop {
  uint32_t begin, end; ///< indices of the loop's instruction, and of the first instruction after it
  bool isWhile;
};

class FunctionVerifier {
public:
  FunctionVerifier(const DecodedModule &module, uint32_t index)
      : module(module), index(index), f(module.functions[index]), assigned((f.registerTypes.size() + 63) / 64) {}

  std::string run();
  /// Maximum depth of calls below this one. Needs the depths of functions with higher indices.
  uint32_t depth = 1;
  const std::vector<uint32_t> *depths = nullptr;

private:
  char typeOf(uint16_t reg) const { return f.registerTypes[reg]; }
  bool isAssigned(uint16_t reg) const { return assigned[reg / 64] >> (reg % 64) & 1; }
  void assign(uint16_t reg) { assigned[reg / 64] |= uint64_t(1) << (reg % 64); }

  std::string at(uint32_t pc);
  std::string checkSignature(const Instruction &i);
  std::string checkImmediate(char kind, int64_t value);
  std::string checkCustom(const Instruction &i);
  std::string checkCall(const Instruction &i);
  std::string checkLaunch(const Instruction &i);
  std::string jumpTo(uint32_t pc, int64_t target);
  void meet(uint32_t target);

  const DecodedModule &module;
  uint32_t index;
  const Function &f;
  Bits assigned;
  bool reachable = true;
  std::map<uint32_t, Bits> pending;
  std::vector<Loop> loops;
};

void FunctionVerifier::meet(uint32_t target) {
  if (!reachable)
    return;
  auto [entry, isNew] = pending.try_emplace(target, assigned);
  if (!isNew)
    for (size_t i = 0; i < assigned.size(); ++i)
      entry->second[i] &= assigned[i];
}

std::string FunctionVerifier::jumpTo(uint32_t pc, int64_t target) {
  int64_t limit = loops.empty() ? static_cast<int64_t>(f.code.size()) : loops.back().end;
  if (target <= pc || target >= limit)
    return fmt::format("jump to {}, expected {} to {}", target, pc + 1, limit - 1);
  meet(static_cast<uint32_t>(target));
  return {};
}

std::string FunctionVerifier::checkImmediate(char kind, int64_t value) {
  switch (kind) {
  case '$':
    if (value < 0 || static_cast<size_t>(value) >= module.strings.size())
      return fmt::format("string {} of {}", value, module.strings.size());
    break;
  case 'D':
    if (value < 0 || value >= dtypeCount)
      return fmt::format("dtype {}", value);
    break;
  case 'm':
    if (value < 0 || value > 15)
      return fmt::format("comparison mask {}", value);
    break;
  default: // #, ~: any; >, <: checked by the control instructions
    break;
  }
  return {};
}

std::string FunctionVerifier::checkSignature(const Instruction &i) {
  std::string_view signature = opcodeSignature(i.op);
  size_t colon = signature.find(':'), semicolon = std::min(signature.find(';'), signature.size());
  std::string_view results = signature.substr(0, colon), operands = signature.substr(colon + 1, semicolon - colon - 1);
  std::string_view immediates = semicolon < signature.size() ? signature.substr(semicolon + 1) : std::string_view();
  bool isVariadic = operands.ends_with('*');
  if (i.results != results.size() || (!isVariadic && i.operands != operands.size()) ||
      i.immediates != immediates.size())
    return fmt::format("{} results, {} operands, {} immediates do not fit \"{}\"", i.results, i.operands, i.immediates,
                       signature);
  char same = 0;
  auto fits = [&](char wanted, uint16_t reg) {
    if (wanted != 'T')
      return wanted == typeOf(reg);
    same = same ? same : typeOf(reg);
    return same == typeOf(reg);
  };
  auto regs = f.operandsOf(i);
  for (size_t k = 0; k < regs.size(); ++k)
    if (!fits(isVariadic ? operands[0] : operands[k], regs[k]))
      return fmt::format("operand {} has type {}, expected \"{}\"", k, typeOf(regs[k]), signature);
  for (size_t k = 0; k < results.size(); ++k)
    if (!fits(results[k], f.resultsOf(i)[k]))
      return fmt::format("result {} has type {}, expected \"{}\"", k, typeOf(f.resultsOf(i)[k]), signature);
  for (size_t k = 0; k < immediates.size(); ++k)
    if (std::string why = checkImmediate(immediates[k], f.immediatesOf(i)[k]); !why.empty())
      return why;
  return {};
}

std::string FunctionVerifier::checkCall(const Instruction &i) {
  if (i.immediates != 1)
    return "call needs one immediate";
  int64_t callee = f.immediatesOf(i)[0];
  if (callee <= index || static_cast<size_t>(callee) >= module.functions.size())
    return fmt::format("function {} calls {}, expected {} to {}", index, callee, index + 1,
                       module.functions.size() - 1);
  const Function &g = module.functions[static_cast<size_t>(callee)];
  if (i.operands != g.parameters.size() || i.results != g.resultTypes.size())
    return fmt::format("call with {} arguments and {} results, expected {} and {}", i.operands, i.results,
                       g.parameters.size(), g.resultTypes.size());
  for (size_t k = 0; k < i.operands; ++k)
    if (typeOf(f.operandsOf(i)[k]) != g.registerTypes[k])
      return fmt::format("argument {} has type {}, expected {}", k, typeOf(f.operandsOf(i)[k]), g.registerTypes[k]);
  for (size_t k = 0; k < i.results; ++k)
    if (typeOf(f.resultsOf(i)[k]) != g.resultTypes[k])
      return fmt::format("result {} has type {}, expected {}", k, typeOf(f.resultsOf(i)[k]), g.resultTypes[k]);
  depth = std::max(depth, 1 + (*depths)[static_cast<size_t>(callee)]);
  if (depth > Limits::callDepth)
    return fmt::format("calls nest deeper than {}", Limits::callDepth);
  return {};
}

std::string FunctionVerifier::checkLaunch(const Instruction &i) {
  LaunchLayout layout;
  if (i.results != 0 || !readLaunch(f, i, layout))
    return "launch is not well-formed";
  if (std::string why = checkImmediate('$', f.immediatesOf(i)[0]); !why.empty())
    return why;
  auto regs = f.operandsOf(i);
  size_t params = layout.params.size() / 2, args = layout.argMut.size();
  for (size_t k = 0; k < regs.size(); ++k) {
    std::string_view allowed = k < params ? "ibfds" : k < params + args ? "tifbIFB" : "i";
    if (allowed.find(typeOf(regs[k])) == std::string_view::npos)
      return fmt::format("launch operand {} has type {}, expected one of {}", k, typeOf(regs[k]), allowed);
  }
  for (size_t k = 0; k < params; ++k) {
    if (std::string why = checkImmediate('$', layout.params[2 * k]); !why.empty())
      return why;
    if (layout.params[2 * k + 1] && typeOf(regs[k]) != 'i')
      return fmt::format("parameter {} is at_least a value of type {}", k, typeOf(regs[k]));
  }
  for (size_t k = 0; k < args; ++k)
    if (layout.argMut[k] && typeOf(regs[params + k]) != 't')
      return fmt::format("argument {} is mut but has type {}", k, typeOf(regs[params + k]));
  return {};
}

std::string FunctionVerifier::checkCustom(const Instruction &i) {
  switch (i.op) {
  case Opcode::call:
    return checkCall(i);
  case Opcode::launch:
    return checkLaunch(i);
  case Opcode::ret:
    if (i.results != 0 || i.immediates != 0 || i.operands != f.resultTypes.size())
      return fmt::format("returns {} values, expected {}", i.operands, f.resultTypes.size());
    for (size_t k = 0; k < i.operands; ++k)
      if (typeOf(f.operandsOf(i)[k]) != f.resultTypes[k])
        return fmt::format("returns type {}, expected {}", typeOf(f.operandsOf(i)[k]), f.resultTypes[k]);
    return {};
  case Opcode::raise:
    if (i.results != 0 || i.immediates != 1)
      return "raise needs one immediate and no result";
    for (uint16_t reg : f.operandsOf(i))
      if (isPassThrough(typeOf(reg)))
        return "raise with a pass-through value";
    return checkImmediate('$', f.immediatesOf(i)[0]);
  default:
    return "instruction without a rule";
  }
}

std::string FunctionVerifier::at(uint32_t pc) {
  const Instruction &i = f.code[pc];
  bool isCustom = opcodeSignature(i.op) == "!";
  if (std::string why = isCustom ? checkCustom(i) : checkSignature(i); !why.empty())
    return why;
  for (uint16_t reg : f.operandsOf(i))
    if (reachable && !isAssigned(reg))
      return fmt::format("register {} is read but not assigned on every path", reg);
  for (uint16_t reg : f.resultsOf(i))
    assign(reg);

  auto immediates = f.immediatesOf(i);
  switch (i.op) {
  case Opcode::jump:
  case Opcode::branch_unless:
    if (std::string why = jumpTo(pc, immediates[0]); !why.empty())
      return why;
    reachable = reachable && i.op != Opcode::jump;
    return {};
  case Opcode::loop_for:
  case Opcode::loop_while: {
    int64_t limit = loops.empty() ? static_cast<int64_t>(f.code.size()) : loops.back().end;
    // The loop_end is at end - 1; the next instruction is still within the outer loop.
    if (immediates[0] <= pc + 1 || immediates[0] >= limit)
      return fmt::format("loop ends at {}, expected {} to {}", immediates[0], pc + 2, limit - 1);
    auto end = static_cast<uint32_t>(immediates[0]);
    if (auto jump = pending.upper_bound(pc); jump != pending.end() && jump->first < end)
      return fmt::format("a jump leads into the loop, to {}", jump->first);
    if (loops.size() == Limits::loopDepth)
      return fmt::format("loops nest deeper than {}", Limits::loopDepth);
    loops.push_back({pc, end, i.op == Opcode::loop_while});
    if (i.op == Opcode::loop_for)
      meet(end);
    return {};
  }
  case Opcode::break_unless:
    if (loops.empty() || !loops.back().isWhile)
      return "break outside of a while loop";
    meet(loops.back().end);
    return {};
  case Opcode::loop_end:
    if (loops.empty() || immediates[0] != loops.back().begin || pc + 1 != loops.back().end)
      return "the end of a loop does not fit its beginning";
    loops.pop_back();
    reachable = false; // the next instruction is only reached by meet(end)
    return {};
  case Opcode::ret:
  case Opcode::raise:
    reachable = false;
    return {};
  default:
    return {};
  }
}

std::string FunctionVerifier::run() {
  for (size_t k = 0; k < f.parameters.size(); ++k) {
    char type = typeOf(static_cast<uint16_t>(k));
    if (f.parameters[k].isMut && type != 't' && type != 'v')
      return fmt::format("parameter {} is mut but has type {}", k, f.registerTypes[k]);
    assign(static_cast<uint16_t>(k));
  }
  for (char type : f.resultTypes)
    if (isPassThrough(type) || (index == 0 && type != 't'))
      return fmt::format("a result has type {}", type);
  for (uint32_t pc = 0; pc < f.code.size(); ++pc) {
    if (auto jump = pending.find(pc); jump != pending.end()) {
      if (reachable)
        for (size_t k = 0; k < assigned.size(); ++k)
          assigned[k] &= jump->second[k];
      else
        assigned = jump->second;
      reachable = true;
      pending.erase(jump);
    }
    if (std::string why = at(pc); !why.empty())
      return fmt::format("instruction {} ({}): {}", pc, opcodeName(f.code[pc].op), why);
  }
  if (!loops.empty())
    return "a loop has no end";
  if (f.code.empty() || (f.code.back().op != Opcode::ret && f.code.back().op != Opcode::raise))
    return "its end can be reached without a return";
  return {};
}

} // namespace

std::optional<Error> verify(DecodedModule &module) {
  std::vector<uint32_t> depths(module.functions.size());
  // Callees have higher indices. From the last function to the first, depths of callees are known.
  for (size_t k = module.functions.size(); k-- > 0;) {
    FunctionVerifier verifier(module, static_cast<uint32_t>(k));
    verifier.depths = &depths;
    if (std::string why = verifier.run(); !why.empty())
      return Error{
          Error::Kind::Malformed,
          fmt::format("plan bytecode is refused: function `{}`: {}", module.strings[module.functions[k].name], why),
          {},
          -1};
    depths[k] = verifier.depth;
  }
  const Function &entry = module.functions.front();
  module.arguments.clear();
  module.hasMutArguments = false;
  module.usesProcessors = false;
  for (const Function &function : module.functions)
    for (const Instruction &instruction : function.code)
      module.usesProcessors |= instruction.op == Opcode::processors;
  for (size_t k = 0; k < entry.parameters.size(); ++k) {
    char type = entry.registerTypes[k];
    module.arguments.push_back(
        {module.strings[entry.parameters[k].name], argumentKind(type), entry.parameters[k].isMut, isPassThrough(type)});
    module.hasMutArguments |= entry.parameters[k].isMut;
  }
  return std::nullopt;
}

} // namespace kpkg::plan
