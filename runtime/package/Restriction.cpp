// Parses which instances a caller allows by kpkg_registry_restrict.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Restriction.h"
#include "runtime/package/Requirements.h"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

namespace kpkg::package {

static std::string join(const std::vector<std::string> &values) {
  std::string text;
  for (const std::string &value : values)
    text += (text.empty() ? "" : " or ") + value;
  return text;
}

static std::string refuseValues(const Restriction::Values &params, const Kernel &kernel, const Instance &instance) {
  for (const auto &[name, allowed] : params) {
    int index = kernel.paramIndex(name);
    if (index < 0)
      continue;
    std::string value = instance.params[size_t(index)].str();
    if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
      return "has " + name + "=" + value + ", the configuration asks for " + join(allowed);
  }
  return {};
}

std::string Restriction::refuse(const Kernel &kernel, const Instance &instance) const {
  std::string why = refuseValues(params, kernel, instance);
  if (auto own = kernels.find(kernel.name); why.empty() && own != kernels.end())
    why = refuseValues(own->second, kernel, instance);
  if (!why.empty())
    return why;
  if (auto only = instances.find(kernel.name); only != instances.end() && only->second != instance.label)
    return "is not " + only->second + ", which the configuration asks for";
  if (!target.empty() && instance.target != target)
    return "is for " + instance.target + ", the configuration asks for " + target;
  if (!variant.empty() && instance.variant != variant)
    return "is the variant '" + instance.variant + "', the configuration asks for '" + variant + "'";
  if (!threads.empty() && instance.launch &&
      std::find(threads.begin(), threads.end(), instance.launch->threads) == threads.end()) {
    std::vector<std::string> texts;
    for (uint32_t count : threads)
      texts.push_back(std::to_string(count));
    return "has " + std::to_string(instance.launch->threads) + " threads, the configuration asks for " + join(texts);
  }
  return {};
}

static Error refused(const std::string &what) {
  return {KPKG_ERROR_USE, "a configuration of instances " + what, {}, {}, {}};
}

/// Reads values by parameter. Returns an error text, or an empty string.
static std::string readValues(const nlohmann::json &object, Restriction::Values &values) {
  for (const auto &[name, allowed] : object.items()) {
    if (!allowed.is_array() || allowed.empty())
      return "has no list of values for parameter '" + name + "'";
    for (const auto &each : allowed) {
      if (!each.is_string())
        return "has a value that is no string for parameter '" + name + "'";
      values[name].push_back(each.get<std::string>());
    }
  }
  return {};
}

Result<std::shared_ptr<const Restriction>> readRestriction(const std::string &text) {
  static std::atomic<uint64_t> next = 1;
  auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return refused("must be a JSON object");
  auto restriction = std::make_shared<Restriction>();
  for (const auto &[key, value] : json.items()) {
    if ((key == "target" || key == "variant") && value.is_string()) {
      (key == "target" ? restriction->target : restriction->variant) = value.get<std::string>();
    } else if (key == "precision" && value.is_string()) {
      restriction->precision = value.get<std::string>();
      const std::string &named = restriction->precision;
      if (named != "highest" && named != "high" && named != "medium")
        return refused("has the precision '" + named + "', expected highest, high or medium");
    } else if (key == "require" && value.is_array()) {
      for (const auto &word : value) {
        if (!word.is_string() || !isRequirement(word.get<std::string>()))
          return refused("requires " + word.dump() + ", expected deterministic, batch_invariant or exact");
        restriction->require.push_back(word.get<std::string>());
      }
    } else if (key == "threads" && value.is_array()) {
      for (const auto &count : value) {
        if (!count.is_number_unsigned())
          return refused("has 'threads' that are no numbers");
        restriction->threads.push_back(count.get<uint32_t>());
      }
    } else if (key == "params" && value.is_object()) {
      if (std::string wrong = readValues(value, restriction->params); !wrong.empty())
        return refused(wrong);
    } else if (key == "kernels" && value.is_object()) {
      for (const auto &[kernel, params] : value.items()) {
        if (!params.is_object())
          return refused("has no object of parameters for kernel '" + kernel + "'");
        if (std::string wrong = readValues(params, restriction->kernels[kernel]); !wrong.empty())
          return refused(wrong);
      }
    } else if (key == "instances" && value.is_object()) {
      for (const auto &[kernel, label] : value.items()) {
        if (!label.is_string())
          return refused("has no label of an instance for kernel '" + kernel + "'");
        restriction->instances.emplace(kernel, label.get<std::string>());
      }
    } else {
      return refused("has an entry '" + key + "' that is not understood");
    }
  }
  restriction->id = next.fetch_add(1, std::memory_order_relaxed);
  return std::shared_ptr<const Restriction>(std::move(restriction));
}

} // namespace kpkg::package
