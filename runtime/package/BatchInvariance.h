// Says who ensures that results of a row do not depend on how many other rows a call has.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_BATCHINVARIANCE_H
#define KPKG_PACKAGE_BATCHINVARIANCE_H

#include "runtime/package/Requirements.h"

#include <cstdint>

namespace kpkg::package {

struct Restriction;

enum class BatchInvariance : uint8_t {
  NotWanted,
  /// The op has no argument of that name, so each of its instances must have the flag.
  ByInstances,
  /// The op's argument is true. Its instances are then chosen without regard to extents.
  ByOp,
};

/// Returns whether KPKG_REQUIRE or the restriction (null: none) asks for batch invariance.
bool requiresBatchInvariance(const Restriction *restriction);

} // namespace kpkg::package
#endif
