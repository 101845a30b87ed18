// Writes plan bytecode by hand, for tests of the runtime without a compiler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_TEST_RUNTIME_PACKAGE_PLANWRITER_H
#define KPKG_TEST_RUNTIME_PACKAGE_PLANWRITER_H

#include "runtime/plan/Decoded.h"

#include <initializer_list>
#include <string>
#include <vector>

namespace kpkg::test {

/// Writes one function; calls that assign registers create them.
class PlanWriter {
public:
  using Register = uint16_t;
  struct Param {
    std::string name;
    Register value;
    bool atLeast = false;
  };
  struct Arg {
    Register value;
    bool mut = false;
  };

  explicit PlanWriter(const std::string &name) { function.name = string(name); }

  /// Adds a parameter, before any other register. `type` is a letter of Opcodes.def.
  Register parameter(const std::string &name, char type, bool mut = false) {
    function.parameters.push_back({string(name), mut});
    return make(type);
  }
  Register op(plan::Opcode opcode, char resultType, std::initializer_list<Register> operands,
              std::initializer_list<int64_t> immediates = {}) {
    Register result = make(resultType);
    function.add(opcode, std::vector{result}, std::vector(operands), std::vector(immediates));
    return result;
  }
  Register integer(int64_t value) { return op(plan::Opcode::const_int, 'i', {}, {value}); }
  /// Raises unless `condition`; `text` takes one value.
  void require(Register condition, const std::string &text, Register value) {
    Register failed = op(plan::Opcode::xor_bool, 'b', {condition, op(plan::Opcode::const_bool, 'b', {}, {1})});
    size_t branch = function.code.size();
    function.add(plan::Opcode::branch_unless, {}, std::vector{failed}, std::vector<int64_t>{int64_t(branch + 2)});
    function.add(plan::Opcode::raise, {}, std::vector{value}, std::vector<int64_t>{string(text)});
  }
  /// Adds a launch; an empty grid makes it persistent.
  void launch(const std::string &kernel, const std::vector<Param> &params, const std::vector<Arg> &args,
              const std::vector<Register> &grid) {
    std::vector<Register> operands;
    std::vector<int64_t> immediates = {string(kernel), int64_t(params.size())};
    for (const Param &param : params) {
      operands.push_back(param.value);
      immediates.insert(immediates.end(), {string(param.name), param.atLeast});
    }
    immediates.push_back(int64_t(args.size()));
    for (const Arg &arg : args) {
      operands.push_back(arg.value);
      immediates.push_back(arg.mut);
    }
    operands.insert(operands.end(), grid.begin(), grid.end());
    function.add(plan::Opcode::launch, {}, operands, immediates);
  }
  std::string finish(std::initializer_list<Register> results) {
    for (Register result : results)
      function.resultTypes += function.registerTypes[result];
    function.add(plan::Opcode::ret, {}, std::vector(results), {});
    module.functions = {function};
    std::vector<uint8_t> bytes = plan::encode(module);
    return {bytes.begin(), bytes.end()};
  }

private:
  Register make(char type) {
    function.registerTypes += type;
    return Register(function.registerTypes.size() - 1);
  }
  uint32_t string(const std::string &text) {
    for (size_t i = 0; i < module.strings.size(); ++i)
      if (module.strings[i] == text)
        return uint32_t(i);
    module.strings.push_back(text);
    return uint32_t(module.strings.size() - 1);
  }

  plan::DecodedModule module;
  plan::Function function;
};

} // namespace kpkg::test
#endif
