// Passes over the tile dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_TILE_TRANSFORMS_PASSES_TD
#define KPKG_DIALECT_TILE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def TileEstimateCost : Pass<"tile-estimate-cost", "::kpkg::tile::KernelOp"> {
  let summary = "writes a kernel's cost formulas into its attributes `flops` and `bytes`";
  let description = [{
    The analysis behind the estimates in a package's manifest, made visible. A kernel whose loops have trip counts that are no formula
    of shapes gets no attribute.
  }];
  let statistics = [Statistic<"unknown", "unknown-kernels", "Kernels without a formula">];
}

def TileWidenReductions : Pass<"tile-widen-reductions", "::kpkg::tile::KernelOp"> {
  let summary = "computes sums and products of narrow floats in f32";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileExpandAddStores : Pass<"tile-expand-add-stores", "::kpkg::tile::KernelOp"> {
  let summary = "adds tiles to memory element by element";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileDensifyDots : Pass<"tile-densify-dots", "::kpkg::tile::KernelOp"> {
  let summary = "makes dense what products have two of four elements of";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileRelaxMath : Pass<"tile-relax-math", "::kpkg::tile::KernelOp"> {
  let summary = "marks f32 functions that only ever reach a narrower format as approximate";
  let description = [{
    Sets `afn` on exponentials and quotients that nothing sees before they are rounded to 16 bits or less. A back end may then
    compute them with a relative error of 2^-22 times the size of the argument, where that is above 1.
  }];
  let statistics = [Statistic<"relaxed", "relaxed-ops", "Ops that were marked">];
}

def TileMakeVariants : Pass<"tile-make-variants", "::mlir::ModuleOp"> {
  let summary = "copies each kernel for different facts about its arguments";
  let description = [{
    For CPUs `unit` and `any`, for GPUs `vector`, `vector64`, `unit` and `any`; dispatch takes the instance with most facts that hold. See
    makeVariants in Variants.h.
  }];
  let options = [Option<"kind", "kind", "std::string", "\"cpu\"", "what runs the kernels: cpu or gpu">];
}

#endif
