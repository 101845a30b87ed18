// Says who ensures that results of a row do not depend on how many other rows a call has.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_BATCHINVARIANCE_H
#define KPKG_PACKAGE_BATCHINVARIANCE_H

#include <cstdint>
#include <string_view>

namespace kpkg::package {

struct Restriction;

/// The name of the requirement, of the flag of instances, and of the argument of ops.
inline constexpr std::string_view batchInvariant = "batch_invariant";

enum class BatchInvariance : uint8_t {
  NotWanted,
  /// The op has no argument of that name, so each of its instances must have the flag.
  ByInstances,
  /// The op's argument is true. Its instances are then chosen without regard to extents.
  ByOp,
};

/// Returns whether it is a word of KPKG_REQUIRE, and of `require` in a restriction.
bool isRequirement(std::string_view word);

/// Returns whether KPKG_REQUIRE or the restriction (null: none) asks for batch invariance.
bool requiresBatchInvariance(const Restriction *restriction);

} // namespace kpkg::package
#endif
