// Times calls of an op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/bench/Timing.h"
#include <algorithm>
#include <chrono>
#include <cmath>

namespace kpkg::command::bench {

namespace {

constexpr double MinSampleSeconds = 200e-6;
constexpr double MaxSeconds = 5;
constexpr int MinSamples = 3;
constexpr int MaxCallsPerSample = 10000;

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Interpolates between the two nearest values of `sorted`, which is not empty.
double quantile(const std::vector<double> &sorted, double share) {
  double place = share * double(sorted.size() - 1);
  size_t below = size_t(place);
  size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - double(below)) * (sorted[above] - sorted[below]);
}

bool isDense(const Tensor &tensor) {
  return tensor.strides() == Tensor(nullptr, tensor.dtype(), tensor.shape()).strides();
}

/// Returns whether every result has new memory of its own, so that it can be passed as an output.
bool areFresh(const std::vector<Tensor> &results, const std::vector<Named> &named) {
  std::vector<const void *> owners;
  for (const Named &argument : named)
    owners.push_back(argument.second.asTensor().owner().get());
  for (const Tensor &result : results) {
    const void *owner = result.owner().get();
    if (result.dtype() == DType::None || !owner || result.data() != owner || !isDense(result) ||
        std::find(owners.begin(), owners.end(), owner) != owners.end())
      return false;
    owners.push_back(owner);
  }
  return true;
}

} // namespace

static Result<std::vector<double>> sampleOnHost(const std::function<Status()> &call, int repeats, int &callsPerSample) {
  double estimate = 0;
  for (int i = 0; i < 2; ++i) {
    auto start = std::chrono::steady_clock::now();
    if (Status status = call(); !status)
      return status.error();
    estimate = secondsSince(start);
  }
  callsPerSample =
      int(std::clamp(std::ceil(MinSampleSeconds / std::max(estimate, 1e-9)), 1.0, double(MaxCallsPerSample)));
  std::vector<double> seconds;
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats && (i < MinSamples || secondsSince(begin) < MaxSeconds); ++i) {
    auto start = std::chrono::steady_clock::now();
    for (int j = 0; j < callsPerSample; ++j)
      if (Status status = call(); !status)
        return status.error();
    seconds.push_back(secondsSince(start) / callsPerSample);
  }
  return seconds;
}

Result<Samples> sample(const Place &place, const std::function<Status()> &call, int repeats) {
  Samples samples;
  samples.callsPerSample = 1;
  auto seconds =
      place.isCuda() ? sampleOnGpu(place, call, repeats) : sampleOnHost(call, repeats, samples.callsPerSample);
  if (!seconds)
    return seconds.error();
  std::sort(seconds->begin(), seconds->end());
  samples.fastest = seconds->front();
  samples.p10 = quantile(*seconds, 0.1);
  samples.median = quantile(*seconds, 0.5);
  samples.p90 = quantile(*seconds, 0.9);
  samples.count = int(seconds->size());
  return samples;
}

Result<RepeatedCall> RepeatedCall::prepare(const Place &place, Op op, std::vector<Named> named) {
  RepeatedCall repeated(place.stream, std::move(op), std::move(named));
  auto results = repeated.op.call(place.stream, {}, repeated.named);
  if (!results)
    return results.error();
  if (areFresh(*results, repeated.named))
    repeated.outputs = std::move(*results);
  else
    repeated.isAllocating = true;
  return repeated;
}

Status RepeatedCall::operator()() const {
  auto results = outputs.empty() ? op.call(stream, {}, named) : op.callInto(stream, {}, outputs, named);
  return results ? Status() : Status(results.error());
}

} // namespace kpkg::command::bench
