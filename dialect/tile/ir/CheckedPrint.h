// Names the attribute of a tile.print that only prints, and ends the launch, where a condition does not hold.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::tile {

/// A string on a tile.print: the message of a failed launch. The first value is a condition, and other values are
/// scalars or have its shape.
///
/// In each launch the op prints the other values at the first element, by any thread, whose condition does not hold.
/// The launch then fails like a tile.assert.
inline constexpr llvm::StringLiteral checkAttribute = "tile.check";

/// Returns the message of a failed launch, or null if the op prints in any case.
inline mlir::StringAttr checkOf(PrintOp op) { return op->getAttrOfType<mlir::StringAttr>(checkAttribute); }

/// Returns the format of the values behind the condition.
inline llvm::StringRef checkFormat(PrintOp op) { return op.getFormat().split("{}").second; }

} // namespace kpkg::tile
