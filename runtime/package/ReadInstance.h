// Reads a compiled instance from the manifest.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/package/ManifestEntry.h"
#include "runtime/package/Tables.h"

namespace kpkg::package {

/// Reads instance `index` of the manifest, whose kernel is in `tables` already. Throws Refusal if it is invalid.
Instance readInstance(const json &value, size_t index, const Tables &tables);

} // namespace kpkg::package
