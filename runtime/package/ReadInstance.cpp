// Reads a compiled instance from the manifest: its assumptions, launch and cost.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/ReadInstance.h"

#include <algorithm>

namespace kpkg::package {

namespace {

constexpr size_t maxScratchBytes = size_t(1) << 30;
constexpr int32_t maxTensorMapRank = 5;

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
        factor.steps = readTripCount(factorItem, kernel, why);
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

/// Reads how a window traverses `extents` extents.
std::vector<WindowExtent> readWindow(const Entry &entry, size_t extents, const Instance &instance,
                                     const Kernel &kernel) {
  std::vector<WindowExtent> window(extents);
  auto each = [&](const char *key) -> const json & {
    const json &list = entry.list(key);
    if (list.size() != extents)
      entry.refuse(std::string("has a window whose `") + key +
                   "` are not as many as extents: " + std::to_string(extents));
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

/// Reads a tensor map, and refuses maps that the driver would only refuse at launch.
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
    entry.refuse("has a box of " + std::to_string(box.size()) + " dimensions for a view of " +
                 std::to_string(argument.rank));
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
    entry.refuse("has a box whose rows of " + std::to_string(row) +
                 " bytes are no multiple of 16 or more than is swizzled");
  // Properties that the facts guarantee need no check in each call.
  bool isProven = std::any_of(instance.facts.begin(), instance.facts.end(), [&](const Fact &fact) {
    return fact.arg == map.arg && fact.unit == map.unit && fact.align % 16 == 0 &&
           (argument.rank == 1 || fact.divisible * bytes % 16 == 0);
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
    launch.tensorMaps.push_back(
        readTensorMap(Entry(maps[i], entry.where + " " + place("tensor_maps", i)), instance, kernel));
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

} // namespace

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

} // namespace kpkg::package
