// RUN: kpkg-opt --pass-pipeline='builtin.module(tile.kernel(tile-estimate-cost))' %s | FileCheck %s

// Rows wider than the tensor count the tensor's elements.
// CHECK: tile.kernel @row_sum
// CHECK-SAME: bytes = "4*blocks*clip(0,1,1024) + 4*blocks"
// CHECK-SAME: flops = "1*blocks*clip(0,1,1024)"
// CHECK-SAME: tile_flops = "1024"
tile.kernel @row_sum(%x: !tile.view<2xf32>, %y: !tile.view<1xf32, mut>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %v = tile.load %x[%row, %c0] fill %zero : !tile.view<2xf32> -> tensor<1x1024xf32>
  %s = tile.reduce sum %v axis 1 : tensor<1x1024xf32> -> tensor<1x1xf32>
  %r = tile.reshape %s : tensor<1x1xf32> -> tensor<1xf32>
  tile.store %r, %y[%row] : tensor<1xf32>, !tile.view<1xf32, mut>
  tile.return
}

// All tiles of m, n and k together count 2 * m * n * k operations. The operands are read once per tile of the other
// dimension.
// CHECK: tile.kernel @product
// CHECK-SAME: bytes = "4*dim(2,0)*tiles(2,1,64)*dim(0,1) + 4*tiles(2,0,32)*dim(2,1)*dim(0,1) + 4*dim(2,0)*dim(2,1)"
// CHECK-SAME: flops = "2*dim(2,0)*dim(2,1)*dim(0,1)"
// CHECK-SAME: tile_flops = "65536*tiles(0,1,16)"
// CHECK-SAME: tiles = "1*tiles(2,0,32)*tiles(2,1,64)"
tile.kernel @product(%a: !tile.view<2xf32>, %b: !tile.view<2xf32>, %d: !tile.view<2xf32, mut>) {
  %zero = arith.constant 0.0 : f32
  %acc0 = arith.constant dense<0.0> : tensor<32x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim %d, 0 : !tile.view<2xf32, mut>
  %n = tile.dim %d, 1 : !tile.view<2xf32, mut>
  %k = tile.dim %a, 1 : !tile.view<2xf32>
  %tm = arith.ceildivsi %m, %c32 : index
  %tn = arith.ceildivsi %n, %c64 : index
  %tk = arith.ceildivsi %k, %c16 : index
  tile.for_tiles (%i, %j) to (%tm, %tn) {
    %r = arith.muli %i, %c32 : index
    %c = arith.muli %j, %c64 : index
    %acc = scf.for %s = %c0 to %tk step %c1 iter_args(%acc1 = %acc0) -> tensor<32x64xf32> {
      %q = arith.muli %s, %c16 : index
      %x = tile.load %a[%r, %q] fill %zero : !tile.view<2xf32> -> tensor<32x16xf32>
      %y = tile.load %b[%q, %c] fill %zero : !tile.view<2xf32> -> tensor<16x64xf32>
      %p = tile.dot %x, %y, %acc1 : tensor<32x16xf32>, tensor<16x64xf32>, tensor<32x64xf32>
      scf.yield %p : tensor<32x64xf32>
    }
    tile.store %acc, %d[%r, %c] : tensor<32x64xf32>, !tile.view<2xf32, mut>
  }
  tile.return
}

// Split-K: each tile covers its share of k.
// CHECK: tile.kernel @parts
// CHECK-SAME: bytes = "4*dim(1,0)/dim(1,0)*dim(0,1) + 4*dim(1,0)*clip(1,1,16)"
// CHECK-SAME: flops = "1*dim(1,0)/dim(1,0)*dim(0,1)"
// CHECK-SAME: tile_flops = "16/dim(1,0)*tiles(0,1,16)"
// CHECK-SAME: tiles = "1*dim(1,0)"
tile.kernel @parts(%a: !tile.view<2xf32>, %d: !tile.view<2xf32, mut>) {
  %zero = arith.constant 0.0 : f32
  %acc0 = arith.constant dense<0.0> : tensor<1x16xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %parts = tile.dim %d, 0 : !tile.view<2xf32, mut>
  %k = tile.dim %a, 1 : !tile.view<2xf32>
  %tk = arith.ceildivsi %k, %c16 : index
  %steps = arith.ceildivsi %tk, %parts : index
  tile.for_tiles (%i) to (%parts) {
    %first = arith.muli %i, %steps : index
    %acc = scf.for %s = %c0 to %steps step %c1 iter_args(%acc1 = %acc0) -> tensor<1x16xf32> {
      %step = arith.addi %first, %s : index
      %q = arith.muli %step, %c16 : index
      %x = tile.load %a[%c0, %q] fill %zero : !tile.view<2xf32> -> tensor<1x16xf32>
      %p = arith.addf %x, %acc1 : tensor<1x16xf32>
      scf.yield %p : tensor<1x16xf32>
    }
    tile.store %acc, %d[%i, %c0] : tensor<1x16xf32>, !tile.view<2xf32, mut>
  }
  tile.return
}

// CHECK: tile.kernel @unknown
// CHECK-NOT: flops
tile.kernel @unknown(%x: !tile.view<1xf32, mut>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tile.block_id x
  scf.for %i = %c0 to %n step %c1 {
    %v = tile.load %x[%i] fill %zero : !tile.view<1xf32, mut> -> tensor<16xf32>
    tile.store %v, %x[%i] : tensor<16xf32>, !tile.view<1xf32, mut>
  }
  tile.return
}

// Steps of steps, rounded up twice, equal one division rounded up by their product.
// CHECK: tile.kernel @steps_of_steps
// CHECK-SAME: tile_flops = "64*tiles(0,1,512)"
tile.kernel @steps_of_steps(%a: !tile.view<2xf32>, %d: !tile.view<2xf32, mut>) {
  %zero = arith.constant 0.0 : f32
  %sum0 = arith.constant dense<0.0> : tensor<1x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  %k = tile.dim %a, 1 : !tile.view<2xf32>
  %inner = arith.ceildivsi %k, %c128 : index
  %steps = arith.ceildivsi %inner, %c4 : index
  %row = tile.block_id x
  %sum = scf.for %s = %c0 to %steps step %c1 iter_args(%sum1 = %sum0) -> tensor<1x64xf32> {
    %x = tile.load %a[%row, %s] fill %zero : !tile.view<2xf32> -> tensor<1x64xf32>
    %next = arith.addf %sum1, %x : tensor<1x64xf32>
    scf.yield %next : tensor<1x64xf32>
  }
  tile.store %sum, %d[%row, %c0] : tensor<1x64xf32>, !tile.view<2xf32, mut>
  tile.return
}
