// Reads the KPKG_* environment variables once.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Environment.h"
#include "runtime/package/Devices.h"
#include "runtime/package/ForkSafeMutex.h"
#include "runtime/package/Log.h"
#include "runtime/package/Observers.h"
#include "runtime/package/Requirements.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <set>
#include <unistd.h>
#include <utility>

namespace kpkg::package {

/// What the runtime, the command and the Python package read.
constexpr std::string_view variables[] = {
    "KPKG_CACHE_DIR",    "KPKG_COMMAND",        "KPKG_CUDA_DRIVER", "KPKG_CUPTI",      "KPKG_DISABLE",
    "KPKG_FALLBACK",     "KPKG_INSTANCE_LIMIT", "KPKG_LOCK",        "KPKG_LOG",        "KPKG_NUM_THREADS",
    "KPKG_NVDISASM",     "KPKG_NVTX",           "KPKG_PATH",        "KPKG_PTXAS",      "KPKG_RECORD",
    "KPKG_RECORD_LIMIT", "KPKG_REQUIRE",        "KPKG_TARGET",      "KPKG_TOOL_LIMIT", "KPKG_TRUST"};
/// What builds, tests and measurements of kpkg itself read. Users' lists leave them out.
constexpr std::string_view developersVariables[] = {
    "KPKG_ADAPTER_PACKAGES", "KPKG_BUILD_DIR",      "KPKG_COMMIT",        "KPKG_CONV_CASES",  "KPKG_CONV_SEED",
    "KPKG_DEBIAN",           "KPKG_DISPATCH_CASES", "KPKG_DISPATCH_SEED", "KPKG_DRIVER",      "KPKG_JOBS",
    "KPKG_LLVM_PREFIX",      "KPKG_PYTHON",         "KPKG_STRIDE",        "KPKG_TEST_DEVICE", "KPKG_TEST_FAILURE",
    "KPKG_TEST_OBJECTS",     "KPKG_UPDATE_GOLDEN",  "KPKG_VENV"};

std::vector<std::string> splitList(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    size_t end = std::min(text.find(separator), text.size());
    if (end > 0)
      parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

static std::string_view variable(const char *name) {
  const char *text = std::getenv(name);
  return text ? text : "";
}

static void notUnderstood(const char *name, std::string_view value, const char *expected) {
  log(KPKG_LOG_WARN, std::string(name) + "=" + std::string(value) + " is not understood (" + expected + "); ignored");
}

/// A mistyped name would do nothing, and nobody would see it.
static void warnOfUnknownVariables() {
  for (char **entry = environ; entry && *entry; ++entry) {
    std::string_view name(*entry);
    name = name.substr(0, name.find('='));
    auto has = [&](const auto &names) {
      return std::find(std::begin(names), std::end(names), name) != std::end(names);
    };
    if (!name.starts_with("KPKG_") || has(variables) || has(developersVariables))
      continue;
    std::string message = std::string(name) + " is no variable that kpkg reads; these are";
    for (std::string_view each : variables)
      message += (each == variables[0] ? " " : ", ") + std::string(each);
    log(KPKG_LOG_WARN, message);
  }
}

/// The log reads its limit itself, before all else.
static void checkLog() {
  std::string_view level = variable("KPKG_LOG");
  if (!level.empty() && level != "error" && level != "warn" && level != "info" && level != "debug")
    notUnderstood("KPKG_LOG", level, "error, warn, info or debug");
}

bool parseTrust(std::string_view text, kpkg_trust &level, std::vector<std::string> &keys) {
  constexpr std::string_view signedBy = "signed-by:";
  if (text == "any") {
    level = KPKG_TRUST_ANY;
  } else if (text == "digest") {
    level = KPKG_TRUST_DIGEST;
  } else if (text.starts_with(signedBy)) {
    level = KPKG_TRUST_SIGNED;
    keys = splitList(text.substr(signedBy.size()), ',');
  } else {
    return false;
  }
  return true;
}

/// Reads KPKG_RECORD, and starts the record.
static void readRecord(Environment &found) {
  found.record = variable("KPKG_RECORD");
  if (std::string_view limit = variable("KPKG_RECORD_LIMIT"); !limit.empty()) {
    uint32_t mebibytes = 0;
    auto [end, problem] = std::from_chars(limit.data(), limit.data() + limit.size(), mebibytes);
    if (problem != std::errc() || end != limit.data() + limit.size())
      notUnderstood("KPKG_RECORD_LIMIT", limit, "a number of MiB");
    else
      found.recordBytes = uint64_t(mebibytes) << 20;
  }
  setObserver(Recording, !found.record.empty());
}

static Environment readEnvironment() {
  Environment found;
  warnOfUnknownVariables();
  checkLog();
  for (const std::string &part : splitList(variable("KPKG_FALLBACK"), ',')) {
    size_t equals = part.find('=');
    std::string_view name = std::string_view(part).substr(equals == std::string::npos ? 0 : equals + 1);
    kpkg_policy policy = name == "strict"   ? KPKG_POLICY_STRICT
                         : name == "warn"   ? KPKG_POLICY_WARN
                         : name == "silent" ? KPKG_POLICY_SILENT
                                            : KPKG_POLICY_DEFAULT;
    if (policy == KPKG_POLICY_DEFAULT || equals == 0)
      notUnderstood("KPKG_FALLBACK", part,
                    equals == std::string::npos ? "strict, warn or silent" : "an op, then =strict, =warn or =silent");
    else if (equals == std::string::npos)
      found.policy = policy;
    else
      found.opPolicies.emplace_back(part.substr(0, equals), policy);
  }

  found.lock = variable("KPKG_LOCK");
  std::string_view trust = variable("KPKG_TRUST");
  if (!trust.empty() && !parseTrust(trust, found.trust, found.keys)) {
    // A mistyped value must not weaken trust.
    found.trust = KPKG_TRUST_SIGNED;
    log(KPKG_LOG_WARN, "KPKG_TRUST=" + std::string(trust) +
                           " is not understood (any, digest or signed-by:<keys>); every package is refused");
  }

  found.require = splitList(variable("KPKG_REQUIRE"), ',');
  for (const std::string &flag : found.require)
    if (!isRequirement(flag))
      found.unknownRequire = flag;
  std::string_view disable = variable("KPKG_DISABLE");
  found.disableAll = disable == "1" || disable == "all";
  if (!found.disableAll && disable != "0")
    found.disable = splitList(disable, ',');
  found.path = variable("KPKG_PATH");
  readRecord(found);
  if (std::string_view threads = variable("KPKG_NUM_THREADS"); !threads.empty()) {
    auto [end, problem] = std::from_chars(threads.data(), threads.data() + threads.size(), found.threads);
    if (problem != std::errc() || end != threads.data() + threads.size() || found.threads < 1 ||
        found.threads > hostDevice().threads()->most()) {
      found.threads = 0;
      notUnderstood("KPKG_NUM_THREADS", threads,
                    ("a number of threads from 1 to " + std::to_string(hostDevice().threads()->most())).c_str());
    } else {
      hostDevice().threads()->setCount(found.threads);
    }
  }
  return found;
}

/// Returns whether `name`, with or without a namespace, names the op.
static bool names(std::string_view name, std::string_view op) {
  return name == op ||
         (name.find("::") == name.npos && op.ends_with(name) && op.substr(0, op.size() - name.size()).ends_with("::"));
}

/// The ops of all packages that the process has opened.
struct OpenedOps {
  ForkSafeMutex lock;
  std::set<std::string> names;
};

static OpenedOps &openedOps() {
  static OpenedOps opened;
  return opened;
}

void noteOp(const std::string &op) {
  std::lock_guard guard(openedOps().lock);
  openedOps().names.insert(op);
}

/// Returns the number of letters to change, insert or remove between two names.
static size_t distance(std::string_view first, std::string_view second) {
  std::vector<size_t> row(second.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < first.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < second.size(); ++j) {
      size_t changed = diagonal + (first[i] != second[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// A mistyped op would keep its kernels or its policy, and nobody would see it.
static void warnOfUnknownOp(const char *variable, std::string_view name) {
  std::lock_guard guard(openedOps().lock);
  const std::set<std::string> &opened = openedOps().names;
  if (std::any_of(opened.begin(), opened.end(), [&](const std::string &op) { return names(name, op); }))
    return;
  std::string message = std::string(variable) + " names '" + std::string(name) + "', which no opened package has";
  std::string_view local = name.substr(name.rfind(':') + 1);
  auto away = [&](const std::string &op) { return distance(local, std::string_view(op).substr(op.rfind(':') + 1)); };
  auto nearest = std::min_element(opened.begin(), opened.end(),
                                  [&](const std::string &a, const std::string &b) { return away(a) < away(b); });
  if (nearest != opened.end() && away(*nearest) <= 2)
    message += "; did you mean '" + *nearest + "'?";
  log(KPKG_LOG_WARN, message);
}

bool Environment::isDisabled(std::string_view op) const {
  static std::once_flag isChecked;
  if (!disable.empty() || !opPolicies.empty())
    std::call_once(isChecked, [&] {
      for (const std::string &name : disable)
        warnOfUnknownOp("KPKG_DISABLE", name);
      for (const auto &[name, policy] : opPolicies)
        warnOfUnknownOp("KPKG_FALLBACK", name);
    });
  return disableAll ||
         std::any_of(disable.begin(), disable.end(), [&](const std::string &name) { return names(name, op); });
}

kpkg_policy Environment::policyOf(std::string_view op) const {
  for (const auto &[name, policy] : opPolicies)
    if (names(name, op))
      return policy;
  return KPKG_POLICY_DEFAULT;
}

const Environment &environment() {
  static const Environment found = readEnvironment();
  return found;
}

} // namespace kpkg::package
