// Chooses among instances with equal results by measured times, else by the cost model's estimates.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Alternatives.h"
#include "runtime/package/Tuning.h"

#include <cstdio>

namespace kpkg::package {

/// Limit of estimates, relative to the best, up to which a row for similar extents may decide. The number of waves
/// differs between similar sizes.
static constexpr double neighbourBand = 1.1;

AlternativeChoice chooseAlternative(const Tables &tables, std::vector<const Instance *> alternatives,
                                    const plan::LaunchStep &launch, const device::Device &device) {
  AlternativeChoice choice;
  choice.instances = std::move(alternatives);
  choice.device = device.tuningName();
  const int64_t processors = device.processors();
  for (const Instance *instance : choice.instances)
    if (auto estimate = estimateTime(*instance, launch, processors))
      choice.estimates.push_back(*estimate);
  if (choice.estimates.size() != choice.instances.size())
    choice.estimates.clear();
  if (!choice.estimates.empty())
    choice.by = AlternativeChoice::By::Model;
  for (size_t i = 1; i < choice.estimates.size(); ++i)
    if (choice.estimates[i].cycles() < choice.estimates[choice.chosen].cycles())
      choice.chosen = i;
  if (auto row = findRow(tables, choice.instances, launch, choice.device)) {
    bool isPlausible = choice.estimates.empty() || choice.estimates[row->choice].cycles() <=
                                                       neighbourBand * choice.estimates[choice.chosen].cycles();
    if (row->isForThisCall || isPlausible) {
      choice.by = row->isForThisCall ? AlternativeChoice::By::Table : AlternativeChoice::By::Neighbour;
      choice.chosen = row->choice;
    }
  }
  return choice;
}

AlternativeChoice firstAlternative(std::vector<const Instance *> alternatives, const device::Device &device) {
  AlternativeChoice choice;
  choice.instances = std::move(alternatives);
  choice.device = device.tuningName();
  choice.by = AlternativeChoice::By::BatchInvariance;
  return choice;
}

static std::string estimateText(const TimeEstimate &estimate) {
  char text[96];
  std::snprintf(text, sizeof text, "%.0f %s of %.0f cycles", estimate.rounds, estimate.rounds == 1 ? "round" : "rounds",
                estimate.cyclesPerRound);
  return text;
}

std::string verdictOn(const AlternativeChoice &choice, size_t index) {
  const std::string &best = choice.instances[choice.chosen]->label;
  const std::string count = std::to_string(choice.instances.size()) + " alternatives";
  bool isChosen = index == choice.chosen;
  switch (choice.by) {
  case AlternativeChoice::By::Table:
    return isChosen ? "chosen by the tuning table for " + choice.device + ", among " + count
                    : "would do; the tuning table has " + best;
  case AlternativeChoice::By::Neighbour:
    return isChosen ? "chosen by the tuning table for " + choice.device + " and sizes near these, among " + count
                    : "would do; the tuning table has " + best + " for sizes near these";
  case AlternativeChoice::By::Model:
    return isChosen ? "chosen by the cost model: " + estimateText(choice.estimates[index]) + ", the least of " + count
                    : "would do; the cost model says " + estimateText(choice.estimates[index]);
  case AlternativeChoice::By::BatchInvariance:
    return isChosen ? "chosen as the first of " + count + ", since sizes must not decide"
                    : "would do; sizes must not decide, and " + best + " comes first";
  case AlternativeChoice::By::Order:
    return isChosen ? "chosen as the first of " + count + ", of which nothing is known"
                    : "would do; " + best + " comes first";
  }
  return {};
}

} // namespace kpkg::package
