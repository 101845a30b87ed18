// Attributes of the kgpu dialect: layouts of tiles, and targets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_KGPU_IR_KGPUATTRIBUTES_TD
#define KPKG_DIALECT_KGPU_IR_KGPUATTRIBUTES_TD

include "dialect/kgpu/ir/KgpuDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"

def Kgpu_LayoutAttr : AttrDef<Kgpu_Dialect, "Layout", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "layout";
  let summary = "which thread holds which element of a tile in which register";
  let description = [{
    The encoding of a tile; see dialect/layout/Layout.h for what the text says. The layout has the tile's rank and covers its
    shape; places beyond the shape hold nothing of meaning.

    Example: `#kgpu.layout<"reg 1:1-4 lane 1:8-128 rep 1x3">`: 24 elements a lane, in vectors of eight.
  }];
  let parameters = (ins AttrParameter<"::kpkg::layout::Layout", "a layout", "const ::kpkg::layout::Layout &">:$layout);
  let hasCustomAssemblyFormat = 1;
}

def Kgpu_TargetAttr : AttrDef<Kgpu_Dialect, "Target"> {
  let mnemonic = "target";
  let summary = "the chip that a kernel is compiled for";
  let description = [{
    Example: `#kgpu.target<"sm_90a">`.
  }];
  let parameters = (ins StringRefParameter<"name of the chip as ptxas knows it">:$chip);
  let assemblyFormat = "`<` $chip `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    const TargetModel &getModel() const;
  }];
}

#endif
