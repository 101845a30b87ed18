// Reads gradients of ops from the manifest. Files are not trusted: every index is checked before its use.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Backward.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>

namespace kpkg::package {

using nlohmann::json;

using Source = Backward::Source;

static constexpr const char *sourceNames[] = {"gradient", "result", "argument", "needs", "deterministic"};

std::string readBackward(const json &value, Backward &backward) {
  if (!value.is_object() || !value.contains("op") || !value["op"].is_string() || !value.contains("arguments") ||
      !value["arguments"].is_array())
    return "has a `backward` that is no object with `op` and `arguments`";
  backward.op = value["op"].get<std::string>();
  for (const json &item : value["arguments"]) {
    if (!item.is_array() || item.size() != 2 || !item[0].is_string() || !item[1].is_number_unsigned())
      return "has an argument of its backward that is no pair of a name and a number";
    auto name = std::find(std::begin(sourceNames), std::end(sourceNames), item[0].get<std::string>());
    if (name == std::end(sourceNames))
      return "has an argument of its backward of the unknown kind '" + item[0].get<std::string>() + "'";
    backward.arguments.push_back({Source(name - std::begin(sourceNames)), item[1].get<uint64_t>()});
  }
  return {};
}

std::string checkBackward(const OpEntry &op, const std::vector<OpEntry> &ops) {
  const Backward &backward = *op.backward;
  auto found = std::find_if(ops.begin(), ops.end(), [&](const OpEntry &other) { return other.name == backward.op; });
  if (found == ops.end())
    return "has the backward '" + backward.op + "', which is no op of the package";
  if (found->backward)
    return "has the backward '" + backward.op + "', which has one itself";
  auto isTensor = [](const OpArgument &argument) { return argument.kind == KPKG_TENSOR; };
  auto writes = [](const OpArgument &argument) { return argument.mutates; };
  if (std::any_of(op.arguments.begin(), op.arguments.end(), writes) ||
      std::any_of(found->arguments.begin(), found->arguments.end(), writes))
    return "has a backward, but it or that one writes to its arguments";
  if (backward.arguments.size() != found->arguments.size())
    return "gives its backward " + std::to_string(backward.arguments.size()) + " arguments, '" + backward.op +
           "' has " + std::to_string(found->arguments.size());
  if (found->results.size() != size_t(std::count_if(op.arguments.begin(), op.arguments.end(), isTensor)))
    return "has a backward with " + std::to_string(found->results.size()) + " results, not one for each tensor";
  uint64_t gradients = 0;
  for (size_t i = 0; i < backward.arguments.size(); ++i) {
    const Backward::Argument &given = backward.arguments[i];
    const OpArgument &taken = found->arguments[i];
    bool ofResult = given.source == Source::Gradient || given.source == Source::Result;
    auto refuse = [&](const std::string &why) { return "gives argument '" + taken.name + "' of its backward " + why; };
    if (given.source == Source::Deterministic) {
      if (taken.kind != KPKG_BOOLEAN || given.index != 0)
        return refuse("whether it has to be deterministic, but that is number 0 and a bool");
      continue;
    }
    if (given.index >= (ofResult ? op.results.size() : op.arguments.size()))
      return refuse("number " + std::to_string(given.index) + ", which it does not have");
    if (given.source == Source::Gradient && given.index != gradients++)
      return refuse("a gradient out of order");
    if (ofResult && (taken.kind != KPKG_TENSOR || op.results[given.index] != "Tensor"))
      return refuse("a tensor, but one of the two is another kind");
    if (given.source == Source::Needs && (taken.kind != KPKG_BOOLEAN || !isTensor(op.arguments[given.index])))
      return refuse("whether a gradient is needed, but one of the two is another kind");
    if (given.source == Source::Argument) {
      const OpArgument &argument = op.arguments[given.index];
      if (argument.kind != taken.kind || (argument.optional && !taken.optional))
        return refuse("'" + argument.name + "', which is another kind");
    }
  }
  return gradients ? std::string() : "has a backward that takes no gradient";
}

nlohmann::ordered_json backwardRecord(const Backward &backward) {
  auto arguments = nlohmann::ordered_json::array();
  for (const Backward::Argument &argument : backward.arguments)
    arguments.push_back({sourceNames[size_t(argument.source)], argument.index});
  nlohmann::ordered_json record;
  record["op"] = backward.op;
  record["arguments"] = std::move(arguments);
  return record;
}

} // namespace kpkg::package
