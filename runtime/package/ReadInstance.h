// A compiled instance as the manifest states it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/package/ManifestEntry.h"
#include "runtime/package/Tables.h"

namespace kpkg::package {

/// Instance `index` of the manifest; its kernel is in `tables` already. Throws Refusal where it is not as it has to be.
Instance readInstance(const json &value, size_t index, const Tables &tables);

} // namespace kpkg::package
