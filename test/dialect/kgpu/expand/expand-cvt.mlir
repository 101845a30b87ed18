// RUN: kpkg-opt --kgpu-expand-cvt %s | FileCheck %s
// RUN: kpkg-opt --kgpu-expand-cvt --kgpu-alloc-smem --kgpu-insert-barriers --lower-nvvm %s | FileCheck %s --check-prefix=LLVM

#rows = #kgpu.layout<"reg 1:1-2 lane 1:4-16 0:1-2 warp 0:4 rep 1x1">
#columns = #kgpu.layout<"reg 0:1-2 lane 0:4 1:1-8 warp 1:16 rep 1x1">
#swapped = #kgpu.layout<"reg 1:4 1:2 lane 1:1 1:8-16 0:1-2 warp 0:4 rep 1x1">
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// CHECK: #[[COLUMNS:.*]] = #kgpu.layout<"reg 0:1-2 lane 0:4 1:1-8 warp 1:16 rep 1x1">
// CHECK-LABEL: tile.kernel @between_warps
// CHECK: %[[ROWS:.*]] = tile.load
// CHECK: %[[MEMORY:.*]] = kgpu.alloc : !kgpu.smem<8x32xf32, "4B 0:{{.*}} 1:{{.*}} rep 1x1">
// CHECK: kgpu.local_store %[[ROWS]], %[[MEMORY]]
// CHECK: %[[RESULT:.*]] = kgpu.local_load %[[MEMORY]] : {{.*}} -> tensor<8x32xf32, #[[COLUMNS]]>
// CHECK: tile.store %[[RESULT]]
// LLVM: llvm.func @between_warps
// LLVM: llvm.store {{.*}} !llvm.ptr<3>
// LLVM: nvvm.barrier
// LLVM: llvm.load {{.*}} !llvm.ptr<3>
tile.kernel @between_warps(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<8x32xf32, #rows>
  %w = kgpu.cvt_layout %v : tensor<8x32xf32, #rows> -> tensor<8x32xf32, #columns>
  tile.store %w, %y[%c0, %c0] : tensor<8x32xf32, #columns>, !out
  tile.return
}

// Two of four registers move to the adjacent lane: shuffles are cheaper.
// CHECK-LABEL: tile.kernel @between_lanes
// CHECK-NOT: kgpu.alloc
// CHECK: kgpu.cvt_layout
// LLVM: llvm.func @between_lanes
// LLVM: nvvm.shfl.sync {{ *}}bfly
tile.kernel @between_lanes(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<8x32xf32, #rows>
  %w = kgpu.cvt_layout %v : tensor<8x32xf32, #rows> -> tensor<8x32xf32, #swapped>
  tile.store %w, %y[%c0, %c0] : tensor<8x32xf32, #swapped>, !out
  tile.return
}

// Most of an accumulator moves to other lanes: shared memory is cheaper, but kernels with roles have none for scatters.
// CHECK-LABEL: tile.kernel @of_a_product
// CHECK: kgpu.local_load
// CHECK-LABEL: tile.kernel @of_a_product_with_roles
// CHECK-NOT: kgpu.alloc
// CHECK: kgpu.cvt_layout
#sum = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">
#vectors = #kgpu.layout<"reg 1:1 0:8 1:2-4 1:32 lane 1:8-16 0:1-4 warp 0:16-32 rep 1x1">
!halves = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @of_a_product(%y: !halves) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %v = arith.constant dense<0.0> : tensor<64x64xbf16, #sum>
  %i = arith.constant dense<0> : tensor<64x64xindex, #vectors>
  %w = kgpu.cvt_layout %v : tensor<64x64xbf16, #sum> -> tensor<64x64xbf16, #vectors>
  tile.scatter %w, %y[%i, %i] : tensor<64x64xbf16, #vectors>, !halves, tensor<64x64xindex, #vectors>
  tile.return
}

tile.kernel @of_a_product_with_roles(%y: !halves) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, consumers = 1>} {
  %v = arith.constant dense<0.0> : tensor<64x64xbf16, #sum>
  %i = arith.constant dense<0> : tensor<64x64xindex, #vectors>
  %w = kgpu.cvt_layout %v : tensor<64x64xbf16, #sum> -> tensor<64x64xbf16, #vectors>
  tile.scatter %w, %y[%i, %i] : tensor<64x64xbf16, #vectors>, !halves, tensor<64x64xindex, #vectors>
  tile.return
}

#small = #kgpu.layout<"reg 1:1-2 lane 1:4-8 0:1-2 * warp * rep 1x1">
#long = #kgpu.layout<"lane 0:1-16 warp 0:32 rep 1">
!short = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!line = !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 4, index = 32>

// 12 is no power of two: no layout of rows keeps its elements in place in one line.
// CHECK-LABEL: tile.kernel @reshape
// CHECK: %[[V:.*]] = tile.load
// CHECK: %[[MEMORY:.*]] = kgpu.alloc : !kgpu.smem<4x12xf32>
// CHECK: kgpu.local_store %[[V]], %[[MEMORY]]
// CHECK: %[[LINE:.*]] = kgpu.reshape_buffer %[[MEMORY]] : !kgpu.smem<4x12xf32> -> !kgpu.smem<48xf32>
// CHECK: %[[W:.*]] = kgpu.local_load %[[LINE]]
// CHECK: tile.store %[[W]]
// LLVM: llvm.func @reshape
// LLVM-COUNT-4: llvm.store {{.*}} : i32, !llvm.ptr<3>
// LLVM: nvvm.barrier
// LLVM: llvm.load {{.*}} : !llvm.ptr<3> -> i32
tile.kernel @reshape(%x: !short, %y: !line) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !short -> tensor<4x12xf32, #small>
  %w = tile.reshape %v : tensor<4x12xf32, #small> -> tensor<48xf32, #long>
  tile.store %w, %y[%c0] : tensor<48xf32, #long>, !line
  tile.return
}

// 16 columns suit: the rows are converted to the layout of the line first.
// CHECK-LABEL: tile.kernel @fitting
// CHECK: %[[V:.*]] = tile.load
// CHECK: tile.reshape %[[V]]
// CHECK-NOT: tile.reshape
// CHECK: kgpu.local_load
// LLVM: llvm.func @fitting
tile.kernel @fitting(%x: !short, %y: !line) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !short -> tensor<4x16xf32, #small>
  %w = tile.reshape %v : tensor<4x16xf32, #small> -> tensor<64xf32, #long>
  tile.store %w, %y[%c0] : tensor<64xf32, #long>, !line
  tile.return
}
