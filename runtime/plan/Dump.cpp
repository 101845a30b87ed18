// Prints decoded plan bytecode as a listing and as JSON.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plan/Decoded.h"
#include <bit>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>

namespace kpkg::plan {

namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out += '"';
}

/// Returns the parameters and arguments of a launch by their roles.
std::string launchText(const DecodedModule &module, const Function &f, const Instruction &i) {
  LaunchLayout layout;
  if (!readLaunch(f, i, layout))
    return "?";
  auto regs = f.operandsOf(i);
  size_t params = layout.params.size() / 2, args = layout.argMut.size();
  std::string out = quoted(module.strings[layout.kernel]) + " [";
  for (size_t k = 0; k < params; ++k)
    fmt::format_to(std::back_inserter(out), "{}{} {} %{}", k ? ", " : "",
                   module.strings[static_cast<size_t>(layout.params[2 * k])], layout.params[2 * k + 1] ? ">=" : "=",
                   regs[k]);
  out += "] (";
  for (size_t k = 0; k < args; ++k)
    fmt::format_to(std::back_inserter(out), "{}{}%{}", k ? ", " : "", layout.argMut[k] ? "mut " : "", regs[params + k]);
  out += ")";
  if (layout.gridCount)
    fmt::format_to(std::back_inserter(out), " grid (%{})", fmt::join(regs.subspan(params + args), ", %"));
  return out;
}

std::string immediatesText(const DecodedModule &module, const Function &f, const Instruction &i) {
  std::string_view signature = opcodeSignature(i.op);
  auto values = f.immediatesOf(i);
  if (i.op == Opcode::call)
    return " " + quoted(module.strings[module.functions[static_cast<size_t>(values[0])].name]);
  if (i.op == Opcode::raise)
    return " " + quoted(module.strings[static_cast<size_t>(values[0])]);
  size_t semicolon = signature.find(';');
  std::string out;
  for (size_t k = 0; semicolon != std::string_view::npos && k < values.size(); ++k) {
    out += ' ';
    switch (signature[semicolon + 1 + k]) {
    case '~':
      out += fmt::format("{}", std::bit_cast<double>(values[k]));
      break;
    case '$':
      out += quoted(module.strings[static_cast<size_t>(values[k])]);
      break;
    case 'D':
      out += dtypeName(static_cast<DType>(values[k]));
      break;
    case 'm': {
      constexpr std::string_view names[] = {"false", "eq",  "gt",  "ge",  "lt",  "le",  "ne",  "ord",
                                            "uno",   "ueq", "ugt", "uge", "ult", "ule", "une", "true"};
      out += names[static_cast<size_t>(values[k]) & 15];
      break;
    }
    case '>':
    case '<':
      out += fmt::format("@{}", values[k]);
      break;
    default:
      out += fmt::format("{}", values[k]);
    }
  }
  return out;
}

std::string typeName(RegisterType type) {
  switch (type) {
  case 'i':
    return "Int";
  case 'f':
    return "Float";
  case 'b':
    return "Bool";
  case 't':
    return "Tensor";
  case 'l':
    return "List";
  case 'd':
    return "DType";
  case 's':
    return "String";
  case 'v':
    return "List of Tensor";
  case 'I':
    return "Int as passed";
  case 'F':
    return "Float as passed";
  default:
    return "Bool as passed";
  }
}

} // namespace

std::string dumpText(const DecodedModule &module) {
  std::string out;
  auto put = std::back_inserter(out);
  for (const Function &f : module.functions) {
    fmt::format_to(put, "{}(", module.strings[f.name]);
    for (size_t k = 0; k < f.parameters.size(); ++k)
      fmt::format_to(put, "{}{}%{} {}: {}", k ? ", " : "", f.parameters[k].isMut ? "mut " : "", k,
                     module.strings[f.parameters[k].name], typeName(f.registerTypes[k]));
    fmt::format_to(put, ") -> {}\n", f.resultTypes.empty() ? "nothing" : f.resultTypes);
    for (size_t pc = 0; pc < f.code.size(); ++pc) {
      const Instruction &i = f.code[pc];
      fmt::format_to(put, "{:>5}  ", pc);
      if (i.results)
        fmt::format_to(put, "%{} = ", fmt::join(f.resultsOf(i), ", %"));
      out += opcodeName(i.op);
      if (i.op == Opcode::launch) {
        out += ' ' + launchText(module, f, i) + '\n';
        continue;
      }
      if (i.operands)
        fmt::format_to(put, " %{}", fmt::join(f.operandsOf(i), ", %"));
      out += immediatesText(module, f, i) + '\n';
    }
  }
  return out;
}

std::string dumpJson(const DecodedModule &module) {
  std::string out;
  auto put = std::back_inserter(out);
  fmt::format_to(put, "{{\"version\":[{},{}],\"strings\":[", majorVersion, minorVersion);
  for (size_t k = 0; k < module.strings.size(); ++k)
    fmt::format_to(put, "{}{}", k ? "," : "", quoted(module.strings[k]));
  out += "],\"functions\":[";
  for (size_t index = 0; index < module.functions.size(); ++index) {
    const Function &f = module.functions[index];
    fmt::format_to(put, "{}{{\"name\":{},\"parameters\":[", index ? "," : "", quoted(module.strings[f.name]));
    for (size_t k = 0; k < f.parameters.size(); ++k)
      fmt::format_to(put, "{}{{\"name\":{},\"type\":\"{}\",\"mut\":{}}}", k ? "," : "",
                     quoted(module.strings[f.parameters[k].name]), f.registerTypes[k], f.parameters[k].isMut);
    fmt::format_to(put, "],\"results\":\"{}\",\"registers\":\"{}\",\"code\":[", f.resultTypes, f.registerTypes);
    for (size_t pc = 0; pc < f.code.size(); ++pc) {
      const Instruction &i = f.code[pc];
      fmt::format_to(put, "{}[\"{}\",[{}],[{}],[{}]]", pc ? "," : "", opcodeName(i.op), fmt::join(f.resultsOf(i), ","),
                     fmt::join(f.operandsOf(i), ","), fmt::join(f.immediatesOf(i), ","));
    }
    out += "]}";
  }
  return out += "]}";
}

} // namespace kpkg::plan
