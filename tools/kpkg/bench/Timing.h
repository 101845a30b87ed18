// Times calls of an op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/Place.h"
#include <functional>

namespace kpkg::command::bench {

/// Seconds of one call. A sample on the host is the mean of `callsPerSample` consecutive calls, so that the clock's
/// overhead is negligible. On a GPU it is the time between two events around one call, before which the caches are
/// flushed.
struct Samples {
  double fastest = 0;
  double p10 = 0;
  double median = 0;
  double p90 = 0;
  int count = 0;
  int callsPerSample = 0;
};

/// Takes `repeats` samples after warming up; fewer, but at least three, if they would take more than five seconds.
/// `call` queues its work on the place's stream.
Result<Samples> sample(const Place &place, const std::function<Status()> &call, int repeats);
/// Returns the seconds of each sample, on a GPU.
Result<std::vector<double>> sampleOnGpu(const Place &place, const std::function<Status()> &call, int repeats);

/// A call that can be repeated. If results are new, dense memory, every repetition writes to the memory of the first.
/// The times thus exclude the allocator.
class RepeatedCall {
public:
  /// Calls the op once. `named` holds the memory of the arguments, which is at `place`.
  static Result<RepeatedCall> prepare(const Place &place, Op op, std::vector<Named> named);
  Status operator()() const;
  /// Returns whether every repetition allocates results, because they share memory with an argument or each other, or
  /// are not dense.
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
