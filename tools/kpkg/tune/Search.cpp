// Finds the fastest of several ways to run a call, within a time limit.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/tune/Search.h"
#include "tools/kpkg/bench/Timing.h"
#include <algorithm>
#include <chrono>
#include <random>

namespace kpkg::command::tune {

namespace {
constexpr double TieBand = 1.02;
/// Factor by which a contender may be slower than the best before it is dropped.
constexpr double OutOfRace = 1.25;
constexpr int SamplesOfVisit = 5;
constexpr int MaxRounds = 50;

/// Shuffles equally on every platform, unlike std::shuffle.
std::vector<size_t> shuffled(size_t count, std::mt19937_64 &random) {
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i)
    order[i] = i;
  for (size_t i = count; i > 1; --i)
    std::swap(order[i - 1], order[size_t(random() % i)]);
  return order;
}
} // namespace

double Contender::seconds() const {
  std::vector<double> sorted = visits;
  auto middle = sorted.begin() + std::ptrdiff_t((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

size_t pick(const std::vector<Contender> &contenders) {
  double best = std::numeric_limits<double>::infinity();
  for (const Contender &contender : contenders)
    if (contender.failure.empty())
      best = std::min(best, contender.seconds());
  const Contender *picked = nullptr;
  for (const Contender &contender : contenders)
    if (contender.failure.empty() && contender.seconds() <= best * TieBand &&
        (!picked || contender.estimate < picked->estimate))
      picked = &contender;
  return size_t(picked - contenders.data());
}

Result<size_t> search(const Place &place, std::vector<Contender> &contenders, const std::vector<Named> &named,
                      const SearchLimits &limits) {
  std::mt19937_64 random(limits.seed);
  std::vector<std::optional<bench::RepeatedCall>> calls;
  for (Contender &contender : contenders) {
    auto call = bench::RepeatedCall::prepare(place, contender.op, named);
    if (call)
      calls.emplace_back(std::move(*call));
    else
      calls.emplace_back(), contender.failure = call.error().message;
  }
  auto begin = std::chrono::steady_clock::now();
  auto isLate = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > limits.budget;
  };
  std::vector<bool> isOut(contenders.size());
  for (int round = 0; round < MaxRounds; ++round) {
    for (size_t i : shuffled(contenders.size(), random)) {
      Contender &contender = contenders[i];
      if (isOut[i] || !contender.failure.empty() || (round > 0 && isLate()))
        continue;
      auto samples = bench::sample(place, *calls[i], SamplesOfVisit);
      if (samples)
        contender.visits.push_back(samples->median);
      else
        contender.failure = samples.error().message;
    }
    size_t running = 0;
    double best = std::numeric_limits<double>::infinity();
    for (const Contender &contender : contenders)
      if (contender.failure.empty())
        best = std::min(best, contender.seconds());
    for (size_t i = 0; i < contenders.size(); ++i) {
      isOut[i] = !contenders[i].failure.empty() || contenders[i].seconds() > best * OutOfRace;
      running += !isOut[i];
    }
    if (running == 0)
      return Error{KPKG_ERROR_KERNEL, "no alternative runs: " + contenders.front().failure, {}, {}, {}};
    if (running == 1 || isLate())
      break;
  }
  return pick(contenders);
}

} // namespace kpkg::command::tune
