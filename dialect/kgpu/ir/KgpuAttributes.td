// Attributes of the kgpu dialect: layouts of tiles, targets, windows and tensor maps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_KGPU_IR_KGPUATTRIBUTES_TD
#define KPKG_DIALECT_KGPU_IR_KGPUATTRIBUTES_TD

include "dialect/kgpu/ir/KgpuDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"

def Kgpu_LayoutAttr : AttrDef<Kgpu_Dialect, "Layout", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "layout";
  let summary = "maps lanes, warps, CTAs and registers to elements of a tile";
  let description = [{
    The encoding of a tile's type. The text is described in dialect/layout/Layout.h. The layout has the tile's rank and
    covers its shape. Elements beyond the shape are undefined.

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

def Kgpu_LaunchAttr : AttrDef<Kgpu_Dialect, "Launch"> {
  let mnemonic = "launch";
  let summary = "the configuration of a kernel's launch";
  let description = [{
    Names, defaults and meaning are those of dialect/kgpu/ir/LaunchFields.def. The text leaves out defaults, and a flag
    has no value.

    Example: `#kgpu.launch<threads = 384, min_ctas = 1, dynamic, consumers = 2>`.
  }];
  let parameters = (ins AttrParameter<"::kpkg::kgpu::Launch", "the configuration", "const ::kpkg::kgpu::Launch &">:$launch);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Kgpu_WindowAttr : AttrDef<Kgpu_Dialect, "Window"> {
  let mnemonic = "window";
  let summary = "describes a sliding window over a view of images";
  let description = [{
    Describes a view [images, extents ..., channels], with one entry for each extent. Pixels are counted along the last
    extent first, up to `counts`, then along those before it, then over images.

    A pixel has the coordinate pixel * `strides` + `starts` + tap * `steps`. Taps count up to the extent of a dimension
    of a view. For each extent, `taps` gives the kernel argument of that view and the dimension. All other entries are
    numbers of kernel arguments of type index.

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
  let summary = "boxes of a view that the TMA copies";
  let description = [{
    Describes argument `arg` of the kernel, a view, to the TMA. The TMA moves boxes between the view and shared memory.
    A box has the extents `box`, one for each of the view's dimensions, in the view's order. In shared memory, rows of
    the unit dimension are contiguous and swizzled over `swizzle` bytes, or not swizzled if it is 0. Elements outside of
    the view are read as 0 and not written. In TMA coordinates the unit dimension is the first. The others follow from
    the last to the first.

    The box's extent along the unit dimension is a multiple of 16 bytes, and at most `swizzle` bytes unless that is 0.
    No extent of a box is above 256. The view's address and all its strides but the unit one must be multiples of 16
    bytes.

    With `window`, the TMA copies the box's channels of as many pixels as the box has images. The box has extent 1 along
    each of the window's extents. The unit dimension is that of the channels.

    Example: `#kgpu.tensor_map<arg = 0, box = [1, 128, 64], swizzle = 128>`.
  }];
  let parameters = (ins "unsigned":$arg, ArrayRefParameter<"int64_t">:$box, "unsigned":$swizzle, OptionalParameter<"WindowAttr">:$window);
  let assemblyFormat = "`<` `arg` `=` $arg `,` `box` `=` `[` $box `]` `,` `swizzle` `=` $swizzle (`,` `window` `=` qualified($window)^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Returns the bytes of shared memory that one box fills, for the view's `elementBytes`.
    int64_t bytes(int64_t elementBytes) const;
    /// Returns the view's dimensions in the order of TMA coordinates.
    ::llvm::SmallVector<unsigned> order(unsigned unit) const;
  }];
}

#endif
