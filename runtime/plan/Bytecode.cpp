// Reads and writes the bytes of plan bytecode.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   magic, u16 major, u16 minor
//   u32 strings: each u32 size, bytes
//   u32 functions: each  u32 name
//                        u32 parameters: each u32 name, u8 mut       (types: those of the first registers)
//                        u32 results: u8 type each
//                        u32 registers: u8 type each
//                        u32 instructions: each u8 opcode, u8 results, u16 operands, u16 immediates, u16 registers..,
//                        i64 immediates..
#include "runtime/plan/Decoded.h"
#include <fmt/format.h>

namespace kpkg::plan {

namespace {

/// Reads little-endian numbers. After the first failure, everything reads as 0 and `error` stays set.
class Reader {
public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes(bytes) {}
  std::string error;

  template <typename T> T number() {
    uint64_t value = 0;
    if (!need(sizeof(T)))
      return 0;
    for (size_t i = 0; i < sizeof(T); ++i)
      value |= static_cast<uint64_t>(bytes[at + i]) << (8 * i);
    at += sizeof(T);
    return static_cast<T>(value);
  }
  /// Reads a count, at most `limit` and small enough that `unit` bytes for each can still follow.
  size_t count(const char *what, size_t limit, size_t unit) {
    size_t value = number<uint32_t>();
    if (error.empty() && value > limit)
      error = fmt::format("{} {}, more than {}", value, what, limit);
    else if (error.empty() && value * unit > bytes.size() - at)
      error = fmt::format("{} {} do not fit the {} bytes that follow", value, what, bytes.size() - at);
    return error.empty() ? value : 0;
  }
  std::string text(size_t size) {
    if (!need(size))
      return {};
    std::string result(reinterpret_cast<const char *>(bytes.data()) + at, size);
    at += size;
    return result;
  }
  bool ok() const { return error.empty(); }
  bool atEnd() const { return at == bytes.size(); }
  size_t position() const { return at; }

private:
  bool need(size_t size) {
    if (error.empty() && size > bytes.size() - at)
      error = fmt::format("ends at byte {} within a field of {} bytes", bytes.size(), size);
    return error.empty();
  }
  std::span<const uint8_t> bytes;
  size_t at = 0;
};

std::string typesText(Reader &in, const char *what, size_t limit) {
  std::string types = in.text(in.count(what, limit, 1));
  for (char type : types)
    if (in.ok() && registerTypes.find(type) == std::string_view::npos)
      in.error = fmt::format("unknown register type {}", static_cast<unsigned char>(type));
  return types;
}

void readInstruction(Reader &in, Function &f) {
  Instruction i;
  uint8_t number = in.number<uint8_t>();
  i.op = static_cast<Opcode>(number);
  i.results = in.number<uint8_t>();
  i.operands = in.number<uint16_t>();
  i.immediates = in.number<uint16_t>();
  if (in.ok() && opcodeName(i.op).empty())
    in.error = fmt::format("unknown opcode {}; a newer runtime may know it", number);
  else if (in.ok() && (i.operands > Limits::operands || i.immediates > 3 * Limits::operands + 3))
    in.error = fmt::format("{} operands and {} immediates in one instruction", i.operands, i.immediates);
  i.firstRegister = static_cast<uint32_t>(f.registers.size());
  i.firstImmediate = static_cast<uint32_t>(f.immediates.size());
  for (size_t k = 0; in.ok() && k < static_cast<size_t>(i.results) + i.operands; ++k) {
    f.registers.push_back(in.number<uint16_t>());
    if (in.ok() && f.registers.back() >= f.registerTypes.size())
      in.error = fmt::format("register {} of {}", f.registers.back(), f.registerTypes.size());
  }
  for (size_t k = 0; in.ok() && k < i.immediates; ++k)
    f.immediates.push_back(in.number<int64_t>());
  f.code.push_back(i);
}

void readFunction(Reader &in, Function &f, size_t stringCount) {
  auto string = [&] {
    uint32_t index = in.number<uint32_t>();
    if (in.ok() && index >= stringCount)
      in.error = fmt::format("string {} of {}", index, stringCount);
    return index;
  };
  f.name = string();
  f.parameters.resize(in.count("parameters", Limits::parameters, 5));
  for (Parameter &parameter : f.parameters) {
    parameter.name = string();
    parameter.isMut = in.number<uint8_t>() != 0;
  }
  f.resultTypes = typesText(in, "results", Limits::results);
  f.registerTypes = typesText(in, "registers", Limits::registers);
  if (in.ok() && f.parameters.size() > f.registerTypes.size())
    in.error = "fewer registers than parameters";
  size_t count = in.count("instructions", Limits::instructions, 6);
  for (size_t k = 0; in.ok() && k < count; ++k)
    readInstruction(in, f);
}

Error malformed(std::string message) {
  return Error{Error::Kind::Malformed, "plan bytecode is refused: " + std::move(message), {}, -1};
}

} // namespace

std::optional<Error> decode(std::span<const uint8_t> bytes, DecodedModule &module) {
  module = {};
  if (bytes.size() > Limits::bytes)
    return malformed(fmt::format("{} bytes, more than {}", bytes.size(), Limits::bytes));
  Reader in(bytes);
  for (uint8_t expected : magic)
    if (in.number<uint8_t>() != expected)
      return malformed("it does not begin with KPLN");
  uint16_t major = in.number<uint16_t>(), minor = in.number<uint16_t>();
  if (in.ok() && major != majorVersion)
    return malformed(fmt::format("version {}.{}, this runtime reads {}.x", major, minor, majorVersion));
  size_t strings = in.count("strings", Limits::strings, 4);
  for (size_t i = 0; in.ok() && i < strings; ++i)
    module.strings.push_back(in.text(in.count("bytes in a string", Limits::stringBytes, 1)));
  module.functions.resize(in.count("functions", Limits::functions, 20));
  for (Function &function : module.functions)
    readFunction(in, function, module.strings.size());
  if (in.ok() && module.functions.empty())
    in.error = "it has no function";
  if (in.ok() && !in.atEnd())
    in.error = fmt::format("bytes after the end, at {} of {}", in.position(), bytes.size());
  if (!in.ok())
    return malformed(in.error);
  return std::nullopt;
}

std::vector<uint8_t> encode(const DecodedModule &module) {
  std::vector<uint8_t> out(std::begin(magic), std::end(magic));
  auto put = [&](auto value) {
    for (size_t i = 0; i < sizeof(value); ++i)
      out.push_back(static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i)));
  };
  auto putText = [&](std::string_view text) {
    put(static_cast<uint32_t>(text.size()));
    out.insert(out.end(), text.begin(), text.end());
  };
  put(majorVersion);
  put(minorVersion);
  put(static_cast<uint32_t>(module.strings.size()));
  for (const std::string &string : module.strings)
    putText(string);
  put(static_cast<uint32_t>(module.functions.size()));
  for (const Function &f : module.functions) {
    put(f.name);
    put(static_cast<uint32_t>(f.parameters.size()));
    for (const Parameter &parameter : f.parameters) {
      put(parameter.name);
      put(static_cast<uint8_t>(parameter.isMut));
    }
    putText(f.resultTypes);
    putText(f.registerTypes);
    put(static_cast<uint32_t>(f.code.size()));
    for (const Instruction &i : f.code) {
      put(static_cast<uint8_t>(i.op));
      put(i.results);
      put(i.operands);
      put(i.immediates);
      for (uint16_t reg : f.resultsOf(i))
        put(reg);
      for (uint16_t reg : f.operandsOf(i))
        put(reg);
      for (int64_t value : f.immediatesOf(i))
        put(value);
    }
  }
  return out;
}

} // namespace kpkg::plan
