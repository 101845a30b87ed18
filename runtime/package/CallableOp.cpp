// Implements kpkg_op: the packages that have the op, its fallback, the policy between them, and its counters.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/CallableOp.h"
#include "runtime/package/Environment.h"
#include "runtime/package/LastError.h"
#include "runtime/package/Library.h"
#include "runtime/package/Log.h"
#include "runtime/package/Profile.h"
#include "runtime/package/Record.h"

namespace kpkg::package {

/// Limit of kept reasons per op. Reasons may contain sizes, so their number is not bounded.
static constexpr size_t keptReasons = 64;

static void add(std::atomic<uint64_t> &counter, uint64_t count) {
  if (count)
    counter.fetch_add(count, std::memory_order_relaxed);
}

void CallableOp::addCandidate(const PackagedOp &op) {
  std::lock_guard guard(lock);
  auto list = std::make_unique<Candidates>();
  if (const Candidates *before = candidates.load(std::memory_order_relaxed))
    *list = *before;
  list->push_back(&op);
  candidates.store(list.get(), std::memory_order_release);
  lists.push_back(std::move(list));
}

void CallableOp::declare(OpEntry entry) {
  std::lock_guard guard(lock);
  auto kept = std::make_unique<OpEntry>(std::move(entry));
  referToTexts(*kept);
  declared.store(kept.get(), std::memory_order_release);
  declarations.push_back(std::move(kept));
}

void CallableOp::setFallback(std::shared_ptr<const Fallback> replacement) {
  // The old fallback is destroyed outside the lock, because it calls foreign code.
  std::lock_guard guard(lock);
  fallback.swap(replacement);
}

bool CallableOp::hasFallback() const {
  std::lock_guard guard(lock);
  return fallback != nullptr;
}

kpkg_policy CallableOp::effectivePolicy() const {
  if (!policy)
    return KPKG_POLICY_STRICT;
  if (kpkg_policy chosen = ownPolicy.load(std::memory_order_relaxed); chosen != KPKG_POLICY_DEFAULT)
    return chosen;
  if (kpkg_policy chosen = environment().policyOf(entry().name); chosen != KPKG_POLICY_DEFAULT)
    return chosen;
  kpkg_policy chosen = policy->policy.load(std::memory_order_relaxed);
  return chosen == KPKG_POLICY_DEFAULT ? environment().policy : chosen;
}

void CallableOp::restrict(std::shared_ptr<const Restriction> wanted) {
  std::lock_guard guard(lock);
  restriction.store(wanted.get(), std::memory_order_release);
  restrictions.push_back(std::move(wanted));
}

void CallableOp::noteFallback(kpkg_policy chosen, const std::string &what, const std::string &reason) const {
  bool first = countReason(reason);
  add(counters.fallbacks, 1);
  if (chosen == KPKG_POLICY_WARN && first)
    log(KPKG_LOG_WARN, "op " + entry().name + " runs " + what + ": " + reason);
}

Error noPackage(const OpEntry &op) {
  return {KPKG_ERROR_NO_INSTANCE, "no package of the registry has " + op.name, op.name, {}, {}};
}

Status CallableOp::countFallback(const std::string &reason) const {
  kpkg_policy chosen = effectivePolicy();
  if (chosen == KPKG_POLICY_STRICT)
    return Error{KPKG_ERROR_NO_INSTANCE, reason + " (the policy is strict)", entry().name, {}, {}};
  noteFallback(chosen, "its fallback", reason);
  return {};
}

Result<PinnedCall> CallableOp::planFor(const PackagedOp &op, Frame &frame) const {
  auto program = op.program(frame.plans());
  if (!program)
    return program.error();
  frame.key.clear();
  plan::appendKey(**program, frame.arguments, frame.key);
  frame.appendDeviceKey();
  if (frame.restriction)
    frame.key.push_back(frame.restriction->id);
  uint64_t hash = hashKey(op.id(), frame.key);
  if (PinnedCall known = findPlannedCall(op.id(), hash, frame.key))
    return known;
  bool made = false;
  auto planned = op.plan(frame, hash, made);
  add(counters.resolutions, made);
  if (!planned)
    return planned.error();
  return keepPlannedCall(std::move(*planned));
}

Status CallableOp::tryCall(kpkg_call &call, Frame &frame) const {
  const OpEntry &op = entry();
  if (!frame.foreign.empty())
    return Error{KPKG_ERROR_NO_INSTANCE, op.name + ": " + frame.foreign, op.name, {}, {}};
  if (environment().isDisabled(op.name))
    return Error{KPKG_ERROR_NO_INSTANCE, op.name + " is disabled by KPKG_DISABLE", op.name, {}, {}};
  const Candidates *list = candidates.load(std::memory_order_acquire);
  if (!list)
    return noPackage(op);
  Status refused;
  for (const PackagedOp *candidate : *list) {
    auto planned = planFor(*candidate, frame);
    if (!planned)
      return planned.error();
    if ((*planned)->refusal) {
      Error reason = *(*planned)->refusal;
      if (!refused)
        reason.message = refused.error().message + "; '" + candidate->library().name() + "': " + reason.message;
      refused = reason;
      continue;
    }
    auto program = candidate->program(frame.plans());
    if ((*program)->hasMutArguments())
      if (auto error = plan::checkAliases(**program, frame.arguments, frame.addresses))
        return toError(*error, op);
    CallCosts costs;
    Status status = execute(**planned, candidate->entry(), frame, call, costs);
    add(counters.launches, (*planned)->launches);
    add(counters.copies, costs.copies);
    add(counters.copiedBytes, costs.copiedBytes);
    return status;
  }
  return refused;
}

bool CallableOp::countReason(const std::string &reason) const {
  std::lock_guard guard(lock);
  auto found = reasons.find(reason);
  if (found == reasons.end())
    found = reasons.emplace(reasons.size() < keptReasons ? reason : "other reasons", 0).first;
  return ++found->second == 1;
}

Status CallableOp::runFallback(const Fallback &target, const Error &reason, Frame &frame, kpkg_call &call) const {
  kpkg_call complete = call;
  complete.arguments = frame.values.data();
  complete.argument_count = int32_t(frame.declared);
  kpkg_status status = target.function(target.context, static_cast<const kpkg_op *>(this), &complete);
  if (status != KPKG_ERROR_NO_INSTANCE)
    noteFallback(effectivePolicy(), "its fallback", reason.message);
  if (status == KPKG_OK)
    return {};
  Error error = lastError();
  if (error.status != status)
    error = {status, entry().name + ": its fallback failed", entry().name, {}, {}};
  return error;
}

Status CallableOp::fallBack(const Error &reason, Frame &frame, kpkg_call &call) const {
  if (!policy)
    return reason;
  std::shared_ptr<const Fallback> target;
  {
    std::lock_guard guard(lock);
    target = fallback;
  }
  Error error = reason;
  // Under any policy: what another implementation rounds may depend on the other rows.
  if (frame.invariance != BatchInvariance::NotWanted) {
    error.message += " (no fallback runs, because none is batch_invariant)";
    return error;
  }
  if (effectivePolicy() == KPKG_POLICY_STRICT) {
    if (target)
      error.message += " (there is a fallback, but the policy is strict)";
    else if (!references().empty())
      error.message += " (the package has a reference, but the policy is strict)";
    else
      error.message += " (and there is no fallback)";
    return error;
  }
  if (target) {
    Status status = runFallback(*target, reason, frame, call);
    if (status || status.error().status != KPKG_ERROR_NO_INSTANCE)
      return status;
    error.message += "; its fallback: " + status.error().message;
  }
  if (references().empty()) {
    if (!target)
      error.message += " (and there is no fallback)";
    return error;
  }
  return runReference(error, frame, call);
}

static Status checkResults(const OpEntry &op, const kpkg_call &call) {
  if (call.result_capacity < 0 || size_t(call.result_capacity) < op.results.size() ||
      (op.results.size() && !call.results))
    return Error{KPKG_ERROR_USE,
                 op.name + ": room for " + std::to_string(call.result_capacity) + " results, it has " +
                     std::to_string(op.results.size()),
                 op.name,
                 {},
                 {}};
  return {};
}

static bool isRefusal(const Status &status) { return !status && status.error().status == KPKG_ERROR_NO_INSTANCE; }

Status CallableOp::observe(kpkg_call &call, bool fallsBack) const {
  if (!isObserved()) [[likely]]
    return run(call, fallsBack);
  std::optional<RecordedCall> recorded;
  if (isObservedBy(Recording))
    recorded = RecordedCall::begin(*this, call);
  Status status = isProfiling() ? profile(call, fallsBack) : run(call, fallsBack);
  if (recorded)
    recorded->finish(call, status.ok());
  return status;
}

Status CallableOp::profile(kpkg_call &call, bool fallsBack) const {
  ProfiledCall recorded(entry().name);
  uint64_t before = counters.fallbacks.load(std::memory_order_relaxed);
  Status status = run(call, fallsBack);
  if (fallsBack || !isRefusal(status))
    recorded.finish(status.ok(), counters.fallbacks.load(std::memory_order_relaxed) != before);
  return status;
}

Status CallableOp::run(kpkg_call &call, bool fallsBack) const {
  if (fallsBack) // otherwise only once a packaged reference is known to run the call
    add(counters.calls, 1);
  FrameLease frame;
  const OpEntry &op = entry();
  Status status = checkResults(op, call);
  if (status && op.schema.empty()) { // known by name alone: the fallback gets the caller's arguments
    if (!fallsBack)
      return noPackage(op);
    frame->bindAsGiven(call);
    status = fallBack(noPackage(op), *frame, call);
  } else if (status && (status = frame->bind(op, call, currentRestriction()))) {
    status = tryCall(call, *frame);
    if (isRefusal(status)) {
      if (!fallsBack)
        return status;
      status = fallBack(status.error(), *frame, call);
    }
  }
  if (!fallsBack)
    add(counters.calls, 1);
  if (!status)
    add(counters.errors, 1);
  return status;
}

Status CallableOp::infer(kpkg_call &call) const {
  const OpEntry &op = entry();
  const PackagedOp *packaged = first();
  if (!packaged)
    return Error{KPKG_ERROR_UNSUPPORTED,
                 "no package of the registry has " + op.name + ", so nothing tells the shapes of its results",
                 op.name,
                 {},
                 {}};
  if (Status status = checkResults(op, call); !status)
    return status;
  FrameLease frame;
  if (Status status = frame->bind(op, call, currentRestriction()); !status)
    return status;
  // Accepts any device, but not a dtype that plans cannot name.
  kpkg_device device = defaultDevice;
  for (const kpkg_value &value : frame->values)
    if (value.kind == KPKG_TENSOR) {
      if (value.as.tensor->dtype <= KPKG_NO_DTYPE || value.as.tensor->dtype >= KPKG_DTYPE_COUNT)
        return Error{KPKG_ERROR_NO_INSTANCE, op.name + ": " + frame->foreign, op.name, {}, {}};
      device = value.as.tensor->device;
    }
  auto program = packaged->shapeProgram(frame->plans());
  if (!program)
    return program.error();
  plan::Resolution resolution;
  if (auto error = plan::evaluate(**program, frame->arguments, resolution))
    return toError(*error, op);
  auto results = describeResults(resolution, frame->device);
  for (size_t i = 0; i < results.size(); ++i) {
    call.results[i] = results[i].result;
    call.results[i].device = device;
  }
  return {};
}

kpkg_op_stats CallableOp::stats() const {
  auto read = [](const std::atomic<uint64_t> &counter) { return counter.load(std::memory_order_relaxed); };
  return {sizeof(kpkg_op_stats),    read(counters.calls),  read(counters.resolutions),
          read(counters.launches),  read(counters.copies), read(counters.copiedBytes),
          read(counters.fallbacks), read(counters.errors), read(counters.references)};
}

std::map<std::string, uint64_t> CallableOp::fallbackReasons() const {
  std::lock_guard guard(lock);
  return reasons;
}

} // namespace kpkg::package
