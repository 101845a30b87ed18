// Declares kpkg_op: the packages that have the op, its fallback, the policy between them, and its counters.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_CALLABLEOP_H
#define KPKG_PACKAGE_CALLABLEOP_H

#include "runtime/package/CallCache.h"
#include "runtime/package/ForkSafeMutex.h"
#include "runtime/package/Library.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kpkg::package {

/// Runs instead of the packages' kernels.
struct Fallback {
  kpkg_fallback_fn function = nullptr;
  void *context = nullptr;
  void (*destroy)(void *context) = nullptr;

  Fallback() = default;
  Fallback(const Fallback &) = delete;
  Fallback &operator=(const Fallback &) = delete;
  ~Fallback() {
    if (destroy)
      destroy(context);
  }
};

/// The registry's settings that apply to an op.
struct FallbackPolicy {
  std::atomic<kpkg_policy> policy = KPKG_POLICY_DEFAULT;
};

class CallableOp {
public:
  /// `policy` outlives the op. Null: never falls back.
  CallableOp(const PackagedOp &first, const FallbackPolicy *policy) : policy(policy) { addCandidate(first); }
  /// Creates an op without a package. `entry` has a name, and perhaps a schema.
  CallableOp(OpEntry entry, const FallbackPolicy *policy) : policy(policy) { declare(std::move(entry)); }

  /// Returns the entry of the first package, else the declared one.
  const OpEntry &entry() const {
    const Candidates *list = candidates.load(std::memory_order_acquire);
    return list ? list->front()->entry() : *declared.load(std::memory_order_acquire);
  }
  /// Null if no package has the op.
  const PackagedOp *first() const {
    const Candidates *list = candidates.load(std::memory_order_acquire);
    return list ? list->front() : nullptr;
  }
  bool isPackaged() const { return first() != nullptr; }
  std::vector<const PackagedOp *> packagedOps() const {
    const Candidates *list = candidates.load(std::memory_order_acquire);
    return list ? *list : Candidates();
  }

  /// Adds a package, which is tried after those added before. Its schema must be the same.
  void addCandidate(const PackagedOp &op);
  /// Declares the op's name, and perhaps its schema, for as long as no package has it.
  void declare(OpEntry entry);
  void setFallback(std::shared_ptr<const Fallback> replacement);
  bool hasFallback() const;
  /// Overrides the registry's policy. KPKG_POLICY_DEFAULT: the registry's.
  void setPolicy(kpkg_policy chosen) { ownPolicy.store(chosen, std::memory_order_relaxed); }
  /// Restricts the instances that calls may use; null: all.
  void restrict(std::shared_ptr<const Restriction> wanted);
  const Restriction *currentRestriction() const { return restriction.load(std::memory_order_acquire); }
  /// Counts and logs a fallback of callers that do the op's work themselves. Fails under the strict policy.
  Status countFallback(const std::string &reason) const;

  /// Returns the references that packages have for the op, in the order of the packages.
  std::vector<const PackagedOp *> references() const;
  /// Returns how many calls a packaged reference ran.
  uint64_t referenceCalls() const { return counters.references.load(std::memory_order_relaxed); }

  Status call(kpkg_call &call) const { return observe(call, true); }
  /// Calls only packages. If none can run the call, returns KPKG_ERROR_NO_INSTANCE and does not count it.
  Status callPackaged(kpkg_call &call) const { return observe(call, false); }
  Status infer(kpkg_call &call) const;
  kpkg_op_stats stats() const;
  std::map<std::string, uint64_t> fallbackReasons() const;
  /// Returns the policy for a call that no package can run.
  kpkg_policy effectivePolicy() const;

private:
  Status observe(kpkg_call &call, bool fallsBack) const;
  Status profile(kpkg_call &call, bool fallsBack) const;
  Status run(kpkg_call &call, bool fallsBack) const;
  Status tryCall(kpkg_call &call, Frame &frame) const;
  Result<PinnedCall> planFor(const PackagedOp &op, Frame &frame) const;
  Status fallBack(const Error &reason, Frame &frame, kpkg_call &call) const;
  /// Runs the registered fallback. Returns KPKG_ERROR_NO_INSTANCE if it cannot run the call either.
  Status runFallback(const Fallback &target, const Error &reason, Frame &frame, kpkg_call &call) const;
  /// Runs a packaged reference as the last resort. `reason` says why nothing else ran.
  Status runReference(const Error &reason, Frame &frame, kpkg_call &call) const;
  /// Runs the reference, with results in the memory layout of the op itself.
  Status executeReference(const PackagedOp &reference, const PlannedCall &planned, Frame &frame, kpkg_call &call) const;
  /// Counts a reason. Returns true the first time.
  bool countReason(const std::string &reason) const;
  /// Logs that `what` runs instead, such as "its fallback".
  void noteFallback(kpkg_policy chosen, const std::string &what, const std::string &reason) const;

  using Candidates = std::vector<const PackagedOp *>;
  /// Replaced as a whole. Old lists are kept, because a running call may use one.
  std::atomic<const Candidates *> candidates = nullptr; ///< null: no package has the op
  std::vector<std::unique_ptr<const Candidates>> lists;
  /// Null if a package came first. Old entries are kept.
  std::atomic<const OpEntry *> declared = nullptr;
  std::vector<std::unique_ptr<const OpEntry>> declarations;

  const FallbackPolicy *policy;
  std::atomic<kpkg_policy> ownPolicy = KPKG_POLICY_DEFAULT;
  /// Kept forever, because a running call may use an old one.
  std::vector<std::shared_ptr<const Restriction>> restrictions;
  std::atomic<const Restriction *> restriction = nullptr;
  mutable ForkSafeMutex lock;
  std::shared_ptr<const Fallback> fallback;
  mutable std::map<std::string, uint64_t> reasons;

  struct Counters {
    std::atomic<uint64_t> calls = 0, resolutions = 0, launches = 0, copies = 0, copiedBytes = 0, fallbacks = 0,
                          errors = 0, references = 0;
  };
  mutable Counters counters;
};

/// Returns the error KPKG_ERROR_NO_INSTANCE for an op that no package has.
Error noPackage(const OpEntry &op);

/// Returns text or JSON: every instance with the reason why it was chosen or not, the copies, and the final choice.
Result<std::string> explainCall(const CallableOp &op, const kpkg_call &call, kpkg_text_format format);
/// Returns the JSON of kpkg_op_resolve.
Result<std::string> resolveCall(const CallableOp &op, const kpkg_call &call, std::string_view target);
/// Returns the JSON of kpkg_op_kernel_info.
std::string describeUse(const CallableOp &op);

} // namespace kpkg::package

/// The opaque handle of the C ABI.
struct kpkg_op : kpkg::package::CallableOp {
  using CallableOp::CallableOp;
};
#endif
