// Implements the tuning table of a package: the fastest measured alternative for a device and a class of shapes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Tuning.h"
#include "runtime/format/CanonicalJson.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace kpkg::package {

using nlohmann::json;
using plan::LaunchArg;

static constexpr size_t maxRows = 1 << 16;
/// Precedes the extents of each argument, so that equal lists mean equal ranks.
static constexpr int64_t nextArgument = -1;

int64_t shapeClass(int64_t extent) {
  if (extent <= 8)
    return std::max<int64_t>(extent, 0);
  int64_t step = int64_t(1) << (std::bit_width(uint64_t(extent - 1)) - 3);
  return extent > INT64_MAX - step ? INT64_MAX : (extent + step - 1) / step * step;
}

std::vector<int64_t> extentsOf(const plan::LaunchStep &launch) {
  std::vector<int64_t> extents;
  for (const LaunchArg &arg : launch.args) {
    extents.push_back(nextArgument);
    if (arg.kind == LaunchArg::Kind::View && arg.view.buffer >= 0)
      for (int64_t extent : arg.view.shapeSpan())
        extents.push_back(extent);
  }
  extents.push_back(nextArgument);
  if (!launch.persistent)
    for (int64_t extent : launch.grid)
      extents.push_back(extent);
  return extents;
}

static std::vector<int64_t> classesOf(std::vector<int64_t> extents) {
  for (int64_t &extent : extents)
    if (extent != nextArgument)
      extent = shapeClass(extent);
  return extents;
}

json toJson(const ParamValue &value) {
  switch (value.kind) {
  case ParamValue::Kind::Int:
    return value.integer;
  case ParamValue::Kind::Bool:
    return value.integer != 0;
  case ParamValue::Kind::Float:
    return value.real;
  case ParamValue::Kind::DType:
    return std::string(plan::dtypeName(plan::DType(value.integer)));
  case ParamValue::Kind::String:
    return value.text;
  }
  return {};
}

/// Returns the lists between the marks.
static json shapesOf(const std::vector<int64_t> &extents) {
  json lists = json::array();
  for (int64_t extent : extents)
    if (extent == nextArgument)
      lists.push_back(json::array());
    else
      lists.back().push_back(extent);
  return lists;
}

json tuningKey(const Kernel &kernel, const Instance &alternative, const plan::LaunchStep &launch,
               const std::string &device) {
  json params = json::object();
  for (size_t i = 0; i < kernel.params.size(); ++i)
    if (!kernel.params[i].isTuned)
      params[kernel.params[i].name] = toJson(alternative.params[i]);
  std::vector<int64_t> extents = extentsOf(launch);
  return {{"device", device},
          {"kernel", kernel.name},
          {"measured", shapesOf(extents)},
          {"params", std::move(params)},
          {"shapes", shapesOf(classesOf(extents))},
          {"target", alternative.target},
          {"variant", alternative.variant}};
}

/// Returns the distance of extents of the same classes: a sum of logarithms of ratios. Rows without extents are the
/// farthest.
static double distance(const std::vector<int64_t> &measured, const std::vector<int64_t> &extents) {
  if (measured.empty())
    return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (size_t i = 0; i < extents.size(); ++i)
    if (measured[i] != extents[i])
      sum += std::abs(std::log2(double(std::max<int64_t>(measured[i], 1)) / double(std::max<int64_t>(extents[i], 1))));
  return sum;
}

std::optional<FoundRow> findRow(const Tables &tables, std::span<const Instance *const> alternatives,
                                const plan::LaunchStep &launch, const std::string &device) {
  const Kernel &kernel = tables.kernels[alternatives.front()->kernel];
  if (kernel.tuning.empty())
    return std::nullopt;
  std::vector<int64_t> extents = extentsOf(launch), classes = classesOf(extents);
  std::optional<FoundRow> found;
  double nearest = 0;
  for (uint32_t index : kernel.tuning) {
    const TuningRow &row = tables.tuning[index];
    if (row.classes != classes || row.device != device)
      continue;
    auto choice = std::find(alternatives.begin(), alternatives.end(), &tables.instances[row.instance]);
    if (double away = distance(row.measured, extents); choice != alternatives.end() && (!found || away < nearest)) {
      found = FoundRow{size_t(choice - alternatives.begin()), row.measured.empty() || row.measured == extents};
      nearest = away;
    }
  }
  return found;
}

namespace {
/// Thrown inside readTuning only.
struct Refusal {
  std::string why;
};

const json &field(const json &row, const char *key, json::value_t type, const char *what) {
  auto found = row.find(key);
  if (found == row.end() || found->type() != type)
    throw Refusal{std::string("its `") + key + "` is no " + what};
  return *found;
}

std::string textOf(const json &row, const char *key) {
  return field(row, key, json::value_t::string, "string").get<std::string>();
}

bool hasValues(const Kernel &kernel, const Instance &instance, const json &params, const json &choice) {
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const json &values = kernel.params[i].isTuned ? choice : params;
    auto found = values.find(kernel.params[i].name);
    if (found == values.end() || *found != toJson(instance.params[i]))
      return false;
  }
  return true;
}

uint32_t instanceOf(const json &row, const Tables &tables) {
  std::string kernelName = textOf(row, "kernel"), target = textOf(row, "target"), variant = textOf(row, "variant");
  auto found = tables.kernelByName.find(kernelName);
  if (found == tables.kernelByName.end())
    throw Refusal{"the package has no kernel '" + kernelName + "'"};
  const Kernel &kernel = tables.kernels[found->second];
  const json &params = field(row, "params", json::value_t::object, "object"),
             &choice = field(row, "choice", json::value_t::object, "object");
  size_t tuned = size_t(std::count_if(kernel.params.begin(), kernel.params.end(),
                                      [](const KernelParam &param) { return param.isTuned; }));
  if (choice.size() != tuned || params.size() != kernel.params.size() - tuned)
    throw Refusal{"its `params` and `choice` are not the parameters of '" + kernelName + "'"};
  for (uint32_t index : kernel.instances) {
    const Instance &instance = tables.instances[index];
    if (instance.target == target && instance.variant == variant && hasValues(kernel, instance, params, choice))
      return index;
  }
  throw Refusal{"the package has no such instance of '" + kernelName +
                "': " + json{params, choice, target, variant}.dump()};
}

std::vector<int64_t> readExtents(const json &row, const char *key, const Kernel &kernel) {
  const json &lists = field(row, key, json::value_t::array, "list");
  const std::string name = std::string("its `") + key + "` ";
  if (lists.size() != kernel.args.size() + 1)
    throw Refusal{name + "are not those of the kernel's arguments and its grid"};
  std::vector<int64_t> extents;
  for (const json &list : lists) {
    if (!list.is_array())
      throw Refusal{name + "hold something that is no list"};
    extents.push_back(nextArgument);
    for (const json &extent : list) {
      if (!extent.is_number_unsigned() || extent.get<uint64_t>() > uint64_t(INT64_MAX))
        throw Refusal{name + "hold " + extent.dump() + ", which is no extent"};
      extents.push_back(extent.get<int64_t>());
    }
  }
  return extents;
}
} // namespace

Status readTuning(std::string_view text, Tables &tables) {
  auto refuse = [](const std::string &why) {
    return Error{KPKG_ERROR_FORMAT, "section '" + std::string(tuningSection) + "': " + why, {}, {}, {}};
  };
  auto parsed = format::parseCanonical(text);
  if (!parsed)
    return refuse(parsed.error().message.substr(std::string_view("the manifest ").size()));
  const json &table = *parsed;
  auto version = table.is_object() ? table.find("format") : table.end();
  if (version == table.end() || *version != 1 || !table.contains("rows") || !table["rows"].is_array() ||
      table["rows"].size() > maxRows)
    return refuse("is no tuning table of format 1");
  std::set<std::string> keys;
  for (const json &row : table["rows"]) {
    size_t number = tables.tuning.size();
    try {
      if (!row.is_object())
        throw Refusal{"is no object"};
      TuningRow read;
      read.device = textOf(row, "device");
      read.instance = instanceOf(row, tables);
      Kernel &kernel = tables.kernels[tables.instances[read.instance].kernel];
      read.classes = readExtents(row, "shapes", kernel);
      if (read.classes != classesOf(read.classes))
        throw Refusal{"its `shapes` are no classes of extents"};
      if (row.contains("measured")) {
        read.measured = readExtents(row, "measured", kernel);
        if (read.classes != classesOf(read.measured))
          throw Refusal{"what it `measured` is not of its `shapes`"};
      }
      json key = row;
      key.erase("choice");
      if (auto [at, isNew] = keys.insert(key.dump()); !isNew || std::next(at) != keys.end())
        throw Refusal{isNew ? "it stands behind a greater one" : "there is another one for the same calls"};
      kernel.tuning.push_back(uint32_t(number));
      tables.tuning.push_back(std::move(read));
    } catch (const Refusal &refusal) {
      return refuse("row " + std::to_string(number) + ": " + refusal.why);
    }
  }
  return {};
}

} // namespace kpkg::package
