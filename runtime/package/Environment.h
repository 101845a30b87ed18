// Reads the KPKG_* environment variables once.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_ENVIRONMENT_H
#define KPKG_PACKAGE_ENVIRONMENT_H

#include <kpkg/kpkg.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kpkg::package {

struct Environment {
  /// KPKG_FALLBACK=strict|warn|silent, also for single ops: KPKG_FALLBACK=warn,kpkg::softmax=strict
  kpkg_policy policy = KPKG_POLICY_WARN;
  std::vector<std::pair<std::string, kpkg_policy>> opPolicies;
  /// KPKG_TRUST=any|digest|signed-by:<key>,<key>
  kpkg_trust trust = KPKG_TRUST_DIGEST;
  std::vector<std::string> keys;
  /// KPKG_LOCK, a lock file that applies to every package.
  std::string lock;
  /// KPKG_REQUIRE=deterministic,batch_invariant,exact: instances without one of these flags are not used.
  std::vector<std::string> require;
  /// Unknown words of KPKG_REQUIRE. No package is opened then, because a mistyped requirement must not be ignored.
  std::string unknownRequire;
  /// KPKG_DISABLE=1 (all) or a list of op names, with or without their namespaces. These ops use their fallbacks.
  bool disableAll = false;
  std::vector<std::string> disable;
  /// KPKG_NUM_THREADS; 0 if it is not set. It acts like kpkg_set_cpu_threads.
  int threads = 0;
  /// KPKG_PATH
  std::string path;
  /// KPKG_RECORD, a folder for recorded calls, and the limit of their arguments, KPKG_RECORD_LIMIT in MiB.
  std::string record;
  uint64_t recordBytes = uint64_t(4096) << 20;

  /// The first call also warns of ops in KPKG_DISABLE and KPKG_FALLBACK that no opened package has.
  bool isDisabled(std::string_view op) const;
  /// KPKG_POLICY_DEFAULT if KPKG_FALLBACK does not name the op.
  kpkg_policy policyOf(std::string_view op) const;
};

/// Notes that an opened package has the op, for warnings of ops that none has.
void noteOp(const std::string &op);

/// Parses "any", "digest" or "signed-by:<key>,<key>". Returns false for other texts. Keys are not checked.
bool parseTrust(std::string_view text, kpkg_trust &level, std::vector<std::string> &keys);

/// Returns the environment. Invalid values are reported once, as a warning, and otherwise ignored.
const Environment &environment();

/// Splits at `separator`, and drops empty parts.
std::vector<std::string> splitList(std::string_view text, char separator);

} // namespace kpkg::package
#endif
