// Checks gradients of ops. Files are not trusted: every index is checked before its use.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Backward.h"

#include <algorithm>

namespace kpkg::package {

using Source = manifest::BackwardSource;

std::string checkBackward(const OpEntry &op, const std::vector<OpEntry> &ops) {
  const manifest::Backward &backward = *op.backward;
  auto found = std::find_if(ops.begin(), ops.end(), [&](const OpEntry &other) { return other.name == backward.op; });
  if (found == ops.end())
    return "has the backward '" + backward.op + "', which is no op of the package";
  if (found->backward)
    return "has the backward '" + backward.op + "', which has one itself";
  auto isTensor = [](const OpArgument &argument) { return argument.kind == KPKG_TENSOR; };
  auto isList = [](const OpArgument &argument) { return argument.kind == KPKG_TENSOR_LIST; };
  if (std::any_of(op.arguments.begin(), op.arguments.end(), isList) ||
      std::any_of(found->arguments.begin(), found->arguments.end(), isList))
    return "has a backward, but it or that one takes a list of tensors";
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
    const manifest::BackwardArgument &given = backward.arguments[i];
    const OpArgument &taken = found->arguments[i];
    bool ofResult = given.kind == Source::Gradient || given.kind == Source::Result;
    auto refuse = [&](const std::string &why) { return "gives argument '" + taken.name + "' of its backward " + why; };
    if (given.kind == Source::Deterministic) {
      if (taken.kind != KPKG_BOOLEAN || given.index != 0)
        return refuse("whether it has to be deterministic, but that is number 0 and a bool");
      continue;
    }
    if (given.index >= (ofResult ? op.results.size() : op.arguments.size()))
      return refuse("number " + std::to_string(given.index) + ", which it does not have");
    if (given.kind == Source::Gradient && given.index != gradients++)
      return refuse("a gradient out of order");
    if (ofResult && (taken.kind != KPKG_TENSOR || op.results[given.index] != "Tensor"))
      return refuse("a tensor, but one of the two is another kind");
    if (given.kind == Source::Needs && (taken.kind != KPKG_BOOLEAN || !isTensor(op.arguments[given.index])))
      return refuse("whether a gradient is needed, but one of the two is another kind");
    if (given.kind == Source::Argument) {
      const OpArgument &argument = op.arguments[given.index];
      if (argument.kind != taken.kind || (argument.optional && !taken.optional))
        return refuse("'" + argument.name + "', which is another kind");
    }
  }
  return gradients ? std::string() : "has a backward that takes no gradient";
}

} // namespace kpkg::package
