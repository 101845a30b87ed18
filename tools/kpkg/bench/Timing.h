// How long a call of an op takes.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/Place.h"
#include <functional>

namespace kpkg::command::bench {

/// Seconds of one call. A sample on the host is the mean of `callsPerSample` calls in a row, so that the clock's own
/// cost does not show; on a GPU it is the time between two events around one call, before which the caches are flushed.
struct Samples {
  double fastest = 0;
  double p10 = 0;
  double median = 0;
  double p90 = 0;
  int count = 0;
  int callsPerSample = 0;
};

/// `repeats` samples after warming up; fewer, but at least three, when they would take more than five seconds. `call`
/// queues its work on the place's stream.
Result<Samples> sample(const Place &place, const std::function<Status()> &call, int repeats);
/// The seconds of each sample, on a GPU.
Result<std::vector<double>> sampleOnGpu(const Place &place, const std::function<Status()> &call, int repeats);

/// A call that can be repeated. Where results are new, dense memory, every repetition writes into that of the first
/// one, so that what is timed is the op and not the allocator.
class RepeatedCall {
public:
  /// Calls the op once. `named` holds the memory of the arguments, which is at `place`.
  static Result<RepeatedCall> prepare(const Place &place, Op op, std::vector<Named> named);
  Status operator()() const;
  /// Every repetition makes new memory for results, because they share memory with an argument or each other, or are
  /// not dense.
  bool allocates() const { return isAllocating; }

private:
  RepeatedCall(Stream stream, Op op, std::vector<Named> named)
      : stream(std::move(stream)), op(std::move(op)), named(std::move(named)) {}

  Stream stream;
  Op op;
  std::vector<Named> named;
  std::vector<Tensor> outputs;
  bool isAllocating = false;
};

} // namespace kpkg::command::bench
