// What a kpkg_op is: the packages that have the op, its fallback, the policy between them, and its counters.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_CALLABLEOP_H
#define KPKG_PACKAGE_CALLABLEOP_H

#include "runtime/package/CallCache.h"
#include "runtime/package/PackagedOp.h"

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

/// Which of a registry's settings an op looks at.
struct FallbackPolicy {
  std::atomic<kpkg_policy> policy = KPKG_POLICY_DEFAULT;
};

class CallableOp {
public:
  /// `policy` outlives the op; null: never falls back.
  CallableOp(const PackagedOp &first, const FallbackPolicy *policy) : policy(policy) { addCandidate(first); }
  /// Without a package: `entry` has a name, and perhaps a schema.
  CallableOp(OpEntry entry, const FallbackPolicy *policy) : policy(policy) { declare(std::move(entry)); }

  /// What the first package says of the op, else what was declared.
  const OpEntry &entry() const {
    const Candidates *list = candidates.load(std::memory_order_acquire);
    return list ? list->front()->entry() : *declared.load(std::memory_order_acquire);
  }
  /// Null when no package has the op.
  const PackagedOp *first() const {
    const Candidates *list = candidates.load(std::memory_order_acquire);
    return list ? list->front() : nullptr;
  }
  bool isPackaged() const { return first() != nullptr; }
  std::vector<const PackagedOp *> packagedOps() const {
    const Candidates *list = candidates.load(std::memory_order_acquire);
    return list ? *list : Candidates();
  }

  /// Asked after those added before. Its schema is the same.
  void addCandidate(const PackagedOp &op);
  /// What the op is called, and perhaps takes, as long as no package has it.
  void declare(OpEntry entry);
  void setFallback(std::shared_ptr<const Fallback> replacement);
  bool hasFallback() const;
  /// Goes before the registry's; KPKG_POLICY_DEFAULT: the registry's.
  void setPolicy(kpkg_policy chosen) { ownPolicy.store(chosen, std::memory_order_relaxed); }
  /// Which instances calls may use; null: all.
  void restrict(std::shared_ptr<const Restriction> wanted);
  const Restriction *currentRestriction() const { return restriction.load(std::memory_order_acquire); }
  /// For callers that do the op's work themselves: counts and logs, or under the policy strict fails.
  Status countFallback(const std::string &reason) const;

  /// The references that packages have of the op, in the order of the packages.
  std::vector<const PackagedOp *> references() const;
  /// How many calls a packaged reference ran.
  uint64_t referenceCalls() const { return counters.references.load(std::memory_order_relaxed); }

  Status call(kpkg_call &call) const { return record(call, true); }
  /// Only by packages. KPKG_ERROR_NO_INSTANCE when none can run it, and then the call is not counted.
  Status callPackaged(kpkg_call &call) const { return record(call, false); }
  Status infer(kpkg_call &call) const;
  kpkg_op_stats stats() const;
  std::map<std::string, uint64_t> fallbackReasons() const;
  /// What happens to a call that no package can run: "runs the fallback", or why not.
  kpkg_policy effectivePolicy() const;

private:
  Status record(kpkg_call &call, bool fallsBack) const;
  Status run(kpkg_call &call, bool fallsBack) const;
  Status tryCall(kpkg_call &call, Frame &frame) const;
  Result<PinnedCall> planFor(const PackagedOp &op, Frame &frame) const;
  Status fallBack(const Error &reason, Frame &frame, kpkg_call &call) const;
  /// The registered fallback; KPKG_ERROR_NO_INSTANCE when it cannot run the call either.
  Status runFallback(const Fallback &target, const Error &reason, Frame &frame, kpkg_call &call) const;
  /// The last resort: a packaged reference. `reason` says why nothing else ran.
  Status runReference(const Error &reason, Frame &frame, kpkg_call &call) const;
  /// As `call`, with results in the memory layout that the op itself would give.
  Status executeReference(const PackagedOp &reference, const PlannedCall &planned, Frame &frame, kpkg_call &call) const;
  /// True the first time.
  bool countReason(const std::string &reason) const;
  /// `what` runs instead, "its fallback".
  void noteFallback(kpkg_policy chosen, const std::string &what, const std::string &reason) const;

  using Candidates = std::vector<const PackagedOp *>;
  /// Replaced as a whole; old lists are kept, since a running call may look at one.
  std::atomic<const Candidates *> candidates = nullptr; ///< null: no package has the op
  std::vector<std::unique_ptr<const Candidates>> lists;
  /// Null where a package came first; old ones are kept.
  std::atomic<const OpEntry *> declared = nullptr;
  std::vector<std::unique_ptr<const OpEntry>> declarations;

  const FallbackPolicy *policy;
  std::atomic<kpkg_policy> ownPolicy = KPKG_POLICY_DEFAULT;
  /// Kept for ever, since a running call may look at an old one.
  std::vector<std::shared_ptr<const Restriction>> restrictions;
  std::atomic<const Restriction *> restriction = nullptr;
  mutable std::mutex lock;
  std::shared_ptr<const Fallback> fallback;
  mutable std::map<std::string, uint64_t> reasons;

  struct Counters {
    std::atomic<uint64_t> calls = 0, resolutions = 0, launches = 0, copies = 0, copiedBytes = 0, fallbacks = 0,
                          errors = 0, references = 0;
  };
  mutable Counters counters;
};

/// That no package has the op, KPKG_ERROR_NO_INSTANCE.
Error noPackage(const OpEntry &op);

/// Text or JSON: every instance with the reason it was taken or not, the copies and the final choice.
Result<std::string> explainCall(const CallableOp &op, const kpkg_call &call, kpkg_text_format format);
/// JSON behind kpkg_op_kernel_info.
std::string describeUse(const CallableOp &op);

} // namespace kpkg::package

/// The opaque handle of the C ABI.
struct kpkg_op : kpkg::package::CallableOp {
  using CallableOp::CallableOp;
};
#endif
