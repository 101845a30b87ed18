// Parses schemas of ops to the manifest's format, whose reader knows the types.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Schema.h"
#include "runtime/manifest/Read.h"

#include <nlohmann/json.hpp>

namespace kpkg::package {

using manifest::Refusal;
using nlohmann::json;

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

static manifest::Value readDefault(const std::string &text, const std::string &where) {
  if (text == "None")
    return std::monostate();
  json value = json::parse(text == "True" || text == "False" ? (text == "True" ? "true" : "false") : text, nullptr,
                           /*allow_exceptions=*/false);
  if (!value.is_discarded())
    return manifest::read<manifest::OpArgument>({{"name", ""}, {"type", ""}, {"default", value}}, {})
        .defaultRecord.value();
  if (plan::dtypeFromName(text) == plan::DType::None)
    throw Refusal{where + " has the default '" + text + "', which is no value"};
  return text;
}

/// Parses "Tensor(a!) x", "int[] dim=[]".
static manifest::OpArgument readArgument(const std::string &text, const std::string &where) {
  size_t equals = text.find('=');
  std::string head = trimmed(std::string_view(text).substr(0, equals));
  size_t space = head.rfind(' ');
  if (space == head.npos)
    throw Refusal{where + " has the argument '" + text + "', expected a type and a name"};
  manifest::OpArgument argument;
  argument.type = trimmed(std::string_view(head).substr(0, space));
  argument.name = head.substr(space + 1);
  if (equals != text.npos)
    argument.defaultRecord = readDefault(trimmed(std::string_view(text).substr(equals + 1)), where);
  return argument;
}

/// Parses "Tensor", "(Tensor, Tensor?)", "(Tensor first, Tensor second)", "()".
static std::vector<std::string> readResults(std::string text) {
  std::vector<std::string> results;
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
  manifest::Op op;
  op.name = name;
  op.schema = trimmed(std::string_view(text).substr(colons + 2));
  for (const std::string &part : splitParts(std::string_view(text).substr(open + 1, close - open - 1)))
    if (part != "*") // the following arguments are named, like all others
      op.declared.push_back(readArgument(part, where));
  op.results = readResults(trimmed(std::string_view(text).substr(arrow + 2)));
  return resolveOp(std::move(op));
}

Result<OpEntry> readSchema(const std::string &text) {
  try {
    return readOpText(text);
  } catch (const Refusal &refusal) {
    return Error{KPKG_ERROR_USE, refusal.why, {}, {}, {}};
  }
}

} // namespace kpkg::package
