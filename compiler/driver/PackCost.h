// Converts cost formulas to the manifest's format.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/pack/Package.h"
#include "dialect/tile/transforms/Cost.h"

namespace kpkg::compiler {

std::vector<PackedCostTerm> packedCost(llvm::ArrayRef<tile::CostTerm> terms);

} // namespace kpkg::compiler
