// Declares plan bytecode as plain data, for the decoder, the verifier, evaluators and printers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/plan/ArgumentInfo.h"
#include "runtime/plan/Limits.h"
#include <string>
#include <vector>

namespace kpkg::plan {

enum class Opcode : uint8_t {
#define KPKG_OPCODE(name, number, signature) name = number,
#include "runtime/plan/Opcodes.def"
};

/// Returns a name such as "add_int"; empty for an invalid number.
std::string_view opcodeName(Opcode op);
/// Returns the signature in Opcodes.def; empty for an invalid number.
std::string_view opcodeSignature(Opcode op);

/// The type of a register, as a letter of Opcodes.def.
using RegisterType = char;
inline constexpr std::string_view registerTypes = "ifbtldsIFBv";
/// Returns the kind of arguments for registers of this type.
Argument::Kind argumentKind(RegisterType type);
inline bool isPassThrough(RegisterType type) { return type == 'I' || type == 'F' || type == 'B'; }

/// Registers and immediates are in the function's pools: results, then operands, then (in another pool) immediates.
struct Instruction {
  Opcode op;
  uint8_t results = 0;
  uint16_t operands = 0;
  uint16_t immediates = 0;
  uint32_t firstRegister = 0;
  uint32_t firstImmediate = 0;
};

struct Parameter {
  uint32_t name = 0; ///< string
  bool isMut = false;
};

struct Function {
  uint32_t name = 0;                 ///< string
  std::vector<Parameter> parameters; ///< in registers 0, 1, ...
  std::string resultTypes;
  std::string registerTypes;
  std::vector<Instruction> code;
  std::vector<uint16_t> registers;
  std::vector<int64_t> immediates;

  std::span<const uint16_t> resultsOf(const Instruction &i) const {
    return {registers.data() + i.firstRegister, i.results};
  }
  std::span<const uint16_t> operandsOf(const Instruction &i) const {
    return {registers.data() + i.firstRegister + i.results, i.operands};
  }
  std::span<const int64_t> immediatesOf(const Instruction &i) const {
    return {immediates.data() + i.firstImmediate, i.immediates};
  }
  /// Appends an instruction.
  void add(Opcode op, std::span<const uint16_t> results, std::span<const uint16_t> operands,
           std::span<const int64_t> immediates);
};

/// Function 0 is the op. A function calls only functions with a higher index, so that there is no recursion.
struct DecodedModule {
  std::vector<std::string> strings;
  std::vector<Function> functions;
  std::vector<ArgumentInfo> arguments; ///< of function 0; filled by the verifier
  bool hasMutArguments = false;        ///< filled by the verifier
  bool usesProcessors = false;         ///< likewise
};

/// A launch's immediates: kernel string, number of parameters, (name string, at_least) for each, number of arguments,
/// mut for each. Its operands: parameters, arguments, then the grid. No grid means a persistent launch.
struct LaunchLayout {
  uint32_t kernel;
  std::span<const int64_t> params; ///< pairs
  std::span<const int64_t> argMut;
  size_t gridCount;
};
/// Returns false if the instruction's immediates and operand count do not fit this format.
bool readLaunch(const Function &function, const Instruction &instruction, LaunchLayout &layout);

//===--- Bytes ----------------------------------------------------------------------------------------------------===//

/// The first bytes of every plan section; major and minor version follow as u16. A reader accepts every minor version
/// of its major version with known opcodes. All numbers are little endian.
inline constexpr uint8_t magic[4] = {'K', 'P', 'L', 'N'};
inline constexpr uint16_t majorVersion = 1;
inline constexpr uint16_t minorVersion = 0;

/// Decodes the bytes. Checks the framing, limits and indices into tables, not the meaning of the code.
std::optional<Error> decode(std::span<const uint8_t> bytes, DecodedModule &module);
/// The inverse of decode().
std::vector<uint8_t> encode(const DecodedModule &module);
/// Accepts only code that evaluate() can run for any call without further checks, and fills module.arguments. It checks
/// register types, assignment before use on every path, forward jumps within their loop, and calls without recursion.
std::optional<Error> verify(DecodedModule &module);

//===--- Text -----------------------------------------------------------------------------------------------------===//

/// Returns a listing with one instruction per line.
std::string dumpText(const DecodedModule &module);
/// Returns {"version":[1,0], "strings":[...], "functions":[{"name":..., "parameters":[{"name","type","mut"}],
/// "results":"t", "registers":"tii...", "code":[["add_int",[results],[operands],[immediates]], ...]}]}. Immediates are
/// integers, and a double is given by its bits. Opcodes and their immediates are those of Opcodes.def.
std::string dumpJson(const DecodedModule &module);

} // namespace kpkg::plan
