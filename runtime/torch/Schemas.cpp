// Writes the schemas by which PyTorch knows an op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/torch/Schemas.h"

namespace kpkg::torch_abi {
namespace {

/// Whether `int` at this place is a type: "int", "int?" or "int[]" of an argument.
bool isIntegerType(std::string_view text, size_t at) {
  constexpr std::string_view name = "int";
  if (text.substr(at, name.size()) != name || at == 0 || at + name.size() == text.size())
    return false;
  char before = text[at - 1], after = text[at + name.size()];
  return (before == '(' || before == ' ') && (after == ' ' || after == '[' || after == '?');
}

/// Whether the op can write all its results into given tensors.
bool hasOutForm(const kpkg_op *op, const kpkg_op_info &info) {
  for (int32_t i = 0; i < info.argument_count; ++i) {
    kpkg_argument_info argument = {};
    argument.struct_size = sizeof argument;
    if (kpkg_op_argument(op, i, &argument) != KPKG_OK || argument.mutates)
      return false;
  }
  for (int32_t i = 0; i < info.result_count; ++i) {
    const char *type = nullptr;
    if (kpkg_op_result_type(op, i, &type) != KPKG_OK || std::string_view(type) != "Tensor")
      return false;
  }
  return info.result_count > 0;
}

std::string outSchema(std::string_view schema, int32_t resultCount) {
  size_t open = schema.find('('), close = schema.rfind(") ->");
  std::string arguments(schema.substr(open + 1, close - open - 1));
  std::string outs;
  for (int32_t i = 0; i < resultCount; ++i)
    outs +=
        std::string(i ? ", " : "") + "Tensor(" + char('a' + i) + "!) out" + (resultCount == 1 ? "" : std::to_string(i));
  const char *separator = arguments.find("*,") != std::string::npos ? ", " : arguments.empty() ? "*, " : ", *, ";
  return std::string(schema.substr(0, open)) + ".out(" + arguments + separator + outs + ") -> ()";
}

} // namespace

std::string symbolicSchema(std::string_view schema) {
  size_t results = schema.rfind("->");
  std::string symbolic;
  for (size_t i = 0; i < schema.size(); ++i) {
    if (i < results && isIntegerType(schema, i)) {
      symbolic += "SymInt";
      i += 2;
    } else {
      symbolic += schema[i];
    }
  }
  return symbolic;
}

std::optional<std::string> torchSchema(const kpkg_op *op, bool isOut) {
  kpkg_op_info info = {};
  info.struct_size = sizeof info;
  if (kpkg_op_describe(op, &info) != KPKG_OK || (isOut && !hasOutForm(op, info)))
    return std::nullopt;
  return symbolicSchema(isOut ? outSchema(info.schema, info.result_count) : info.schema);
}

} // namespace kpkg::torch_abi
