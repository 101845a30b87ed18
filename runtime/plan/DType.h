// Makes the runtime's dtypes known to plans.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/include/kpkg/dtype.hpp"

namespace kpkg::plan {
using kpkg::DType;
using kpkg::dtypeBits;
using kpkg::dtypeBytes;
using kpkg::dtypeCount;
using kpkg::dtypeFromName;
using kpkg::dtypeIsFloat;
using kpkg::dtypeName;
} // namespace kpkg::plan
