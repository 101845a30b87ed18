// Ops on shared memory: buffers, parts of buffers, and moves of tiles to and from them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

def Kgpu_AllocOp : Kgpu_Op<"alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "allocates a buffer in shared memory";
  let description = [{
    The buffer is live from its first to its last access. Buffers that are not live at the same time may overlap.
    `kgpu-alloc-smem` sets `offset`, in bytes from the beginning of the CTA's shared memory.

    ```mlir
    %t = kgpu.alloc : !kgpu.smem<1x2xf32>
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$offset);
  let results = (outs Kgpu_SharedType:$result);
  let assemblyFormat = "(`offset` $offset^)? attr-dict `:` qualified(type($result))";
}

def Kgpu_SlotOp : Kgpu_Op<"slot", [Pure]> {
  let summary = "takes one part of a buffer along its first dimension";
  let description = [{
    0 <= index < extent must hold. A buffer that is not in row-major order must consist of equal, consecutive parts.

    ```mlir
    %t = kgpu.slot %ring[%r] : !kgpu.smem<3x1x256xf32> -> !kgpu.smem<1x256xf32>
    ```
  }];
  let arguments = (ins Kgpu_SharedType:$buffer, Index:$index);
  let results = (outs Kgpu_SharedType:$result);
  let assemblyFormat = "$buffer `[` $index `]` attr-dict `:` qualified(type($buffer)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

def Kgpu_ReshapeBufferOp : Kgpu_Op<"reshape_buffer", [Pure]> {
  let summary = "views a buffer as a tile of another shape";
  let description = [{
    Both types are in row-major order and have equally many elements.

    ```mlir
    %t = kgpu.reshape_buffer %matrix : !kgpu.smem<4x12xf32> -> !kgpu.smem<48xf32>
    ```
  }];
  let arguments = (ins Kgpu_SharedType:$buffer);
  let results = (outs Kgpu_SharedType:$result);
  let assemblyFormat = "$buffer attr-dict `:` qualified(type($buffer)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

def Kgpu_TransposeBufferOp : Kgpu_Op<"transpose_buffer", [Pure]> {
  let summary = "views a matrix in shared memory with rows and columns exchanged";
  let description = [{
    ```mlir
    %t = kgpu.transpose_buffer %matrix : !kgpu.smem<4x12xf32> -> !kgpu.smem<12x4xf32, "4B 0:4,8 rep 3x4 stride 16,48">
    ```
  }];
  let arguments = (ins Kgpu_SharedType:$buffer);
  let results = (outs Kgpu_SharedType:$result);
  let assemblyFormat = "$buffer attr-dict `:` qualified(type($buffer)) `->` qualified(type($result))";
  let builders = [OpBuilder<(ins "::mlir::Value":$buffer)>];
  let hasVerifier = 1;
}

def Kgpu_SliceBufferOp : Kgpu_Op<"slice_buffer", [Pure]> {
  let summary = "views elements of a buffer at equal distances along each dimension";
  let description = [{
    Element i of the result is element `offset + step * i` of the buffer, in each dimension. The buffer is in row-major
    order.

    ```mlir
    %t = kgpu.slice_buffer %m [0, 1] step [1, 2] : !kgpu.smem<4x8xf32> -> !kgpu.smem<4x4xf32, "4B rep 4x4 stride 32,8">
    ```
  }];
  let arguments = (ins Kgpu_SharedType:$buffer, DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$steps);
  let results = (outs Kgpu_SharedType:$result);
  let assemblyFormat = [{
    $buffer $offsets `step` $steps attr-dict `:` qualified(type($buffer)) `->` qualified(type($result))
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$buffer, "::llvm::ArrayRef<int64_t>":$offsets,
                                 "::llvm::ArrayRef<int64_t>":$sizes, "::llvm::ArrayRef<int64_t>":$steps)>];
  let extraClassDeclaration = [{
    /// Returns the distance of the first element from the beginning of the buffer.
    int64_t getOffsetBytes();
  }];
  let hasVerifier = 1;
}

def Kgpu_ViewBufferOp : Kgpu_Op<"view_buffer", [Pure]> {
  let summary = "views a buffer as memory for ops of the tile dialect";
  let description = [{
    The buffer is in row-major order. Accesses to the view are accesses to shared memory.

    ```mlir
    %t = kgpu.view_buffer %matrix : !kgpu.smem<4x12xf32> -> !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>
    ```
  }];
  let arguments = (ins Kgpu_SharedType:$buffer);
  let results = (outs Tile_ViewType:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$buffer)>];
  let assemblyFormat = "$buffer attr-dict `:` qualified(type($buffer)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

def Kgpu_LocalStoreOp : Kgpu_SharedOp<"local_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "writes a tile to a buffer";
  let description = [{
    Elements beyond the tile's shape are not written. If several threads hold an element, the one whose free bits are 0
    writes it. If the layout has block bits that are not free, each CTA writes its part into its own shared memory. With
    `ahead`, in a loop, no thread may read the buffer before the loop's next iteration.

    ```mlir
    kgpu.local_store %partial, %buffer : tensor<1x2xf32, #part>, !kgpu.smem<1x2xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$value, Kgpu_SharedType:$buffer, UnitAttr:$ahead);
  let builders = [OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$buffer), [{
    build($_builder, $_state, value, buffer, /*ahead=*/false);
  }]>];
  let assemblyFormat = "$value `,` $buffer (`ahead` $ahead^)? attr-dict `:` type($value) `,` qualified(type($buffer))";
  let hasVerifier = 1;
}

def Kgpu_RemoteStoreOp : Kgpu_SharedOp<"remote_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "writes a tile to the buffer of every CTA of the cluster";
  let description = [{
    Writes like `kgpu.local_store`, but to the buffers of all CTAs of the cluster, including its own, at the same place.
    The elements are visible to them after a `kgpu.cluster_barrier`.

    ```mlir
    kgpu.remote_store %partial, %buffer : tensor<1x2xf32, #part>, !kgpu.smem<1x2xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$value, Kgpu_SharedType:$buffer);
  let assemblyFormat = "$value `,` $buffer attr-dict `:` type($value) `,` qualified(type($buffer))";
  let hasVerifier = 1;
}

def Kgpu_LocalLoadOp : Kgpu_SharedOp<"local_load", [MemoryEffects<[MemRead]>]> {
  let summary = "reads a tile from a buffer";
  let description = [{
    Every register of the layout gets its element. Registers beyond the tile's shape are undefined, and nothing outside
    of the buffer is read. With `at`, the tile is the part of the buffer that begins there, at a multiple of the
    layout's shape.

    ```mlir
    %t = kgpu.local_load %buffer : !kgpu.smem<1x2xf32> -> tensor<1x2xf32, #all>
    ```
  }];
  let arguments = (ins Kgpu_SharedType:$buffer, OptionalAttr<DenseI64ArrayAttr>:$at);
  let results = (outs Tile_Tile:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$buffer), [{
    build($_builder, $_state, type, buffer, ::mlir::DenseI64ArrayAttr());
  }]>];
  let assemblyFormat = "$buffer (`at` $at^)? attr-dict `:` qualified(type($buffer)) `->` type($result)";
  let hasVerifier = 1;
}
