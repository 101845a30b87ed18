// The manifest as tables: kernels, their compiled instances, ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Tables.h"
#include "runtime/package/Backward.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_set>

namespace kpkg::package {

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

bool Kernel::hasAlternatives() const {
  return std::any_of(params.begin(), params.end(), [](const KernelParam &param) { return param.isTuned; });
}

namespace {

/// Thrown inside readTables only.
struct Refusal {
  std::string why;
};

constexpr size_t maxScratchBytes = size_t(1) << 30;
constexpr int32_t maxTensorMapRank = 5;

/// An object of the manifest with its place for messages.
class Entry {
public:
  Entry(const json &value, std::string where) : value(value), where(std::move(where)) {
    if (!value.is_object())
      refuse("is no object");
  }
  [[noreturn]] void refuse(const std::string &what) const { throw Refusal{where + " " + what}; }
  void rename(std::string place) { where = std::move(place); }

  const json *find(const char *key) const {
    auto found = value.find(key);
    return found == value.end() || found->is_null() ? nullptr : &*found;
  }
  const json &at(const char *key) const {
    const json *found = find(key);
    if (!found)
      refuse(std::string("has no `") + key + "`");
    return *found;
  }
  std::string text(const char *key) const {
    const json &field = at(key);
    if (!field.is_string())
      refuse(std::string("`") + key + "` is no string");
    return field.get<std::string>();
  }
  std::string textOr(const char *key, std::string otherwise) const { return find(key) ? text(key) : otherwise; }
  bool flag(const char *key, bool otherwise) const {
    const json *field = find(key);
    if (!field)
      return otherwise;
    if (!field->is_boolean())
      refuse(std::string("`") + key + "` is no bool");
    return field->get<bool>();
  }
  int64_t integer(const char *key, int64_t least, int64_t greatest) const {
    const json &field = at(key);
    if (!field.is_number_integer() || (field.is_number_unsigned() && field.get<uint64_t>() > uint64_t(greatest)) ||
        field.get<int64_t>() < least || field.get<int64_t>() > greatest)
      refuse(std::string("`") + key + "` is no integer from " + std::to_string(least) + " to " +
             std::to_string(greatest));
    return field.get<int64_t>();
  }
  /// Empty when absent.
  const json &list(const char *key) const {
    static const json none = json::array();
    const json *field = find(key);
    if (!field)
      return none;
    if (!field->is_array())
      refuse(std::string("`") + key + "` is no list");
    return *field;
  }
  std::vector<std::string> texts(const char *key) const {
    std::vector<std::string> result;
    for (const json &item : list(key)) {
      if (!item.is_string())
        refuse(std::string("`") + key + "` holds something that is no string");
      result.push_back(item.get<std::string>());
    }
    return result;
  }

  const json &value;
  std::string where;
};

std::string place(const char *table, size_t index) { return std::string(table) + "[" + std::to_string(index) + "]"; }

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
    kernel.params.push_back({param.text("name"), paramKind(param), param.flag("function", false), param.flag("tuned", false)});
    if (kernel.params.back().isTuned && kernel.params.back().kind != ParamValue::Kind::Int && kernel.params.back().kind != ParamValue::Kind::Bool)
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
    // A parameter's name wins: a kernel may call one `index`.
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

ParamValue readParam(const json &value, const KernelParam &declared, const Entry &entry) {
  ParamValue param;
  const ParamValue::Kind kind = declared.kind;
  param.kind = kind;
  param.isFunction = declared.isFunction;
  if (kind == ParamValue::Kind::Int && value.is_number_integer())
    param.integer = value.get<int64_t>();
  else if (kind == ParamValue::Kind::Bool && value.is_boolean())
    param.integer = value.get<bool>();
  else if (kind == ParamValue::Kind::Float && value.is_number())
    param.real = value.get<double>();
  else if (kind == ParamValue::Kind::DType && value.is_string() &&
           plan::dtypeFromName(value.get_ref<const std::string &>()) != plan::DType::none)
    param.integer = int64_t(plan::dtypeFromName(value.get_ref<const std::string &>()));
  else if (kind == ParamValue::Kind::String && value.is_string())
    param.text = value.get<std::string>();
  else
    entry.refuse("has a parameter of the wrong kind: " + value.dump());
  return param;
}

std::vector<CostTerm> readCost(const Entry &entry, const char *key, const Kernel &kernel) {
  std::vector<CostTerm> terms;
  for (const json &item : entry.list(key)) {
    Entry termEntry(item, entry.where + " " + key);
    CostTerm term;
    const json &count = termEntry.at("count");
    if (!count.is_number())
      termEntry.refuse("`count` is no number");
    term.count = count.get<double>();
    for (const json &factorItem : termEntry.list("factors")) {
      if (!factorItem.is_array() || factorItem.empty() || !factorItem[0].is_string())
        termEntry.refuse("has a factor that is no list with a name");
      std::string name = factorItem[0].get<std::string>();
      CostTerm::Factor factor;
      size_t numbers = 0;
      if (name == "count") {
        std::string why;
        factor.kind = CostTerm::Kind::Count;
        factor.steps = readCountSteps(factorItem, kernel, why);
        if (!why.empty())
          termEntry.refuse(why);
        term.factors.push_back(std::move(factor));
        continue;
      }
      if (name == "dim")
        factor.kind = CostTerm::Kind::Dim, numbers = 2;
      else if (name == "share")
        factor.kind = CostTerm::Kind::Share, numbers = 2;
      else if (name == "tiles")
        factor.kind = CostTerm::Kind::Tiles, numbers = 3;
      else if (name == "clip")
        factor.kind = CostTerm::Kind::Clip, numbers = 3;
      else if (name != "blocks")
        termEntry.refuse("has the unknown factor '" + name + "'");
      if (factorItem.size() != 1 + numbers ||
          !std::all_of(factorItem.begin() + 1, factorItem.end(), [](const json &i) { return i.is_number_unsigned(); }))
        termEntry.refuse("has a factor of the wrong form: " + factorItem.dump());
      if (numbers) {
        uint64_t arg = factorItem[1].get<uint64_t>(), dim = factorItem[2].get<uint64_t>();
        if (arg >= kernel.args.size() || !kernel.args[arg].isView || dim >= uint64_t(kernel.args[arg].rank))
          termEntry.refuse("has a factor of no view's dimension: " + factorItem.dump());
        factor.arg = int32_t(arg), factor.dim = int32_t(dim);
      }
      if (numbers == 3 && (factor.size = factorItem[3].get<int64_t>()) <= 0)
        termEntry.refuse("has a factor of size 0");
      term.factors.push_back(std::move(factor));
    }
    terms.push_back(std::move(term));
  }
  return terms;
}

Fact readFact(const Entry &entry, int32_t arg, int32_t rank) {
  Fact fact;
  fact.arg = arg;
  auto powerOfTwo = [&](const char *key, int64_t most) {
    int64_t value = entry.find(key) ? entry.integer(key, 1, most) : 1;
    if (value & (value - 1))
      entry.refuse(std::string("has a ") + key + " that is no power of two");
    return value;
  };
  if (entry.find("unit"))
    fact.unit = int32_t(entry.integer("unit", 0, int64_t(rank) - 1));
  fact.align = powerOfTwo("align", 1 << 12);
  fact.divisible = powerOfTwo("divisible", 1 << 12);
  if (fact.divisible > 1 && fact.unit < 0)
    entry.refuse("states a divisor without a unit dimension");
  if (entry.find("index") && entry.integer("index", 32, 64) == 32)
    fact.index = 32;
  if (entry.find("outer"))
    fact.outer = int32_t(entry.integer("outer", 0, int64_t(rank)));
  return fact;
}

/// What the walk of a window over `extents` extents is counted by.
std::vector<WindowExtent> readWindow(const Entry &entry, size_t extents, const Instance &instance, const Kernel &kernel) {
  std::vector<WindowExtent> window(extents);
  auto each = [&](const char *key) -> const json & {
    const json &list = entry.list(key);
    if (list.size() != extents)
      entry.refuse(std::string("has a window whose `") + key + "` are not as many as extents: " + std::to_string(extents));
    return list;
  };
  auto number = [&](const json &value, int64_t end, const char *what) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() >= uint64_t(end))
      entry.refuse(std::string("has a window that names no ") + what);
    return int32_t(value.get<uint64_t>());
  };
  auto readNumbers = [&](const char *key, int32_t WindowExtent::*member) {
    const json &list = each(key);
    for (size_t i = 0; i < extents; ++i) {
      int32_t arg = number(list[i], int64_t(kernel.args.size()), "argument");
      if (kernel.args[size_t(arg)].isView || instance.dtypes[size_t(arg)] != plan::DType::int64)
        entry.refuse(std::string("has a window with an argument in `") + key + "` that is no Int");
      window[i].*member = arg;
    }
  };
  readNumbers("counts", &WindowExtent::count);
  readNumbers("strides", &WindowExtent::stride);
  readNumbers("starts", &WindowExtent::start);
  readNumbers("steps", &WindowExtent::step);
  const json &taps = each("taps");
  for (size_t i = 0; i < extents; ++i) {
    if (!taps[i].is_array() || taps[i].size() != 2)
      entry.refuse("has a window whose `taps` are no pairs of an argument and a dimension");
    window[i].tapsArg = number(taps[i][0], int64_t(kernel.args.size()), "argument");
    const KernelArgument &argument = kernel.args[size_t(window[i].tapsArg)];
    if (!argument.isView)
      entry.refuse("has a window whose `taps` are not those of a view");
    window[i].tapsDim = number(taps[i][1], int64_t(argument.rank), "dimension");
  }
  return window;
}

/// What the driver makes tensor maps of, and refuses late.
TensorMap readTensorMap(const Entry &entry, const Instance &instance, const Kernel &kernel) {
  TensorMap map;
  map.arg = int32_t(entry.integer("arg", 0, int64_t(kernel.args.size()) - 1));
  const KernelArgument &argument = kernel.args[size_t(map.arg)];
  plan::DType dtype = instance.dtypes[size_t(map.arg)];
  if (!argument.isView || argument.rank < 1 || argument.rank > maxTensorMapRank)
    entry.refuse("names an argument that is no view of 1 to 5 dimensions");
  if (dtype == plan::DType::none || dtype == plan::DType::bool_)
    entry.refuse("names an argument of a dtype that has no tensor maps");
  int64_t bytes = plan::dtypeBytes(dtype);
  map.unit = int32_t(entry.integer("unit", 0, int64_t(argument.rank) - 1));
  map.swizzle = uint32_t(entry.integer("swizzle", 0, 128));
  if (map.swizzle != 0 && map.swizzle != 32 && map.swizzle != 64 && map.swizzle != 128)
    entry.refuse("has a swizzle that is not 0, 32, 64 or 128");
  map.copies = uint32_t(entry.find("copies") ? entry.integer("copies", 0, 1 << 20) : 0);
  map.sharedBy = uint32_t(entry.find("shared_by") ? entry.integer("shared_by", 1, 16) : 1);
  const json &box = entry.list("box");
  if (box.size() != size_t(argument.rank))
    entry.refuse("has a box of " + std::to_string(box.size()) + " dimensions for a view of " + std::to_string(argument.rank));
  for (const json &extent : box) {
    if (!extent.is_number_unsigned() || extent.get<uint64_t>() < 1 || extent.get<uint64_t>() > 256)
      entry.refuse("has a box whose extents are not all from 1 to 256");
    map.box.push_back(extent.get<uint32_t>());
  }
  if (const json *window = entry.find("window")) {
    if (argument.rank < 3 || map.unit != argument.rank - 1)
      entry.refuse("has a window over a view that is not of images with channels last");
    if (std::any_of(map.box.begin() + 1, map.box.end() - 1, [](uint32_t extent) { return extent != 1; }))
      entry.refuse("has a window and a box that is not of pixels and channels only");
    map.window = readWindow(Entry(*window, entry.where + " window"), size_t(argument.rank) - 2, instance, kernel);
  }
  int64_t row = map.box[size_t(map.unit)] * bytes;
  if (row % 16 != 0 || (map.swizzle != 0 && row > map.swizzle))
    entry.refuse("has a box whose rows of " + std::to_string(row) + " bytes are no multiple of 16 or more than is swizzled");
  // What choice makes sure of by the facts need not be looked at in each call.
  bool isProven = std::any_of(instance.facts.begin(), instance.facts.end(), [&](const Fact &fact) {
    return fact.arg == map.arg && fact.unit == map.unit && fact.align % 16 == 0 && (argument.rank == 1 || fact.divisible * bytes % 16 == 0);
  });
  if (!isProven)
    entry.refuse("needs facts that make the address and the strides of '" + argument.name + "' multiples of 16 bytes");
  return map;
}

LaunchShape readLaunch(const Entry &entry, const Instance &instance, const Kernel &kernel) {
  auto number = [&](const char *key, int64_t least, int64_t most, int64_t otherwise) {
    return uint32_t(entry.find(key) ? entry.integer(key, least, most) : otherwise);
  };
  LaunchShape launch;
  launch.threads = uint32_t(entry.integer("threads", 1, 1024));
  launch.blocks = number("blocks", 1, launch.threads, 1);
  launch.cluster = number("cluster", 1, 16, 1);
  launch.occupancy = number("occupancy", 1, 64, 0);
  launch.shared = number("shared", 0, 1 << 20, 0);
  launch.registers = number("registers", 0, 1024, 0);
  launch.spills = number("spills", 0, 1 << 20, 0);
  launch.overlaps = entry.flag("overlaps", false);
  launch.counters = number("counters", 1, 1 << 20, 0);
  const json &maps = entry.list("tensor_maps");
  if (maps.size() > maxTensorMaps)
    entry.refuse("has more than " + std::to_string(maxTensorMaps) + " tensor maps");
  for (size_t i = 0; i < maps.size(); ++i)
    launch.tensorMaps.push_back(readTensorMap(Entry(maps[i], entry.where + " " + place("tensor_maps", i)), instance, kernel));
  return launch;
}

TileWork readWork(const Entry &entry, const Kernel &kernel) {
  auto rate = [&](const char *key) {
    const json &field = entry.at(key);
    double value = field.is_number() ? field.get<double>() : 0;
    if (!(value > 0 && value <= 1e9))
      entry.refuse(std::string("`") + key + "` is no rate");
    return value;
  };
  TileWork work;
  work.flops = readCost(entry, "flops", kernel);
  work.flopsPerCycle = rate("flops_per_cycle");
  work.flopsPerCycleAlone = entry.find("flops_per_cycle_alone") ? rate("flops_per_cycle_alone") : work.flopsPerCycle;
  work.bytesPerCycle = rate("bytes_per_cycle");
  if (entry.find("resident"))
    work.resident = uint32_t(entry.integer("resident", 1, 64));
  return work;
}

Instance readInstance(const json &value, size_t index, const Tables &tables) {
  Entry entry(value, place("instances", index));
  Instance instance;
  instance.kernel = uint32_t(entry.integer("kernel", 0, int64_t(tables.kernels.size()) - 1));
  const Kernel &kernel = tables.kernels[instance.kernel];
  entry.rename(entry.where + " (" + kernel.name + ")");
  const json &params = entry.list("params");
  if (params.size() != kernel.params.size())
    entry.refuse("has " + std::to_string(params.size()) + " params, its kernel " +
                 std::to_string(kernel.params.size()));
  for (size_t i = 0; i < params.size(); ++i)
    instance.params.push_back(readParam(params[i], kernel.params[i], entry));
  std::vector<std::string> dtypes = entry.texts("dtypes");
  if (!dtypes.empty() && dtypes.size() != kernel.args.size())
    entry.refuse("has " + std::to_string(dtypes.size()) + " dtypes, its kernel " + std::to_string(kernel.args.size()) +
                 " arguments");
  for (size_t i = 0; i < kernel.args.size(); ++i) {
    const KernelArgument &arg = kernel.args[i];
    plan::DType dtype = arg.dtypeParam >= 0 ? plan::DType(instance.params[size_t(arg.dtypeParam)].integer) : arg.dtype;
    if (!dtypes.empty() && dtype == plan::DType::none) {
      dtype = plan::dtypeFromName(dtypes[i]);
      if (dtype == plan::DType::none)
        entry.refuse("has the unknown dtype '" + dtypes[i] + "'");
    }
    if (!arg.isView && dtype == plan::DType::none)
      entry.refuse("does not say the dtype of scalar '" + arg.name + "'");
    instance.dtypes.push_back(dtype);
  }
  instance.variant = entry.textOr("variant", "");
  for (const json &item : entry.list("facts")) {
    Entry fact(item, entry.where + " facts");
    int64_t arg = fact.integer("arg", 0, int64_t(kernel.args.size()) - 1);
    if (!kernel.args[size_t(arg)].isView)
      fact.refuse("names an argument that is no view");
    instance.facts.push_back(readFact(fact, int32_t(arg), kernel.args[size_t(arg)].rank));
  }
  instance.target = entry.text("target");
  instance.section = entry.text("section");
  instance.symbol = entry.text("symbol");
  instance.scratch = entry.find("scratch") ? size_t(entry.integer("scratch", 0, int64_t(maxScratchBytes))) : 0;
  instance.asserts = entry.texts("asserts");
  instance.prints = entry.texts("prints");
  instance.flags = entry.texts("flags");
  if (const json *launch = entry.find("launch"))
    instance.launch = readLaunch(Entry(*launch, entry.where + " launch"), instance, kernel);
  instance.flops = readCost(entry, "flops", kernel);
  instance.bytes = readCost(entry, "bytes", kernel);
  instance.tiles = readCost(entry, "tiles", kernel);
  if (const json *work = entry.find("work"))
    instance.work = readWork(Entry(*work, entry.where + " work"), kernel);
  if (instance.work && kernel.persistent && instance.tiles.empty())
    entry.refuse("has `work`, but does not say how many tiles there are");
  instance.label = kernel.name + "[";
  for (size_t i = 0; i < instance.params.size(); ++i)
    instance.label += (i ? ", " : "") + kernel.params[i].name + "=" + instance.params[i].str();
  instance.label += "]" + (instance.variant.empty() ? "" : " " + instance.variant) + " " + instance.target;
  return instance;
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

/// `null` is the default None, so its presence is looked at, not its value.
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

OpEntry readOp(const json &value, size_t index) {
  Entry entry(value, place("ops", index));
  OpEntry op;
  op.name = entry.text("name");
  entry.rename("op '" + op.name + "'");
  op.schema = entry.text("schema");
  op.doc = entry.textOr("doc", "");
  op.reference = entry.textOr("reference", "");
  if (const json *backward = entry.find("backward"))
    if (std::string why = readBackward(*backward, op.backward.emplace()); !why.empty())
      entry.refuse(why);
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
  // Only now do the elements stay where they are.
  for (OpArgument &argument : op.arguments)
    if (argument.defaultValue.kind == KPKG_INT_LIST)
      argument.defaultValue.as.list = argument.list.data();
  return op;
}

} // namespace

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
    for (const json &item : entry.list("ops"))
      tables->ops.push_back(readOp(item, tables->ops.size()));
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
    // Strings are referred to from here on: short ones live inside the object, which no longer moves.
    for (OpArgument &argument : op.arguments)
      if (argument.defaultValue.kind == KPKG_STRING)
        argument.defaultValue.as.string = argument.text.c_str();
  }
  return tables;
}

} // namespace kpkg::package
