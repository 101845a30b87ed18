// Names what calls can require of kernels: words of KPKG_REQUIRE, of restrictions, and flags of instances.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_REQUIREMENTS_H
#define KPKG_PACKAGE_REQUIREMENTS_H

#include <string_view>

namespace kpkg::package {

/// Results of a row do not depend on how many other rows a call has. Also the name of the argument of ops.
inline constexpr std::string_view batchInvariant = "batch_invariant";

/// Returns whether it is a word of KPKG_REQUIRE, and of `require` in a restriction.
constexpr bool isRequirement(std::string_view word) {
  return word == "deterministic" || word == batchInvariant || word == "exact";
}

} // namespace kpkg::package
#endif
