// Checks groups of four rows, if the column of a tile decides the trip count of a loop with a product.
// RUN: kpkg-opt --kgpu-configure=chip=sm_90a --kgpu-schedule-tiles %s | FileCheck %s

!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!ends = !tile.view<1xi32, unit = 0, index = 32>
!end = !tile.view<0xi32, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// CHECK-LABEL: tile.kernel @groups
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : index
// CHECK: arith.muli %{{.*}}, %[[FOUR]] : index
tile.kernel @groups(%a: !in, %b: !in, %e: !ends, %d: !out) attributes {schedule = #tile.schedule<stages = 4>} {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant 0 : i32
  %zeros = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %d, 0 : !out
  %columns = tile.dim %d, 1 : !out
  %tm = arith.ceildivsi %rows, %c128 : index
  %tn = arith.ceildivsi %columns, %c128 : index
  tile.for_tiles (%i, %j) to (%tm, %tn) {
    %m = arith.muli %i, %c128 : index
    %n = arith.muli %j, %c128 : index
    %last = tile.drop %e [0] at (%j) : !ends -> !end
    %l32 = tile.load %last[] fill %none : !end -> i32
    %l = arith.index_cast %l32 : i32 to index
    %sum = scf.for %k = %c0 to %l step %c2 iter_args(%x = %zeros) -> tensor<128x128xf32> {
      %k0 = arith.muli %k, %c64 : index
      %next = arith.addi %k, %c1 : index
      %k1 = arith.muli %next, %c64 : index
      %a0 = tile.load %a[%m, %k0] fill %zero : !in -> tensor<128x64xbf16>
      %b0 = tile.load %b[%k0, %n] fill %zero : !in -> tensor<64x128xbf16>
      %s0 = tile.dot %a0, %b0, %x : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      %a1 = tile.load %a[%m, %k1] fill %zero : !in -> tensor<128x64xbf16>
      %b1 = tile.load %b[%k1, %n] fill %zero : !in -> tensor<64x128xbf16>
      %s1 = tile.dot %a1, %b1, %s0 : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %s1 : tensor<128x128xf32>
    }
    %r = arith.truncf %sum : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %r, %d[%m, %n] : tensor<128x128xbf16>, !out
  }
  tile.return
}
