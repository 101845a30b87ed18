// RUN: kpkg-opt --kgpu-expand-reductions %s | FileCheck %s
// RUN: kpkg-opt --kgpu-expand-reductions --kgpu-alloc-smem --kgpu-insert-barriers --lower-nvvm %s | FileCheck %s --check-prefix=LLVM

#row = #kgpu.layout<"reg 1:1-4 lane 1:8-128 warp 1:256-512 rep 1x1">
#all = #kgpu.layout<"lane *5 warp *2 rep 1x1">
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4>
!out = !tile.view<2xf32, mut, unit = 1>

// CHECK: #[[ROWS:.*]] = #kgpu.layout<"reg 1:1-4 lane 1:8-128 warp 1:256-512 rep 1x1">
// CHECK: #[[PARTS:.*]] = #kgpu.layout<"lane *5 warp 1:1-2 rep 1x1">
// CHECK: #[[GATHER:.*]] = #kgpu.layout<"lane 1:1-2 *3 warp *2 rep 1x1">
// CHECK-LABEL: tile.kernel @sum
// CHECK: %[[PART:.*]] = kgpu.partial_reduce sum %{{.*}} axis 1 : tensor<1x1024xf32, #[[ROWS]]> -> tensor<1x4xf32, #[[PARTS]]>
// CHECK: %[[MEMORY:.*]] = kgpu.alloc : !kgpu.smem<1x4xf32>
// CHECK: kgpu.local_store %[[PART]], %[[MEMORY]]
// CHECK: %[[ALL:.*]] = kgpu.local_load %[[MEMORY]] : !kgpu.smem<1x4xf32> -> tensor<1x4xf32, #[[GATHER]]>
// CHECK: tile.reduce sum %[[ALL]] axis 1
// LLVM: llvm.func @sum
// LLVM: nvvm.barrier
// LLVM-NOT: nvvm.barrier
// LLVM: llvm.func @both
tile.kernel @sum(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %v = tile.load %x[%row, %c0] fill %zero : !in -> tensor<1x1024xf32, #row>
  %s = tile.reduce sum %v axis 1 : tensor<1x1024xf32, #row> -> tensor<1x1xf32, #all>
  tile.store %s, %y[%row, %c0] : tensor<1x1xf32, #all>, !out
  tile.return
}

// A reduction of two values shares the warps' work; each value has its own buffer.
// CHECK-LABEL: tile.kernel @both
// CHECK: %[[P:.*]]:2 = kgpu.partial_combine
// CHECK: kgpu.yield
// CHECK-COUNT-2: kgpu.local_store
// CHECK: tile.combine(%{{.*}}, %{{.*}} : tensor<1x4xf32, {{.*}}>, tensor<1x4xf32, {{.*}}>) axis 1
// CHECK: tile.yield
tile.kernel @both(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %v = tile.load %x[%row, %c0] fill %zero : !in -> tensor<1x1024xf32, #row>
  %r:2 = tile.combine (%v, %v : tensor<1x1024xf32, #row>, tensor<1x1024xf32, #row>) axis 1 init (%zero, %low : f32, f32)
      -> tensor<1x1xf32, #all>, tensor<1x1xf32, #all> {
  ^bb0(%la: f32, %lb: f32, %ra: f32, %rb: f32):
    %s = arith.addf %la, %ra : f32
    %m = arith.maximumf %lb, %rb : f32
    tile.yield %s, %m : f32, f32
  }
  %t = arith.addf %r#0, %r#1 : tensor<1x1xf32, #all>
  tile.store %t, %y[%row, %c0] : tensor<1x1xf32, #all>, !out
  tile.return
}
