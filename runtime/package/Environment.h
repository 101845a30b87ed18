// What the KPKG_* environment variables say, read once.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_ENVIRONMENT_H
#define KPKG_PACKAGE_ENVIRONMENT_H

#include <kpkg/kpkg.h>

#include <string>
#include <string_view>
#include <vector>

namespace kpkg::package {

struct Environment {
  /// KPKG_FALLBACK=strict|warn|silent, and the same for single ops: KPKG_FALLBACK=warn,kpkg::softmax=strict
  kpkg_policy policy = KPKG_POLICY_WARN;
  std::vector<std::pair<std::string, kpkg_policy>> opPolicies;
  /// KPKG_TRUST=any|digest|signed-by:<key>,<key>
  kpkg_trust trust = KPKG_TRUST_DIGEST;
  std::vector<std::string> keys;
  /// KPKG_LOCK, a lock file that holds for every package.
  std::string lock;
  /// KPKG_REQUIRE=deterministic,batch_invariant,exact: instances without one of these flags are not used.
  std::vector<std::string> require;
  /// What KPKG_REQUIRE has beside these; no package is opened then, since a mistyped wish must not give less.
  std::string unknownRequire;
  /// KPKG_DISABLE=1 (all) or a list of op names, with or without their namespaces: these go to their fallbacks.
  bool disableAll = false;
  std::vector<std::string> disable;
  /// KPKG_NUM_THREADS, 0 without one. It is set as if by kpkg_set_cpu_threads.
  int threads = 0;
  /// KPKG_PATH
  std::string path;

  bool isDisabled(std::string_view op) const;
  /// KPKG_POLICY_DEFAULT where KPKG_FALLBACK does not name the op.
  kpkg_policy policyOf(std::string_view op) const;
};

/// Reads "any", "digest" or "signed-by:<key>,<key>"; false for another text. The keys are not looked at.
bool parseTrust(std::string_view text, kpkg_trust &level, std::vector<std::string> &keys);

/// A value that is not understood is reported once, as a warning, and otherwise ignored.
const Environment &environment();

/// Splits at `separator`; empty parts are dropped.
std::vector<std::string> splitList(std::string_view text, char separator);

} // namespace kpkg::package
#endif
