// Defines the passes over the tile dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_TILE_TRANSFORMS_PASSES_TD
#define KPKG_DIALECT_TILE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def TileEstimateCost : Pass<"tile-estimate-cost", "::kpkg::tile::KernelOp"> {
  let summary = "writes a kernel's cost formulas into the attributes `flops`, `bytes` and `tile_flops`";
  let description = [{
    Makes the analysis behind the estimates in a package's manifest visible. A formula is a sum of products of extents,
    the number of blocks and trip counts. A persistent kernel also gets `tiles`, the trip count of its loop over tiles.
    A kernel with a trip count that is no formula of shapes gets `no_estimate`, with the reason. Works on any verified
    kernel, and changes only attributes.
  }];
  let statistics = [Statistic<"unknown", "unknown-kernels", "Kernels without a formula">];
}

def TileWidenReductions : Pass<"tile-widen-reductions", "::kpkg::tile::KernelOp"> {
  let summary = "computes sums and products of narrow floats in f32";
  let description = [{
    Rewrites `tile.reduce` of kind sum or prod on floats narrower than f32: extends the operand, reduces in f32, and
    rounds the result once. Works on any verified kernel. Runs first in the GPU pipeline, so that threads exchange f32
    values.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileExpandAddStores : Pass<"tile-expand-add-stores", "::kpkg::tile::KernelOp"> {
  let summary = "expands add-stores to atomic updates of elements";
  let description = [{
    Replaces every `tile.add_store` by a `tile.atomic add` with tiles of coordinates. For targets that add to memory
    only element by element. Works on any verified kernel without layouts.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileAddChecks : Pass<"tile-add-checks", "::kpkg::tile::KernelOp"> {
  let summary = "adds checks of indices and of stored values";
  let description = [{
    Inserts a `tile.print` with the attribute `tile.check` before accesses. It ends the launch with a message, and prints
    the values and the block, for the first element whose condition does not hold. With `bounds`, the indices of
    `tile.drop`, `tile.gather`, `tile.scatter` and `tile.atomic` must lie in their view. With `nan`, no value that is
    stored or added may be NaN. Elements whose mask is false, or that a store leaves out, are not checked. Works on any
    verified kernel without layouts.
  }];
  let options = [Option<"bounds", "bounds", "bool", /*default=*/"false", "Check indices">,
                 Option<"nan", "nan", "bool", /*default=*/"false", "Check written floats">];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileAddShadowChecks : Pass<"tile-add-shadow-checks", "::kpkg::tile::KernelOp"> {
  let summary = "adds checks of unwritten elements and of races between blocks";
  let description = [{
    Appends shadow arguments, int32 tensors of the shapes of the view arguments, and inserts checks like those of
    `tile-add-checks` before accesses. With `uninit`, elements that are read must have been written: a shadow tells, and
    stores update it. With `race`, no two blocks may access an element unless both read it or both update it atomically.
    Each access records its block and its kind in a cell, by an atomic exchange. An element that is outside of a view or
    masked is not accessed. Shared memory of kernels at thread level has shadows beside it. Its cells tell threads apart,
    and accesses before a barrier from those after it. Works on any verified kernel without layouts.
  }];
  let options = [Option<"uninit", "uninit", "bool", /*default=*/"false", "Check that elements were written">,
                 Option<"race", "race", "bool", /*default=*/"false", "Check that blocks do not interfere">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileDensifyDots : Pass<"tile-densify-dots", "::kpkg::tile::KernelOp"> {
  let summary = "densifies the left operands of 2:4 sparse dots";
  let description = [{
    Expands the left operand of each `tile.dot` with positions to all of its elements, with zeros at the other
    positions, and removes the positions. For targets without sparse matrix products. Works on any verified kernel
    without layouts.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileExpandUnpacks : Pass<"tile-expand-unpacks", "::kpkg::tile::KernelOp"> {
  let summary = "expands unpacked words to shifts and masks";
  let description = [{
    Replaces every `tile.unpack` by a shift of each word for each of its fields. For targets without conversions of
    fields. Works on any verified kernel without layouts.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileRelaxMath : Pass<"tile-relax-math", "::kpkg::tile::KernelOp"> {
  let summary = "marks f32 arithmetic whose results only reach narrower formats as approximate";
  let description = [{
    Sets `afn` on `exp`, `tanh`, `erf` and quotients in f32 whose results only reach values of 16 bits or less, possibly
    through further arithmetic. A back end may then compute them with a relative error of 2^-22, times the size of the
    argument where that is above 1. Sets `contract` on sums, differences and products that only reach narrower formats,
    and on products that are only summed. Runs before layouts are assigned, while casts are next to the ops whose
    results they round.
  }];
  let statistics = [Statistic<"relaxed", "relaxed-ops", "Ops that were marked">];
}

def TileMakeVariants : Pass<"tile-make-variants", "::mlir::ModuleOp"> {
  let summary = "copies each kernel for different facts about its arguments";
  let description = [{
    Replaces each kernel by its variants: `unit` and `any` for CPUs; `vector`, `vector64`, `unit` and `any` for GPUs.
    Dispatch chooses the instance with the most facts that hold. Expects kernels whose view arguments state no facts,
    and removes variants that state no more than a later one. See makeVariants in Variants.h.
  }];
  let options = [Option<"kind", "kind", "std::string", "\"cpu\"", "what runs the kernels: cpu or gpu">];
}

#endif
