// Generates random well-typed plan programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/plan/RandomProgram.h"
#include <bit>

namespace kpkg::plan {

namespace {

constexpr Opcode allOpcodes[] = {
#define KPKG_OPCODE(name, number, signature) Opcode::name,
#include "runtime/plan/Opcodes.def"
};

class Generator {
public:
  Generator(std::mt19937_64 &random, DecodedModule &module) : random(random), module(module) {}

  void function(size_t index, size_t count) {
    f = {};
    live.clear();
    functionIndex = index;
    functionCount = count;
    f.name = 0;
    // At least one register of each type exists, so that every operand can be found.
    std::string types = "tttlvidfbs";
    for (char type : types.substr(0, 3 + below(types.size() - 2)))
      f.parameters.push_back({1, (type == 't' || type == 'v') && below(2) == 0}), live.push_back(define(type));
    if (below(2))
      f.parameters.push_back({1, false}), live.push_back(define("IFB"[below(3)]));
    f.resultTypes = index == 0 ? std::string(below(3), 't') : std::string(1, "tlvibfds"[below(8)]);
    constants();
    block(0, 2 + below(12));
    std::vector<uint16_t> results;
    for (char type : f.resultTypes)
      results.push_back(pick(type));
    f.add(Opcode::ret, {}, results, {});
    module.functions[index] = std::move(f);
  }

private:
  uint64_t below(uint64_t n) { return random() % n; }
  int64_t small() { return static_cast<int64_t>(below(7)) - 2; }
  uint16_t define(char type) {
    f.registerTypes.push_back(type);
    return static_cast<uint16_t>(f.registerTypes.size() - 1);
  }
  /// Returns a live register of this type; creates one for a pass-through type that has none.
  uint16_t pick(char type) {
    std::vector<uint16_t> fitting;
    for (uint16_t reg : live)
      if (f.registerTypes[reg] == type)
        fitting.push_back(reg);
    if (!fitting.empty())
      return fitting[below(fitting.size())];
    uint16_t from = pick(static_cast<char>(type + 32)), reg = define(type); // 'I' from 'i'
    Opcode op = type == 'I' ? Opcode::defer_int : type == 'F' ? Opcode::defer_float : Opcode::defer_bool;
    f.add(op, std::array{reg}, std::array{from}, {});
    live.push_back(reg);
    return reg;
  }
  void constants() {
    auto add = [&](Opcode op, char type, std::initializer_list<int64_t> values) {
      uint16_t reg = define(type);
      f.add(op, std::array{reg}, {}, std::span(values.begin(), values.size()));
      live.push_back(reg);
    };
    for (int64_t value : {0, 1, 2})
      add(Opcode::const_int, 'i', {value});
    add(Opcode::const_int, 'i', {small()});
    add(Opcode::const_float, 'f', {std::bit_cast<int64_t>(0.5)});
    add(Opcode::const_bool, 'b', {static_cast<int64_t>(below(2))});
    add(Opcode::const_dtype, 'd', {1 + static_cast<int64_t>(below(15))});
    add(Opcode::const_string, 's', {1});
    if (below(6) == 0)
      add(Opcode::none, 't', {});
    uint16_t list = define('l');
    f.add(Opcode::list, std::array{list}, std::array{pick('i'), pick('i')}, {});
    live.push_back(list);
    uint16_t tensor = define('t');
    f.add(Opcode::empty, std::array{tensor}, std::array{list, pick('d')}, {});
    live.push_back(tensor);
    uint16_t tensors = define('v');
    f.add(Opcode::tensors, std::array{tensors}, std::array{pick('t'), tensor}, {});
    live.push_back(tensors);
  }

  int64_t here() { return static_cast<int64_t>(f.code.size()); }
  size_t jump(Opcode op, std::span<const uint16_t> operands) {
    f.add(op, {}, operands, std::array<int64_t, 1>{0});
    return f.immediates.size() - 1;
  }

  void block(int depth, uint64_t length) {
    for (uint64_t k = 0; k < length; ++k) {
      switch (depth < 3 ? below(24) : 23) {
      case 0:
        branch(depth);
        break;
      case 1:
        forLoop(depth);
        break;
      case 2:
        whileLoop(depth);
        break;
      case 3:
        call();
        break;
      case 4:
      case 5:
        launch();
        break;
      case 6:
        if (below(8) == 0)
          f.add(Opcode::raise, {}, std::array{pick('i'), pick('t')}, std::array<int64_t, 1>{2});
        break;
      default:
        plain();
        break;
      }
    }
  }

  /// Registers that the body defines are not visible after it.
  void scoped(int depth) {
    auto before = live;
    block(depth + 1, 1 + below(3));
    live = std::move(before);
  }
  void branch(int depth) {
    size_t toElse = jump(Opcode::branch_unless, std::array{pick('b')});
    scoped(depth);
    size_t toEnd = jump(Opcode::jump, {});
    f.immediates[toElse] = here();
    scoped(depth);
    // Adds an instruction, because a jump needs a target after itself.
    f.immediates[toEnd] = here();
    f.add(Opcode::const_int, std::array{define('i')}, {}, std::array<int64_t, 1>{7});
  }
  void forLoop(int depth) {
    uint16_t counter = define('i');
    f.add(Opcode::move, std::array{counter}, std::array{pick('i')}, {});
    int64_t begin = here();
    size_t end = jump(Opcode::loop_for, std::array{counter, pick('i'), pick('i')});
    live.push_back(counter);
    scoped(depth);
    f.add(Opcode::loop_end, {}, {}, std::array{begin});
    f.immediates[end] = here();
  }
  void whileLoop(int depth) {
    int64_t begin = here();
    size_t end = jump(Opcode::loop_while, {});
    f.add(Opcode::break_unless, {}, std::array{pick('b')}, {});
    // Most such loops would not end otherwise.
    uint16_t no = define('b');
    f.add(Opcode::const_bool, std::array{no}, {}, std::array<int64_t, 1>{0});
    scoped(depth);
    f.add(Opcode::break_unless, {}, std::array{no}, {});
    f.add(Opcode::loop_end, {}, {}, std::array{begin});
    f.immediates[end] = here();
  }
  void call() {
    if (functionIndex + 1 >= functionCount)
      return;
    size_t callee = functionIndex + 1 + below(functionCount - functionIndex - 1);
    const Function &g = module.functions[callee];
    std::vector<uint16_t> operands, results;
    for (size_t k = 0; k < g.parameters.size(); ++k)
      operands.push_back(pick(g.registerTypes[k]));
    for (char type : g.resultTypes)
      results.push_back(define(type));
    f.add(Opcode::call, results, operands, std::array{static_cast<int64_t>(callee)});
    live.insert(live.end(), results.begin(), results.end());
  }
  void launch() {
    std::vector<uint16_t> operands{pick('i'), pick('d')};
    std::vector<int64_t> immediates{2, 2, 3, static_cast<int64_t>(below(2)), 3, 0};
    size_t args = 1 + below(4);
    immediates.push_back(static_cast<int64_t>(args));
    for (size_t k = 0; k < args; ++k) {
      char type = "tttifbIFB"[below(9)];
      operands.push_back(pick(type));
      immediates.push_back(type == 't' && below(2));
    }
    for (uint64_t k = below(4); k > 0; --k)
      operands.push_back(pick('i'));
    f.add(Opcode::launch, {}, operands, immediates);
  }
  void plain() {
    Opcode op = allOpcodes[below(std::size(allOpcodes))];
    std::string_view signature = opcodeSignature(op);
    if (signature.find_first_of("!<>") != std::string_view::npos || op == Opcode::break_unless)
      return;
    char same = "ifbtldsv"[below(8)];
    size_t colon = signature.find(':'), semicolon = std::min(signature.find(';'), signature.size());
    std::vector<uint16_t> operands, results;
    std::vector<int64_t> immediates;
    for (char type : signature.substr(colon + 1, semicolon - colon - 1)) {
      if (type == '*')
        for (uint64_t k = below(4); k > 0; --k)
          operands.push_back(pick(signature[colon + 1]));
      else
        operands.push_back(pick(type == 'T' ? same : type));
    }
    for (char kind : semicolon < signature.size() ? signature.substr(semicolon + 1) : std::string_view())
      immediates.push_back(kind == '#'   ? small()
                           : kind == '~' ? std::bit_cast<int64_t>(static_cast<double>(small()) / 2)
                           : kind == '$' ? static_cast<int64_t>(below(module.strings.size()))
                           : kind == 'D' ? 1 + static_cast<int64_t>(below(15))
                                         : static_cast<int64_t>(below(16)));
    for (char type : signature.substr(0, colon))
      results.push_back(define(type == 'T' ? same : type));
    f.add(op, results, operands, immediates);
    live.insert(live.end(), results.begin(), results.end());
  }

  std::mt19937_64 &random;
  DecodedModule &module;
  Function f;
  std::vector<uint16_t> live;
  size_t functionIndex = 0, functionCount = 0;
};

} // namespace

DecodedModule randomProgram(std::mt19937_64 &random) {
  DecodedModule module;
  module.strings = {"ns::op", "x", "text {} and {}", "N"};
  size_t count = 1 + random() % 3;
  module.functions.resize(count);
  for (size_t k = count; k-- > 0;)
    Generator(random, module).function(k, count);
  return module;
}

} // namespace kpkg::plan
