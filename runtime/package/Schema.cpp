// Parses schemas of ops to the manifest's format, whose reader knows the types.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Schema.h"
#include "runtime/package/ManifestEntry.h"

namespace kpkg::package {

static std::string trimmed(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t\n"), end = text.find_last_not_of(" \t\n");
  return begin == text.npos ? "" : std::string(text.substr(begin, end - begin + 1));
}

/// Splits at commas outside brackets and strings. An empty text has no parts.
static std::vector<std::string> splitParts(std::string_view text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    quoted ^= text[i] == '"';
    if (quoted)
      continue;
    depth += text[i] == '[' || text[i] == '(';
    depth -= text[i] == ']' || text[i] == ')';
    if (text[i] == ',' && depth == 0) {
      parts.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (std::string last = trimmed(text.substr(begin)); !last.empty() || !parts.empty())
    parts.push_back(last);
  return parts;
}

static json readDefault(const std::string &text, const std::string &where) {
  if (text == "None")
    return nullptr;
  if (text == "True" || text == "False")
    return text == "True";
  json value = json::parse(text, nullptr, false);
  if (!value.is_discarded())
    return value;
  if (plan::dtypeFromName(text) == plan::DType::none)
    throw Refusal{where + " has the default '" + text + "', which is no value"};
  return text;
}

/// Parses "Tensor(a!) x", "int[] dim=[]".
static json readArgument(const std::string &text, const std::string &where) {
  size_t equals = text.find('=');
  std::string head = trimmed(std::string_view(text).substr(0, equals));
  size_t space = head.rfind(' ');
  if (space == head.npos)
    throw Refusal{where + " has the argument '" + text + "', expected a type and a name"};
  json argument = {{"type", trimmed(std::string_view(head).substr(0, space))}, {"name", head.substr(space + 1)}};
  if (equals != text.npos)
    argument["default"] = readDefault(trimmed(std::string_view(text).substr(equals + 1)), where);
  return argument;
}

/// Parses "Tensor", "(Tensor, Tensor?)", "(Tensor first, Tensor second)", "()".
static json readResults(std::string text) {
  json results = json::array();
  if (text.starts_with('(') && text.ends_with(')'))
    text = text.substr(1, text.size() - 2);
  for (const std::string &part : splitParts(text))
    results.push_back(part.substr(0, part.find(' ')));
  return results;
}

static OpEntry readOpText(const std::string &text) {
  size_t open = text.find('('), arrow = text.rfind("->");
  std::string name = trimmed(std::string_view(text).substr(0, open)), where = "the schema of '" + name + "'";
  size_t colons = name.find("::");
  if (colons == name.npos || colons == 0 || colons + 2 == name.size())
    throw Refusal{"'" + name + "' has no namespace: an op that no package has is named in full, as in 'kpkg::gemm'"};
  if (open == text.npos) {
    OpEntry op;
    op.name = name;
    return op;
  }
  size_t close = arrow == text.npos ? arrow : text.rfind(')', arrow);
  if (close == text.npos || close < open)
    throw Refusal{where + " is '" + text + "', expected 'name(arguments) -> results'"};
  json arguments = json::array();
  for (const std::string &part : splitParts(std::string_view(text).substr(open + 1, close - open - 1)))
    if (part != "*") // the following arguments are named, like all others
      arguments.push_back(readArgument(part, where));
  json value = {{"name", name},
                {"schema", trimmed(std::string_view(text).substr(colons + 2))},
                {"plan", ""},
                {"arguments", std::move(arguments)},
                {"results", readResults(trimmed(std::string_view(text).substr(arrow + 2)))}};
  return readOp(value, where);
}

Result<OpEntry> readSchema(const std::string &text) {
  try {
    return readOpText(text);
  } catch (const Refusal &refusal) {
    return Error{KPKG_ERROR_USE, refusal.why, {}, {}, {}};
  }
}

} // namespace kpkg::package
