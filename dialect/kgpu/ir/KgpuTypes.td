// Types of the kgpu dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_KGPU_IR_KGPUTYPES_TD
#define KPKG_DIALECT_KGPU_IR_KGPUTYPES_TD

include "dialect/kgpu/ir/KgpuDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"

def Kgpu_SharedType : TypeDef<Kgpu_Dialect, "Shared"> {
  let mnemonic = "smem";
  let summary = "a tile in shared memory";
  let description = [{
    Elements are placed as `memory` describes (text form of kpkg::layout::SharedLayout), or else in row-major order
    without gaps. An i1 takes one byte, an index eight. `memory` may cover more than the shape; the rest is padding.

    Examples: `!kgpu.smem<1x8xf32>`, `!kgpu.smem<64x16xf32, "4B 0:64-2048 1:4-32">`.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    "::mlir::Type":$elementType,
    "::std::optional<::kpkg::layout::SharedLayout>":$memory
  );
  let builders = [
    TypeBuilderWithInferredContext<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType,
        CArg<"::std::optional<::kpkg::layout::SharedLayout>", "{}">:$memory), [{
      return $_get(elementType.getContext(), shape, elementType, memory);
    }]>
  ];
  let extraClassDeclaration = [{
    /// Returns the placement of elements: `memory`, or row-major order.
    ::kpkg::layout::SharedLayout getPlacement() const;
    int64_t getElementBytes() const;
    int64_t getSizeBytes() const { return getPlacement().sizeBytes(); }
    /// Returns the alignment of the buffer in bytes: at least 16, so that any vector may be accessed.
    int64_t getAlignment() const;
  }];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Kgpu_RingType : TypeDef<Kgpu_Dialect, "Ring"> {
  let mnemonic = "ring";
  let summary = "a ring buffer of slots that one role fills and another one consumes";
  let description = [{
    Example: `!kgpu.ring<4>`.
  }];
  let parameters = (ins "int64_t":$slots);
  let assemblyFormat = "`<` $slots `>`";
  let genVerifyDecl = 1;
}

#endif
