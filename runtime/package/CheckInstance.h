// Checks a compiled instance of the manifest against its kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/package/Tables.h"

namespace kpkg::package {

/// Derives values and dtypes of instance `index` of the manifest, whose kernel is in `tables` already. Throws
/// manifest::Refusal if it does not fit the kernel.
Instance resolveInstance(manifest::Instance record, size_t index, const Tables &tables);

} // namespace kpkg::package
