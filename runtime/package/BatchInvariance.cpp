// Finds out whether calls have to be batch invariant.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/BatchInvariance.h"
#include "runtime/package/Environment.h"
#include "runtime/package/Restriction.h"

#include <algorithm>

namespace kpkg::package {

static bool lists(const std::vector<std::string> &words) {
  return std::ranges::find(words, batchInvariant) != words.end();
}

bool requiresBatchInvariance(const Restriction *restriction) {
  static const bool isForAll = lists(environment().require);
  return isForAll || (restriction && lists(restriction->require));
}

} // namespace kpkg::package
