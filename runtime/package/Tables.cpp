// Implements the tables for calls: values of parameters, and signatures of ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Tables.h"
#include "runtime/manifest/Read.h"
#include "runtime/manifest/Write.h"

#include <algorithm>

namespace kpkg::package {

using manifest::Refusal;
using nlohmann::json;

std::string ParamValue::str() const {
  switch (kind) {
  case Kind::Int:
    return std::to_string(integer);
  case Kind::Bool:
    return integer ? "True" : "False";
  case Kind::Float:
    return json(real).dump();
  case Kind::DType:
    return std::string(plan::dtypeName(plan::DType(integer)));
  case Kind::String:
    return isFunction ? text : "\"" + text + "\"";
  }
  return {};
}

int Kernel::paramIndex(std::string_view param) const {
  for (size_t i = 0; i < params.size(); ++i)
    if (params[i].name == param)
      return int(i);
  return -1;
}

void Kernel::indexValues(const std::vector<Instance> &all) {
  values.assign(params.size(), {});
  valueNumbers.assign(instances.size() * params.size(), 0);
  for (size_t p = 0; p < params.size(); ++p) {
    std::vector<ParamValue> &known = values[p];
    for (size_t i = 0; i < instances.size(); ++i) {
      const ParamValue &value = all[instances[i]].params[p];
      auto found = std::find(known.begin(), known.end(), value);
      valueNumbers[i * params.size() + p] = uint8_t(found - known.begin());
      if (found != known.end())
        continue;
      if (known.size() == mostIndexedValues) {
        known.clear();
        break;
      }
      known.push_back(value);
    }
  }
}

bool Kernel::hasAlternatives() const {
  return std::any_of(params.begin(), params.end(), [](const KernelParam &param) { return param.isTuned; });
}

namespace {

void resolveType(OpArgument &argument) {
  std::string base = argument.type;
  if (!base.empty() && base.back() == '?') {
    argument.optional = true;
    base.pop_back();
  }
  argument.mutates = argument.mut;
  if (base.starts_with("Tensor(") && base.ends_with("!)[]"))
    argument.mutates = true, base = "Tensor[]";
  if (base.starts_with("Tensor(") && base.ends_with("!)"))
    argument.mutates = true, base = "Tensor";
  for (auto [name, kind] : {std::pair{"Tensor", KPKG_TENSOR},
                            {"Tensor[]", KPKG_TENSOR_LIST},
                            {"int", KPKG_INT},
                            {"SymInt", KPKG_INT},
                            {"float", KPKG_FLOAT},
                            {"bool", KPKG_BOOLEAN},
                            {"int[]", KPKG_INT_LIST},
                            {"SymInt[]", KPKG_INT_LIST},
                            {"ScalarType", KPKG_DTYPE},
                            {"str", KPKG_STRING}})
    if (base == name && !(argument.optional && kind == KPKG_TENSOR_LIST)) {
      argument.kind = kind;
      return;
    }
  throw Refusal{"has the unknown type '" + argument.type + "'"};
}

void resolveDefault(OpArgument &argument) {
  if (!argument.defaultRecord)
    return;
  const manifest::Value &given = *argument.defaultRecord;
  const auto *integer = std::get_if<int64_t>(&given);
  const auto *real = std::get_if<double>(&given);
  const auto *flag = std::get_if<bool>(&given);
  const auto *text = std::get_if<std::string>(&given);
  const auto *list = std::get_if<std::vector<int64_t>>(&given);
  kpkg_value &value = argument.defaultValue;
  value.kind = argument.kind;
  if (std::holds_alternative<std::monostate>(given) && argument.optional)
    value.kind = KPKG_NONE;
  else if (argument.kind == KPKG_INT && integer)
    value.as.integer = *integer;
  else if (argument.kind == KPKG_FLOAT && (integer || real))
    value.as.real = real ? *real : double(*integer);
  else if (argument.kind == KPKG_BOOLEAN && flag)
    value.as.integer = *flag;
  else if (argument.kind == KPKG_DTYPE && text && plan::dtypeFromName(*text) != plan::DType::None)
    value.as.integer = int64_t(plan::dtypeFromName(*text));
  else if (argument.kind == KPKG_INT_LIST && list) {
    argument.list = *list;
    value.count = int32_t(argument.list.size());
  } else if (argument.kind == KPKG_STRING && text)
    argument.text = *text;
  else
    throw Refusal{"has a default that does not fit its type: " + manifest::toJson(given).dump()};
}

} // namespace

OpEntry resolveOp(manifest::Op record) {
  OpEntry op{std::move(record), {}, false, {}};
  for (manifest::OpArgument &declared : op.declared) {
    OpArgument &argument = op.arguments.emplace_back();
    static_cast<manifest::OpArgument &>(argument) = std::move(declared);
    try {
      resolveType(argument);
      resolveDefault(argument);
    } catch (const Refusal &refusal) {
      throw Refusal{"op '" + op.name + "' argument '" + argument.name + "' " + refusal.why};
    }
  }
  op.declared.clear();
  for (const std::string &type : op.results)
    if (type != "Tensor" && type != "Tensor?")
      throw Refusal{"op '" + op.name + "' has the result type '" + type + "'; only tensors are possible"};
  // Words are not looked at: a later version may have more of them, which are then ignored.
  if (op.torch)
    op.torchText = manifest::write(*op.torch).dump();
  return op;
}

void referToTexts(OpEntry &op) {
  for (OpArgument &argument : op.arguments)
    if (argument.defaultValue.kind == KPKG_INT_LIST)
      argument.defaultValue.as.list = argument.list.data();
    else if (argument.defaultValue.kind == KPKG_STRING)
      argument.defaultValue.as.string = argument.text.c_str();
}

/// Returns whether both defaults are absent, or have the same kind and value.
static bool haveOneDefault(const OpArgument &a, const OpArgument &b) {
  const kpkg_value &x = a.defaultValue, &y = b.defaultValue;
  if (x.kind != y.kind)
    return false;
  switch (x.kind) {
  case KPKG_INT:
  case KPKG_BOOLEAN:
  case KPKG_DTYPE:
    return x.as.integer == y.as.integer;
  case KPKG_FLOAT:
    return x.as.real == y.as.real;
  case KPKG_INT_LIST:
    return a.list == b.list;
  case KPKG_STRING:
    return a.text == b.text;
  default:
    return true;
  }
}

bool haveOneSignature(const OpEntry &a, const OpEntry &b) {
  return a.results == b.results && std::equal(a.arguments.begin(), a.arguments.end(), b.arguments.begin(),
                                              b.arguments.end(), [](const OpArgument &x, const OpArgument &y) {
                                                return x.name == y.name && x.kind == y.kind &&
                                                       x.optional == y.optional && x.mutates == y.mutates;
                                              });
}

bool haveOneSchema(const OpEntry &a, const OpEntry &b) {
  return haveOneSignature(a, b) &&
         std::equal(a.arguments.begin(), a.arguments.end(), b.arguments.begin(), b.arguments.end(), haveOneDefault);
}

} // namespace kpkg::package
