// Calls an op on inputs from text, and compares its results with its reference's.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/CheckedCall.h"
#include "tools/kpkg/Agreement.h"
#include "tools/kpkg/InputText.h"
#include <algorithm>
#include <fmt/format.h>

namespace kpkg::command {

Result<std::vector<Tensor>> outcome(const Op &op, const std::vector<std::string> &inputs, const Place &place) {
  auto given = parseInputs(inputs, 0);
  return given ? outcome(op, *given, place) : given.error();
}

Result<std::vector<Tensor>> outcome(const Op &op, const std::vector<Named> &given, const Place &place) {
  auto named = moveTo(place, given);
  if (!named)
    return named.error();
  auto results = op.call(place.stream, {}, *named);
  if (!results)
    return results;
  for (const ArgumentInfo &argument : op.arguments())
    for (const Named &one : *named)
      if (argument.mutates && one.first == argument.name) {
        const std::vector<Tensor> &list = one.second.asTensors();
        if (one.second.isTensorList())
          results->insert(results->end(), list.begin(), list.end());
        else
          results->push_back(one.second.asTensor());
      }
  return toHost(place, *results);
}

std::string firstDisagreement(const std::vector<Tensor> &actual, const std::vector<Tensor> &expected, double flops,
                              std::optional<double> tolerance) {
  for (size_t i = 0; i < std::min(actual.size(), expected.size()); ++i)
    if (std::string wrong = disagreement(actual[i], expected[i], flops, tolerance); !wrong.empty())
      return fmt::format("result {} {}", i, wrong);
  return actual.size() == expected.size() ? "" : "the reference has another number of results";
}

} // namespace kpkg::command
