// Describes an instance for the manifest.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/irgen/Generate.h"
#include "compiler/pack/Package.h"
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::compiler {

/// Returns the manifest's description of a variant, without the properties that depend on the target.
PackedInstance describeInstance(tile::KernelOp kernel, const Program &program, InstanceRef instance);

} // namespace kpkg::compiler
