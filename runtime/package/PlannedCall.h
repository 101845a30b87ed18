// Declares a call that is resolved once for its signature: instances are chosen, and arguments that do not change
// between calls are packed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_PLANNEDCALL_H
#define KPKG_PACKAGE_PLANNEDCALL_H

#include "runtime/device/Device.h"
#include "runtime/package/Choice.h"
#include "runtime/package/Frame.h"
#include "runtime/plan/Evaluate.h"

#include <kpkg/result.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

namespace kpkg::package {

class Library;

/// How often an instance ran for an op.
struct InstanceUse {
  const Instance *instance;
  std::atomic<uint64_t> launches = 0;
};

struct PlannedLaunch {
  const Instance *instance = nullptr;
  InstanceUse *use = nullptr;
  Cost cost;
  std::unique_ptr<const device::Launch> launch;
  /// Position of its arguments in PlannedCall::words.
  size_t firstWord = 0;
};

/// A word that is the address of a buffer's element.
struct PointerPatch {
  size_t word;
  int32_t buffer;
  int64_t byteOffset;
};

/// A word that is a scalar argument of the call.
struct ScalarPatch {
  size_t word;
  size_t argument;
  plan::DType dtype;
};

/// Either a copy or a launch.
struct PlannedStep {
  /// Index in PlannedCall::copySteps. Negative: a launch.
  ptrdiff_t copy = -1;
  PlannedLaunch launch;
};

struct PlannedResult {
  /// Everything except `data`; `index` numbers the allocation.
  kpkg_result result = {};
  /// The request to the allocator.
  int32_t buffer = -1;
  int32_t rank = 0;
  std::array<int64_t, KPKG_MAX_RANK> shape = {};
  std::array<int64_t, KPKG_MAX_RANK> strides = {};
  int64_t bytes = 0;
};

/// Immutable. Refers to its library's tables and code, so it is only used while the library is alive.
struct PlannedCall {
  /// Identifies it in caches.
  uint64_t op = 0;
  uint64_t hash = 0;
  device::Device *device = nullptr;
  std::vector<uint64_t> key;

  /// Set if no instance can run it; then the rest is empty.
  std::optional<Error> refusal;
  /// The parts of the resolution that each call needs. Its launches are in `steps`, in a larger form.
  std::vector<plan::Buffer> buffers;
  std::vector<plan::CopyStep> copySteps;
  int64_t temporaryBytes = 0;
  std::vector<PlannedStep> steps;
  std::vector<int64_t> words;
  std::vector<PointerPatch> pointers;
  std::vector<ScalarPatch> scalars;
  std::vector<PlannedResult> results;
  uint64_t launches = 0;
  uint64_t copies = 0;
  uint64_t copiedBytes = 0;
};

/// Returns the counter of an instance.
using UseCounter = InstanceUse *(*)(void *context, const Instance &instance);

/// Fills `buffers` to `copiedBytes` from the frame's resolution, for its device. KPKG_ERROR_NO_INSTANCE becomes
/// `refusal`.
Status finishPlan(PlannedCall &planned, const Library &library, const OpEntry &op, const Frame &frame, UseCounter count,
                  void *context);

/// Returns the number of compute units that the plan sees in this call. Queries the device only if the plan does. Fails
/// if the device does not exist.
Result<int64_t> processorsFor(const plan::Program &program, const Frame &frame);
/// Returns the known alignment of each buffer's address.
std::vector<int64_t> alignmentsOf(const plan::Resolution &resolution, const Frame &frame);

/// Returns the output views as results, without memory. Also used for shape inference.
std::vector<PlannedResult> describeResults(const plan::Resolution &resolution, kpkg_device device);

/// Work of a call besides launches.
struct CallCosts {
  uint64_t copies = 0;
  uint64_t copiedBytes = 0;
};

/// Allocates results, then runs all steps: on the host, or queued on the call's GPU stream.
Status execute(const PlannedCall &planned, const OpEntry &op, Frame &frame, kpkg_call &call, CallCosts &costs);

/// Returns `value` as the low bytes of a kernel argument word of this dtype.
int64_t packScalar(double value, plan::DType dtype);
int64_t packScalar(int64_t value, plan::DType dtype);

} // namespace kpkg::package
#endif
