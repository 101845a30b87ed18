// Writes records of the manifest as JSON.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/manifest/Write.h"

namespace kpkg::manifest {

using nlohmann::json;

json toJson(const Value &value) {
  return std::visit(
      [](const auto &held) -> json {
        if constexpr (std::is_same_v<decltype(held), const std::monostate &>)
          return nullptr;
        else
          return held;
      },
      value);
}

/// Returns a list of a word and its operands, as in ["dim", 0, 1].
template <class Enum> static json call(Enum kind, std::initializer_list<int64_t> operands) {
  json list = json::array({std::string(wordOf(kind).spelling)});
  for (size_t i = 0; i < wordOf(kind).operands; ++i)
    list.push_back(std::data(operands)[i]);
  return list;
}

static json toJson(const TripCountStep &step) {
  if (step.kind == StepKind::Constant)
    return step.number;
  if (wordOf(step.kind).operands == 0)
    return std::string(wordOf(step.kind).spelling);
  return call(step.kind, {step.number, step.dimension});
}

json toJson(const CostFactor &factor) {
  if (factor.kind != FactorKind::Count)
    return call(factor.kind, {factor.argument, factor.dimension, factor.size});
  json list = json::array({std::string(wordOf(factor.kind).spelling)});
  for (const TripCountStep &step : factor.steps)
    list.push_back(toJson(step));
  return list;
}

json toJson(const BackwardArgument &argument) { return call(argument.kind, {int64_t(argument.index)}); }

json writeManifest(Manifest manifest) {
  Requirements requirements(manifest.requirements.begin(), manifest.requirements.end());
  write(manifest, requirements);
  manifest.requirements.assign(requirements.begin(), requirements.end());
  return write(manifest);
}

} // namespace kpkg::manifest
