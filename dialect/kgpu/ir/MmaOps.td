// Matrix products of single warps (mma.sync).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

def Kgpu_MmaOp : Kgpu_Op<"mma", [Pure, AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "multiplies matrices and adds an accumulator, all in registers";
  let description = [{
    Computes `accumulator + lhs @ rhs` by mma.sync, for f16, bf16 or f32 (read as tf32) with an f32 accumulator, or i8
    with i32. Chips that can also multiply 8-bit floats with an f32 accumulator. Each warp multiplies the elements that
    it holds. The layouts of the operands are mmaSyncLeft and mmaSyncRight (MmaFragments.h) of the accumulator's.

    ```mlir
    %t = kgpu.mma %a, %w, %acc : tensor<16x16xbf16, #left>, tensor<16x8xbf16, #right>, tensor<16x8xf32, #sum>
    ```
  }];
  let arguments = (ins Tile_Tile:$lhs, Tile_Tile:$rhs, Tile_Tile:$accumulator);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `,` $accumulator attr-dict `:` type($lhs) `,` type($rhs) `,` type($accumulator)
  }];
  let hasVerifier = 1;
}
