// Describes the tensor maps of a GPU kernel for the manifest.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/pack/Package.h"
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::compiler {

/// Returns the tensor maps that a kernel with layouts copies by, and how often it does.
std::vector<manifest::TensorMap> tensorMapRecords(tile::KernelOp laidOut);

} // namespace kpkg::compiler
