// Checks products whose rows, matrix and depth come from memory. Both roles read these numbers; tensor maps still load
// the operands, and results are stored to a slice.
// RUN: kpkg-opt --gpu-pipeline=chip=sm_90a %s | FileCheck %s

!rows = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!matrices = !tile.view<3xbf16, unit = 2, align = 16, divisible = 8, index = 32>
!tiles = !tile.view<2xi32, index = 32>
!space = !tile.view<2xi32, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// CHECK: kgpu.roles producer_warp {
// CHECK-COUNT-3: tile.load {{.*}} -> i32
// CHECK: %[[STEPS:.*]] = arith.select
// CHECK: scf.for {{.*}} to %[[STEPS]]
// CHECK: kgpu.tensor_load %arg0[
// CHECK: kgpu.tensor_load %arg1[
// CHECK: } consumers {
// CHECK-COUNT-2: tile.load {{.*}} -> i32
// CHECK: scf.for
// CHECK: kgpu.wgmma
// CHECK: tile.slice %arg4, 0
// CHECK-NOT: tensor_store
// CHECK: tile.store
tile.kernel @grouped(%a: !rows, %b: !matrices, %tiles: !tiles, %space: !space, %d: !out) {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %zeros = arith.constant dense<0.0> : tensor<128x128xf32>
  %count = tile.dim %space, 0 : !space
  %width = tile.dim %space, 1 : !space
  %columns = arith.ceildivsi %width, %c128 : index
  %groups = tile.dim %b, 0 : !matrices
  %depth = tile.dim %a, 1 : !rows
  %all = arith.ceildivsi %depth, %c64 : index
  tile.for_tiles (%t, %n) to (%count, %columns) {
    %g0 = tile.drop %tiles [0, 1] at (%t, %c0) : !tiles -> !tile.view<0xi32, index = 32>
    %r0 = tile.drop %tiles [0, 1] at (%t, %c1) : !tiles -> !tile.view<0xi32, index = 32>
    %e0 = tile.drop %tiles [0, 1] at (%t, %c2) : !tiles -> !tile.view<0xi32, index = 32>
    %g1 = tile.load %g0[] fill %none : !tile.view<0xi32, index = 32> -> i32
    %r1 = tile.load %r0[] fill %none : !tile.view<0xi32, index = 32> -> i32
    %e1 = tile.load %e0[] fill %none : !tile.view<0xi32, index = 32> -> i32
    %group = arith.index_cast %g1 : i32 to index
    %row = arith.index_cast %r1 : i32 to index
    %end = arith.index_cast %e1 : i32 to index
    %some = arith.cmpi slt, %row, %end : index
    %steps = arith.select %some, %all, %c0 : index
    %matrix = tile.drop %b [0] at (%group) : !matrices -> !rows
    %column = arith.muli %n, %c128 : index
    %sum = scf.for %k = %c0 to %steps step %c1 iter_args(%s = %zeros) -> (tensor<128x128xf32>) {
      %at = arith.muli %k, %c64 : index
      %x = tile.load %a[%row, %at] fill %zero : !rows -> tensor<128x64xbf16>
      %y = tile.load %matrix[%at, %column] fill %zero : !rows -> tensor<64x128xbf16>
      %p = tile.dot %x, %y, %s : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %p : tensor<128x128xf32>
    }
    %narrow = arith.truncf %sum : tensor<128x128xf32> to tensor<128x128xbf16>
    %own = tile.slice %d, 0 from %row to %end : !out -> !out
    tile.store %narrow, %own[%c0, %column] : tensor<128x128xbf16>, !out
  }
  tile.return
}
