// Reads the manifest as tables: kernels, their compiled instances (by ReadInstance.cpp), and ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Tables.h"
#include "runtime/package/Backward.h"
#include "runtime/package/ReadInstance.h"
#include "runtime/package/Schema.h"
#include "runtime/plan/Limits.h"

#include <algorithm>
#include <memory>
#include <unordered_set>

namespace kpkg::package {

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

ParamValue::Kind paramKind(const Entry &entry) {
  std::string kind = entry.text("kind");
  for (auto [name, value] : {std::pair{"int", ParamValue::Kind::Int},
                             {"bool", ParamValue::Kind::Bool},
                             {"float", ParamValue::Kind::Float},
                             {"dtype", ParamValue::Kind::DType},
                             {"string", ParamValue::Kind::String},
                             {"str", ParamValue::Kind::String}})
    if (kind == name)
      return value;
  entry.refuse("has the unknown kind '" + kind + "'");
}

Kernel readKernel(const json &value, size_t index) {
  Entry entry(value, place("kernels", index));
  Kernel kernel;
  kernel.name = entry.text("name");
  kernel.persistent = entry.flag("persistent", false);
  for (const json &item : entry.list("params")) {
    Entry param(item, entry.where + " params");
    kernel.params.push_back(
        {param.text("name"), paramKind(param), param.flag("function", false), param.flag("tuned", false)});
    if (kernel.params.back().isTuned && kernel.params.back().kind != ParamValue::Kind::Int &&
        kernel.params.back().kind != ParamValue::Kind::Bool)
      param.refuse("is tuned, but neither an int nor a bool");
    if (kernel.params.back().isFunction && kernel.params.back().kind != ParamValue::Kind::String)
      param.refuse("names functions, but its kind is not 'string'");
  }
  for (const json &item : entry.list("args")) {
    Entry arg(item, entry.where + " args");
    KernelArgument argument;
    argument.name = arg.text("name");
    std::string kind = arg.text("kind"), dtype = arg.textOr("dtype", "");
    argument.isView = kind == "view";
    if (!argument.isView && kind != "scalar")
      arg.refuse("has the unknown kind '" + kind + "'");
    if (argument.isView) {
      argument.rank = int32_t(arg.integer("rank", 0, KPKG_MAX_RANK));
      argument.mut = arg.flag("mut", false);
    }
    // A parameter's name takes precedence: a kernel may have a parameter `index`.
    argument.dtypeParam = kernel.paramIndex(dtype);
    if (argument.dtypeParam >= 0) {
      if (kernel.params[size_t(argument.dtypeParam)].kind != ParamValue::Kind::DType)
        arg.refuse("has parameter '" + dtype + "' as dtype, which is none");
    } else if (!dtype.empty()) {
      argument.dtype = dtype == "index" ? plan::DType::int64 : plan::dtypeFromName(dtype);
      if (argument.dtype == plan::DType::none)
        arg.refuse("has the unknown dtype '" + dtype + "'");
    }
    kernel.args.push_back(std::move(argument));
  }
  return kernel;
}

void readType(OpArgument &argument, const Entry &entry) {
  std::string base = argument.type;
  if (!base.empty() && base.back() == '?') {
    argument.optional = true;
    base.pop_back();
  }
  if (base.starts_with("Tensor(") && base.ends_with("!)"))
    argument.mutates = true, base = "Tensor";
  for (auto [name, kind] : {std::pair{"Tensor", KPKG_TENSOR},
                            {"int", KPKG_INT},
                            {"SymInt", KPKG_INT},
                            {"float", KPKG_FLOAT},
                            {"bool", KPKG_BOOLEAN},
                            {"int[]", KPKG_INT_LIST},
                            {"SymInt[]", KPKG_INT_LIST},
                            {"ScalarType", KPKG_DTYPE},
                            {"str", KPKG_STRING}})
    if (base == name) {
      argument.kind = kind;
      return;
    }
  entry.refuse("has the unknown type '" + argument.type + "'");
}

/// Reads a default. `null` is the default None, so its presence matters, not its value.
void readDefault(OpArgument &argument, const Entry &entry) {
  auto found = entry.value.find("default");
  if (found == entry.value.end())
    return;
  kpkg_value &value = argument.defaultValue;
  value.kind = argument.kind;
  if (found->is_null() && argument.optional)
    value.kind = KPKG_NONE;
  else if (argument.kind == KPKG_INT && found->is_number_integer())
    value.as.integer = found->get<int64_t>();
  else if (argument.kind == KPKG_FLOAT && found->is_number())
    value.as.real = found->get<double>();
  else if (argument.kind == KPKG_BOOLEAN && found->is_boolean())
    value.as.integer = found->get<bool>();
  else if (argument.kind == KPKG_DTYPE && found->is_string() &&
           plan::dtypeFromName(found->get_ref<const std::string &>()) != plan::DType::none)
    value.as.integer = int64_t(plan::dtypeFromName(found->get_ref<const std::string &>()));
  else if (argument.kind == KPKG_INT_LIST && found->is_array() &&
           std::all_of(found->begin(), found->end(), [](const json &item) { return item.is_number_integer(); })) {
    argument.list = found->get<std::vector<int64_t>>();
    value.count = int32_t(argument.list.size());
  } else if (argument.kind == KPKG_STRING && found->is_string())
    argument.text = found->get<std::string>();
  else
    entry.refuse("has a default that does not fit its type: " + found->dump());
}

} // namespace

/// How PyTorch treats an op. Words are not looked at: a later version may have more of them, which are then ignored.
static std::string readTorch(const json &value, const std::string &where) {
  Entry entry(value, where);
  json record = json::object();
  constexpr size_t maxWord = 256, maxFallback = plan::Limits::stringBytes;
  auto read = [](const Entry &from, json &into, const char *key, size_t most) {
    std::string text = from.textOr(key, "");
    if (text.size() > most)
      from.refuse("has more than " + std::to_string(most) + " bytes in `" + key + "`");
    if (!text.empty())
      into[key] = text;
  };
  if (const json *autocast = entry.find("autocast")) {
    Entry devices(*autocast, where + " autocast");
    for (const char *device : {"cpu", "cuda"})
      read(devices, record["autocast"], device, maxWord);
  }
  read(entry, record, "dimensions", maxWord);
  read(entry, record, "promotion", maxWord);
  read(entry, record, "fallback", maxFallback);
  return record.dump();
}

OpEntry readOp(const json &value, const std::string &where) {
  Entry entry(value, where);
  OpEntry op;
  op.name = entry.text("name");
  entry.rename("op '" + op.name + "'");
  op.schema = entry.text("schema");
  op.doc = entry.textOr("doc", "");
  op.reference = entry.textOr("reference", "");
  if (const json *backward = entry.find("backward"))
    if (std::string why = readBackward(*backward, op.backward.emplace()); !why.empty())
      entry.refuse(why);
  if (const json *torch = entry.find("torch"))
    op.torch = readTorch(*torch, entry.where + " torch");
  op.plan = entry.text("plan");
  op.shapePlan = entry.textOr("shape_plan", "");
  op.gpuPlan = entry.textOr("gpu_plan", "");
  op.gpuShapePlan = entry.textOr("gpu_shape_plan", "");
  for (const json &item : entry.list("arguments")) {
    Entry argumentEntry(item, entry.where + " arguments");
    OpArgument argument;
    argument.name = argumentEntry.text("name");
    argument.type = argumentEntry.text("type");
    readType(argument, argumentEntry);
    argument.mutates |= argumentEntry.flag("mut", false);
    readDefault(argument, argumentEntry);
    op.arguments.push_back(std::move(argument));
  }
  op.results = entry.texts("results");
  for (const std::string &type : op.results)
    if (type != "Tensor" && type != "Tensor?")
      entry.refuse("has the result type '" + type + "'; only tensors are possible");
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

Result<std::shared_ptr<Tables>> readTables(const json &manifest) {
  auto tables = std::make_shared<Tables>();
  try {
    Entry entry(manifest, "the manifest");
    for (const json &item : entry.list("kernels"))
      tables->kernels.push_back(readKernel(item, tables->kernels.size()));
    for (size_t i = 0; i < tables->kernels.size(); ++i)
      if (!tables->kernelByName.emplace(tables->kernels[i].name, i).second)
        throw Refusal{"kernel '" + tables->kernels[i].name + "' is listed twice"};
    for (const json &item : entry.list("instances")) {
      tables->instances.push_back(readInstance(item, tables->instances.size(), *tables));
      uint32_t kernel = tables->instances.back().kernel;
      tables->kernels[kernel].instances.push_back(uint32_t(tables->instances.size() - 1));
    }
    for (Kernel &kernel : tables->kernels)
      kernel.indexValues(tables->instances);
    for (const json &item : entry.list("ops")) {
      tables->ops.push_back(readOp(item, place("ops", tables->ops.size())));
      if (std::string why = checkOp(tables->ops.back()); !why.empty())
        throw Refusal{"op '" + tables->ops.back().name + "' " + why};
    }
  } catch (const Refusal &refusal) {
    return Error{KPKG_ERROR_FORMAT, refusal.why, {}, {}, {}};
  } catch (const json::exception &error) {
    return Error{KPKG_ERROR_FORMAT, std::string("the manifest is not as expected: ") + error.what(), {}, {}, {}};
  }
  for (const OpEntry &op : tables->ops)
    if (op.backward)
      if (std::string why = checkBackward(op, tables->ops); !why.empty())
        return Error{KPKG_ERROR_FORMAT, "op '" + op.name + "' " + why, {}, {}, {}};
  std::unordered_set<std::string_view> names;
  for (OpEntry &op : tables->ops) {
    if (!names.insert(op.name).second)
      return Error{KPKG_ERROR_FORMAT, "op '" + op.name + "' is listed twice", {}, {}, {}};
    referToTexts(op); // short strings are inside the object, which no longer moves
  }
  return tables;
}

} // namespace kpkg::package
