// What a package's manifest says of an instance.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/irgen/Generate.h"
#include "compiler/pack/Package.h"
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::compiler {

/// What the manifest says of a variant, without what depends on the target.
PackedInstance describeInstance(tile::KernelOp kernel, const Program &program, InstanceRef instance);

} // namespace kpkg::compiler
