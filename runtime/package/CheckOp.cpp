// Checks ops of packages: their names, and their schemas, which must match their arguments and results.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Schema.h"
#include "runtime/plan/Limits.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

namespace kpkg::package {

static std::string spelling(double value) {
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

static std::string spelling(const OpArgument &argument) {
  const kpkg_value &value = argument.defaultValue;
  switch (value.kind) {
  case KPKG_INT:
    return std::to_string(value.as.integer);
  case KPKG_FLOAT:
    return spelling(value.as.real);
  case KPKG_BOOLEAN:
    return value.as.integer ? "True" : "False";
  case KPKG_DTYPE:
    return std::string(plan::dtypeName(plan::DType(value.as.integer)));
  case KPKG_STRING:
    return "\"" + argument.text + "\"";
  case KPKG_INT_LIST: {
    std::string text = "[";
    for (size_t i = 0; i < argument.list.size(); ++i)
      text += (i ? ", " : "") + std::to_string(argument.list[i]);
    return text + "]";
  }
  default:
    return "None";
  }
}

std::string schemaOf(const OpEntry &op) {
  std::string text = op.name.substr(op.name.rfind(':') + 1) + "(";
  char alias = 'a';
  for (size_t i = 0; i < op.arguments.size(); ++i) {
    const OpArgument &argument = op.arguments[i];
    std::string type = argument.type;
    if (argument.mutates)
      type = std::string("Tensor(") + alias++ + "!)" +
             (argument.kind == KPKG_TENSOR_LIST ? "[]"
              : argument.optional               ? "?"
                                                : "");
    text += (i ? ", " : "") + type + " " + argument.name;
    if (argument.defaultValue.kind != KPKG_DEFAULT)
      text += "=" + spelling(argument);
  }
  text += ") -> ";
  if (op.results.size() == 1)
    return text + op.results[0];
  text += "(";
  for (size_t i = 0; i < op.results.size(); ++i)
    text += (i ? ", " : "") + op.results[i];
  return text + ")";
}

/// Returns whether a text is an identifier that Python does not reserve.
static bool isWord(std::string_view text) {
  auto isLetter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && isLetter(text[0]) && !(text.starts_with("__") && text.ends_with("__")) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return isLetter(c) || (c >= '0' && c <= '9'); });
}

/// Returns whether the schema's text can represent a string.
static bool isPlainText(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
}

static std::string checkNames(const OpEntry &op) {
  std::string_view name = op.name;
  size_t colons = name.find("::");
  if (colons == name.npos || !isWord(name.substr(0, colons)) || !isWord(name.substr(colons + 2)))
    return "is no name of the form `namespace::name`";
  if (plan::isReservedNamespace(name.substr(0, colons)))
    return "is in a namespace of PyTorch's own ops";
  if (op.reference == op.name)
    return "is its own reference";
  std::unordered_set<std::string_view> names;
  for (const OpArgument &argument : op.arguments) {
    if (!isWord(argument.name))
      return "has an argument '" + argument.name + "', which is no name";
    if (!names.insert(argument.name).second)
      return "has two arguments '" + argument.name + "'";
    if (argument.mutates && argument.kind != KPKG_TENSOR && argument.kind != KPKG_TENSOR_LIST)
      return "writes argument '" + argument.name + "', which is no tensor";
    if (argument.defaultValue.kind == KPKG_STRING && !isPlainText(argument.text))
      return "has a default of '" + argument.name + "' with quotes, backslashes or characters that are not ASCII";
  }
  return {};
}

static std::string shortened(const std::string &text) {
  constexpr size_t most = 500;
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

std::string checkOp(const OpEntry &op) {
  if (std::string why = checkNames(op); !why.empty())
    return why;
  if (std::string own = schemaOf(op); op.schema != own)
    return "has the schema '" + shortened(op.schema) + "', but its arguments and results are those of '" +
           shortened(own) + "'";
  return {};
}

} // namespace kpkg::package
