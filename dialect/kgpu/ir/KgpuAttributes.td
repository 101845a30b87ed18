// Attributes of the kgpu dialect: layouts of tiles, targets, and tensor maps.
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

def Kgpu_WindowAttr : AttrDef<Kgpu_Dialect, "Window"> {
  let mnemonic = "window";
  let summary = "how windows walk over a view of images";
  let description = [{
    For a view [images, extents ..., channels]: one entry for each extent. Pixels are counted along the last extent first, up to `counts`, then along
    those before it, then over images. A pixel has coordinate pixel * `strides` + `starts` + tap * `steps`, where taps count to the extent of a
    dimension of a view; `taps` names the argument and the dimension, for each extent. All others are numbers of arguments of type index.

    Example: `#kgpu.window<counts = [3, 4], strides = [5, 6], starts = [7, 8], steps = [9, 10], taps = [1, 0, 1, 1]>`.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$counts, ArrayRefParameter<"int64_t">:$strides, ArrayRefParameter<"int64_t">:$starts,
                        ArrayRefParameter<"int64_t">:$steps, ArrayRefParameter<"int64_t">:$taps);
  let assemblyFormat = [{
    `<` `counts` `=` `[` $counts `]` `,` `strides` `=` `[` $strides `]` `,` `starts` `=` `[` $starts `]` `,` `steps` `=` `[` $steps `]` `,`
    `taps` `=` `[` $taps `]` `>`
  }];
  let genVerifyDecl = 1;
}

def Kgpu_TensorMapAttr : AttrDef<Kgpu_Dialect, "TensorMap"> {
  let mnemonic = "tensor_map";
  let summary = "boxes of a view that the tensor memory accelerator copies";
  let description = [{
    Describes argument `arg` of the kernel, a view, to the copy engine: it moves boxes of `box` elements (of each of the view's
    dimensions, in the view's order) between the view and shared memory, where the rows of the view's unit dimension are put
    after each other and swizzled over `swizzle` bytes (0: not). Elements outside of the view are read as 0 and not written. In
    coordinates of the engine the unit dimension is the first, then come the others from the last to the first.

    The unit dimension's part of a box is a multiple of 16 bytes, and no more than `swizzle` bytes where that is not 0; no extent
    of a box is above 256. The kernel knows of the view that its address and all its strides but the unit one are multiples of
    16 bytes.

    With `window`, instead of boxes the engine copies for so many pixels as the box has images the channels that the box has; the box has one place
    along each extent. The unit dimension is that of channels then.

    Example: `#kgpu.tensor_map<arg = 0, box = [1, 128, 64], swizzle = 128>`.
  }];
  let parameters = (ins "unsigned":$arg, ArrayRefParameter<"int64_t">:$box, "unsigned":$swizzle, OptionalParameter<"WindowAttr">:$window);
  let assemblyFormat = "`<` `arg` `=` $arg `,` `box` `=` `[` $box `]` `,` `swizzle` `=` $swizzle (`,` `window` `=` qualified($window)^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bytes that one box fills in shared memory; `elementBytes` of the view.
    int64_t bytes(int64_t elementBytes) const;
    /// The view's dimensions in the order of the engine's coordinates.
    ::llvm::SmallVector<unsigned> order(unsigned unit) const;
  }];
}

#endif
