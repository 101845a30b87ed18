// Defines tables of opcodes, and reads parts of instructions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plan/Decoded.h"

namespace kpkg::plan {

std::string_view opcodeName(Opcode op) {
  switch (op) {
#define KPKG_OPCODE(name, number, signature)                                                                           \
  case Opcode::name:                                                                                                   \
    return #name;
#include "runtime/plan/Opcodes.def"
  }
  return {};
}

std::string_view opcodeSignature(Opcode op) {
  switch (op) {
#define KPKG_OPCODE(name, number, signature)                                                                           \
  case Opcode::name:                                                                                                   \
    return signature;
#include "runtime/plan/Opcodes.def"
  }
  return {};
}

Argument::Kind argumentKind(RegisterType type) {
  using Kind = Argument::Kind;
  switch (type) {
  case 'i':
  case 'I':
    return Kind::Int;
  case 'f':
  case 'F':
    return Kind::Float;
  case 'b':
  case 'B':
    return Kind::Bool;
  case 't':
    return Kind::Tensor;
  case 'l':
    return Kind::List;
  case 'd':
    return Kind::DType;
  case 's':
    return Kind::String;
  case 'v':
    return Kind::TensorList;
  }
  return Kind::None;
}

void Function::add(Opcode op, std::span<const uint16_t> results, std::span<const uint16_t> operands,
                   std::span<const int64_t> values) {
  Instruction i;
  i.op = op;
  i.results = static_cast<uint8_t>(results.size());
  i.operands = static_cast<uint16_t>(operands.size());
  i.immediates = static_cast<uint16_t>(values.size());
  i.firstRegister = static_cast<uint32_t>(registers.size());
  i.firstImmediate = static_cast<uint32_t>(immediates.size());
  registers.insert(registers.end(), results.begin(), results.end());
  registers.insert(registers.end(), operands.begin(), operands.end());
  immediates.insert(immediates.end(), values.begin(), values.end());
  code.push_back(i);
}

bool readLaunch(const Function &function, const Instruction &instruction, LaunchLayout &layout) {
  auto values = function.immediatesOf(instruction);
  if (values.size() < 2 || values[1] < 0 || values[1] > instruction.operands)
    return false;
  size_t params = static_cast<size_t>(values[1]);
  if (values.size() < 3 + 2 * params)
    return false;
  int64_t args = values[2 + 2 * params];
  if (args < 0 || static_cast<size_t>(args) + params > instruction.operands ||
      values.size() != 3 + 2 * params + static_cast<size_t>(args))
    return false;
  layout.kernel = static_cast<uint32_t>(values[0]);
  layout.params = values.subspan(2, 2 * params);
  layout.argMut = values.subspan(3 + 2 * params);
  layout.gridCount = instruction.operands - params - static_cast<size_t>(args);
  return layout.gridCount <= 3;
}

} // namespace kpkg::plan
