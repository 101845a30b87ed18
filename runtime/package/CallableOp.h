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

  const OpEntry &entry() const { return candidates.load(std::memory_order_acquire)->front()->entry(); }
  const PackagedOp &first() const { return *candidates.load(std::memory_order_acquire)->front(); }
  std::vector<const PackagedOp *> packagedOps() const { return *candidates.load(std::memory_order_acquire); }

  /// Asked after those added before. Its schema is the same.
  void addCandidate(const PackagedOp &op);
  void setFallback(std::shared_ptr<const Fallback> replacement);
  bool hasFallback() const;
  /// Goes before the registry's; KPKG_POLICY_DEFAULT: the registry's.
  void setPolicy(kpkg_policy chosen) { ownPolicy.store(chosen, std::memory_order_relaxed); }
  /// Which instances calls may use; null: all.
  void restrict(std::shared_ptr<const Restriction> wanted);
  const Restriction *currentRestriction() const { return restriction.load(std::memory_order_acquire); }
  /// For callers that do the op's work themselves: counts and logs, or under the policy strict fails.
  Status countFallback(const std::string &reason) const;

  Status call(kpkg_call &call) const;
  Status infer(kpkg_call &call) const;
  kpkg_op_stats stats() const;
  std::map<std::string, uint64_t> fallbackReasons() const;
  /// What happens to a call that no package can run: "runs the fallback", or why not.
  kpkg_policy effectivePolicy() const;

private:
  Status run(kpkg_call &call) const;
  Status tryCall(kpkg_call &call, Frame &frame) const;
  Result<PinnedCall> planFor(const PackagedOp &op, Frame &frame) const;
  Status fallBack(const Error &reason, Frame &frame, kpkg_call &call) const;
  /// True the first time.
  bool countReason(const std::string &reason) const;
  void noteFallback(kpkg_policy chosen, const std::string &reason) const;

  using Candidates = std::vector<const PackagedOp *>;
  /// Replaced as a whole; old lists are kept, since a running call may look at one.
  std::atomic<const Candidates *> candidates = nullptr;
  std::vector<std::unique_ptr<const Candidates>> lists;

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
                          errors = 0;
  };
  mutable Counters counters;
};

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
