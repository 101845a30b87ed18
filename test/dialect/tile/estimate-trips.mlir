// Tests computed trip counts: loops from any start by any step, ends that are Int arguments, and ranges shared by
// blocks.
// RUN: kpkg-opt --pass-pipeline='builtin.module(tile.kernel(tile-estimate-cost))' %s | FileCheck %s

// From 1, in steps of 16 over a whole dimension, and from 3 to an Int argument, by 5.
// CHECK: tile.kernel @starts
// CHECK-SAME: tile_flops = "64*count(dim(0,0) -1 +) + 64*tiles(0,0,16) + 64*count(value(2) -3 + 5 ceildiv)"
tile.kernel @starts(%x: !tile.view<1xf32>, %y: !tile.view<1xf32, mut>, %n: index) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c16 = arith.constant 16 : index
  %v = tile.load %x[%c0] fill %zero : !tile.view<1xf32> -> tensor<64xf32>
  %dim = tile.dim %x, 0 : !tile.view<1xf32>
  %a = scf.for %i = %c1 to %dim step %c1 iter_args(%u = %v) -> tensor<64xf32> {
    %w = arith.mulf %u, %u : tensor<64xf32>
    scf.yield %w : tensor<64xf32>
  }
  %b = scf.for %i = %c0 to %dim step %c16 iter_args(%u = %a) -> tensor<64xf32> {
    %w = arith.mulf %u, %u : tensor<64xf32>
    scf.yield %w : tensor<64xf32>
  }
  %c = scf.for %i = %c3 to %n step %c5 iter_args(%u = %b) -> tensor<64xf32> {
    %w = arith.mulf %u, %u : tensor<64xf32>
    scf.yield %w : tensor<64xf32>
  }
  tile.store %c, %y[%c0] : tensor<64xf32>, !tile.view<1xf32, mut>
  tile.return
}

// ceildiv(ceildiv(n, 128), 4) in the simplified form of the prelude. An extent gives one division, and an argument
// gives two. A division by an argument stays as it is.
// CHECK: tile.kernel @nested
// CHECK-SAME: tile_flops = "64*tiles(0,0,512) + 64*count(value(2) 128 ceildiv 4 ceildiv) + 64*count(value(2) 3 // value(3) ceildiv)"
tile.kernel @nested(%x: !tile.view<1xf32>, %y: !tile.view<1xf32, mut>, %n: index, %each: index) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  %v = tile.load %x[%c0] fill %zero : !tile.view<1xf32> -> tensor<64xf32>
  %dim = tile.dim %x, 0 : !tile.view<1xf32>
  %0 = arith.subi %c0, %dim : index
  %1 = arith.floordivsi %0, %c128 : index
  %2 = arith.floordivsi %1, %c4 : index
  %3 = arith.subi %c0, %2 : index
  %a = scf.for %i = %c0 to %3 step %c1 iter_args(%u = %v) -> tensor<64xf32> {
    %w = arith.mulf %u, %u : tensor<64xf32>
    scf.yield %w : tensor<64xf32>
  }
  %4 = arith.subi %c0, %n : index
  %5 = arith.floordivsi %4, %c128 : index
  %6 = arith.floordivsi %5, %c4 : index
  %7 = arith.subi %c0, %6 : index
  %b = scf.for %i = %c0 to %7 step %c1 iter_args(%u = %a) -> tensor<64xf32> {
    %w = arith.mulf %u, %u : tensor<64xf32>
    scf.yield %w : tensor<64xf32>
  }
  %8 = arith.floordivsi %n, %c3 : index
  %9 = arith.subi %c0, %8 : index
  %10 = arith.floordivsi %9, %each : index
  %11 = arith.subi %c0, %10 : index
  %c = scf.for %i = %c0 to %11 step %c1 iter_args(%u = %b) -> tensor<64xf32> {
    %w = arith.mulf %u, %u : tensor<64xf32>
    scf.yield %w : tensor<64xf32>
  }
  tile.store %c, %y[%c0] : tensor<64xf32>, !tile.view<1xf32, mut>
  tile.return
}

// A block continues where another one stops, or takes turns with others. A choice counts as taken.
// CHECK: tile.kernel @shares
// CHECK-SAME: tile_flops = "64*count(value(2)) + 64*count(dim(0,0) grid(1) ceildiv) + 64*count(dim(0,0) value(2) max)"
tile.kernel @shares(%x: !tile.view<1xf32>, %y: !tile.view<1xf32, mut>, %each: index, %few: i1) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = tile.load %x[%c0] fill %zero : !tile.view<1xf32> -> tensor<64xf32>
  %dim = tile.dim %x, 0 : !tile.view<1xf32>
  %part = tile.block_id x
  %first = arith.muli %part, %each : index
  %next = arith.addi %first, %each : index
  %last = arith.minsi %dim, %next : index
  %a = scf.for %i = %first to %last step %c1 iter_args(%u = %v) -> tensor<64xf32> {
    %w = arith.mulf %u, %u : tensor<64xf32>
    scf.yield %w : tensor<64xf32>
  }
  %turn = tile.block_id y
  %turns = tile.grid_dim y
  %b = scf.for %i = %turn to %dim step %turns iter_args(%u = %a) -> tensor<64xf32> {
    %w = arith.mulf %u, %u : tensor<64xf32>
    scf.yield %w : tensor<64xf32>
  }
  %end = arith.select %few, %dim, %each : index
  %c = scf.for %i = %c0 to %end step %c1 iter_args(%u = %b) -> tensor<64xf32> {
    %w = arith.mulf %u, %u : tensor<64xf32>
    scf.yield %w : tensor<64xf32>
  }
  tile.store %c, %y[%c0] : tensor<64xf32>, !tile.view<1xf32, mut>
  tile.return
}

// The number of visible keys depends on the block, so there is no estimate.
// CHECK: tile.kernel @causal
// CHECK-SAME: no_estimate = "{{.*}}a loop whose number of iterations is no formula of shapes and of Int arguments"
tile.kernel @causal(%x: !tile.view<1xf32>, %y: !tile.view<1xf32, mut>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = tile.load %x[%c0] fill %zero : !tile.view<1xf32> -> tensor<64xf32>
  %dim = tile.dim %x, 0 : !tile.view<1xf32>
  %block = tile.block_id x
  %seen = arith.minsi %block, %dim : index
  %a = scf.for %i = %c0 to %seen step %c1 iter_args(%u = %v) -> tensor<64xf32> {
    %w = arith.mulf %u, %u : tensor<64xf32>
    scf.yield %w : tensor<64xf32>
  }
  tile.store %a, %y[%c0] : tensor<64xf32>, !tile.view<1xf32, mut>
  tile.return
}

// Tiles of numbers are counted by arguments.
// CHECK: tile.kernel @tiles_of_numbers
// CHECK-SAME: tiles = "1*count(value(2) 64 ceildiv)*count(value(3))"
tile.kernel @tiles_of_numbers(%x: !tile.view<2xf32>, %y: !tile.view<2xf32, mut>, %n: index, %m: index) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %0 = arith.subi %c0, %n : index
  %1 = arith.floordivsi %0, %c64 : index
  %2 = arith.subi %c0, %1 : index
  tile.for_tiles (%i, %j) to (%2, %m) {
    %v = tile.load %x[%i, %j] fill %zero : !tile.view<2xf32> -> tensor<1x64xf32>
    tile.store %v, %y[%i, %j] : tensor<1x64xf32>, !tile.view<2xf32, mut>
  }
  tile.return
}

// The trip count of a loop that a tile decides is not known before the launch.
// CHECK: tile.kernel @from_tile
// CHECK-SAME: no_estimate = "{{.*}}a loop whose number of iterations is no formula of shapes and of Int arguments"
tile.kernel @from_tile(%x: !tile.view<1xindex>, %y: !tile.view<1xf32, mut>) {
  %ones = arith.constant dense<1.0> : tensor<64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = tile.load %x[%c0] fill %c0 : !tile.view<1xindex> -> tensor<1xindex>
  %n = tile.scalar %v : tensor<1xindex> -> index
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%u = %ones) -> tensor<64xf32> {
    %w = arith.mulf %u, %u : tensor<64xf32>
    scf.yield %w : tensor<64xf32>
  }
  tile.store %a, %y[%c0] : tensor<64xf32>, !tile.view<1xf32, mut>
  tile.return
}
