// Tests warpgroup products of every element type: 32 bytes of depth per instruction. Only 16-bit elements may be
// transposed.
// RUN: kpkg-opt --lower-nvvm %s | FileCheck %s

#acc = #kgpu.layout<"reg 1:1 0:8 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">

// CHECK-LABEL: llvm.func @tf32
// CHECK: nvvm.wgmma.mma_async {{.*}}<m = 64, n = 8, k = 8>, D[<f32>, <one>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>]
// CHECK-COUNT-3: nvvm.wgmma.mma_async {{.*}}<tf32>
// CHECK-NOT: wgmma.mma_async
tile.kernel @tf32(%y: !tile.view<2xf32, mut>) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, shared = 9216, consumers = 1>} {
  %adds = arith.constant true
  %c0 = arith.constant 0 : index
  %zeros = arith.constant dense<0.0> : tensor<64x8xf32, #acc>
  %a = kgpu.alloc offset 0 : !kgpu.smem<64x32xf32, "4B 0:144,288,576,1024,2048,4096 1:4,8,16,32,64 rep 1x1">
  %b = kgpu.alloc offset 8192 : !kgpu.smem<32x8xf32, "4B 0:4,8,16,32,64 1:144,288,576 rep 1x1">
  kgpu.roles producer_warp {
    %none = arith.constant 0 : i32
  } consumers {
    %d = kgpu.wgmma %a, %b, %zeros adds %adds : !kgpu.smem<64x32xf32, "4B 0:144,288,576,1024,2048,4096 1:4,8,16,32,64 rep 1x1">, !kgpu.smem<32x8xf32, "4B 0:4,8,16,32,64 1:144,288,576 rep 1x1">, tensor<64x8xf32, #acc>
    %e = kgpu.wgmma_wait 0 %d : tensor<64x8xf32, #acc> -> tensor<64x8xf32, #acc>
    tile.store %e, %y[%c0, %c0] : tensor<64x8xf32, #acc>, !tile.view<2xf32, mut>
  }
  tile.return
}

// CHECK-LABEL: llvm.func @e4m3
// CHECK: nvvm.wgmma.mma_async {{.*}}<m = 64, n = 8, k = 32>, D[<f32>, <one>], A[<e4m3>, <one>, <row>], B[<e4m3>, <one>, <col>]
tile.kernel @e4m3(%y: !tile.view<2xf32, mut>) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, shared = 9216, consumers = 1>} {
  %adds = arith.constant true
  %c0 = arith.constant 0 : index
  %zeros = arith.constant dense<0.0> : tensor<64x8xf32, #acc>
  %a = kgpu.alloc offset 0 : !kgpu.smem<64x128xf8E4M3FN, "1B 0:144,288,576,1024,2048,4096 1:1,2,4,8,16,32,64 rep 1x1">
  %b = kgpu.alloc offset 8192 : !kgpu.smem<128x8xf8E4M3FN, "1B 0:1,2,4,8,16,32,64 1:144,288,576 rep 1x1">
  kgpu.roles producer_warp {
    %none = arith.constant 0 : i32
  } consumers {
    %d = kgpu.wgmma %a, %b, %zeros adds %adds : !kgpu.smem<64x128xf8E4M3FN, "1B 0:144,288,576,1024,2048,4096 1:1,2,4,8,16,32,64 rep 1x1">, !kgpu.smem<128x8xf8E4M3FN, "1B 0:1,2,4,8,16,32,64 1:144,288,576 rep 1x1">, tensor<64x8xf32, #acc>
    %e = kgpu.wgmma_wait 0 %d : tensor<64x8xf32, #acc> -> tensor<64x8xf32, #acc>
    tile.store %e, %y[%c0, %c0] : tensor<64x8xf32, #acc>, !tile.view<2xf32, mut>
  }
  tile.return
}

// CHECK-LABEL: llvm.func @s8
// CHECK: nvvm.wgmma.mma_async {{.*}}<m = 64, n = 8, k = 32>, D[<s32>, <one>], A[<s8>, <one>, <row>], B[<s8>, <one>, <col>]
tile.kernel @s8(%y: !tile.view<2xi32, mut>) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, shared = 9216, consumers = 1>} {
  %adds = arith.constant true
  %c0 = arith.constant 0 : index
  %zeros = arith.constant dense<0> : tensor<64x8xi32, #acc>
  %a = kgpu.alloc offset 0 : !kgpu.smem<64x128xi8, "1B 0:144,288,576,1024,2048,4096 1:1,2,4,8,16,32,64 rep 1x1">
  %b = kgpu.alloc offset 8192 : !kgpu.smem<128x8xi8, "1B 0:1,2,4,8,16,32,64 1:144,288,576 rep 1x1">
  kgpu.roles producer_warp {
    %none = arith.constant 0 : i32
  } consumers {
    %d = kgpu.wgmma %a, %b, %zeros adds %adds : !kgpu.smem<64x128xi8, "1B 0:144,288,576,1024,2048,4096 1:1,2,4,8,16,32,64 rep 1x1">, !kgpu.smem<128x8xi8, "1B 0:1,2,4,8,16,32,64 1:144,288,576 rep 1x1">, tensor<64x8xi32, #acc>
    %e = kgpu.wgmma_wait 0 %d : tensor<64x8xi32, #acc> -> tensor<64x8xi32, #acc>
    tile.store %e, %y[%c0, %c0] : tensor<64x8xi32, #acc>, !tile.view<2xi32, mut>
  }
  tile.return
}

// A left operand in registers: a lane holds four contiguous 8-bit elements, and those 16 columns after them.
// CHECK-LABEL: llvm.func @e4m3_left
// Two conversions fill a register at once.
// CHECK-COUNT-4: cvt.rn.satfinite.e4m3x2.f32 low, $2, $1; cvt.rn.satfinite.e4m3x2.f32 high, $4, $3; mov.b32 $0, {low, high};
// CHECK-NOT: cvt.rn.satfinite
// CHECK: wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {$0, $1, $2, $3}, {$8, $9, $10, $11}, $12, 1, 1, 1;
#sums = #kgpu.layout<"reg 1:1 0:8 1:8-16 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">
#split = #kgpu.layout<"reg 4:1 0:8 2:1 1:1 lane 3:1-2 0:1-4 warp 0:16-32 rep 1x1x1x1x1">
#moved = #kgpu.layout<"reg 4:1 0:8 3:1 1:1 lane 2:1-2 0:1-4 warp 0:16-32 rep 1x1x1x1x1">
#left = #kgpu.layout<"reg 1:1 0:8 1:2 1:16 lane 1:4-8 0:1-4 warp 0:16-32 rep 1x1">
tile.kernel @e4m3_left(%x: !tile.view<2xf32>, %y: !tile.view<2xf32, mut>) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, shared = 9216, consumers = 1>} {
  %adds = arith.constant true
  %c0 = arith.constant 0 : index
  %zeros = arith.constant dense<0.0> : tensor<64x8xf32, #acc>
  %b = kgpu.alloc offset 0 : !kgpu.smem<32x8xf8E4M3FN, "1B 0:1,2,4,8,16,32,64 1:144,288,576 rep 1x1">
  kgpu.roles producer_warp {
    %none = arith.constant 0 : i32
  } consumers {
    %fill = arith.constant 0.0 : f32
    %p = tile.load %x[%c0, %c0] fill %fill : !tile.view<2xf32> -> tensor<64x32xf32, #sums>
    %most = arith.constant dense<448.0> : tensor<64x32xf32, #sums>
    %least = arith.constant dense<-448.0> : tensor<64x32xf32, #sums>
    %below = arith.minimumf %p, %most : tensor<64x32xf32, #sums>
    %inside = arith.maximumf %below, %least : tensor<64x32xf32, #sums>
    %narrow = arith.truncf %inside : tensor<64x32xf32, #sums> to tensor<64x32xf8E4M3FN, #sums>
    %five = tile.reshape %narrow : tensor<64x32xf8E4M3FN, #sums> -> tensor<64x2x2x4x2xf8E4M3FN, #split>
    %turned = tile.permute %five [0, 1, 3, 2, 4] : tensor<64x2x2x4x2xf8E4M3FN, #split> -> tensor<64x2x4x2x2xf8E4M3FN, #moved>
    %a = tile.reshape %turned : tensor<64x2x4x2x2xf8E4M3FN, #moved> -> tensor<64x32xf8E4M3FN, #left>
    %d = kgpu.wgmma %a, %b, %zeros adds %adds : tensor<64x32xf8E4M3FN, #left>, !kgpu.smem<32x8xf8E4M3FN, "1B 0:1,2,4,8,16,32,64 1:144,288,576 rep 1x1">, tensor<64x8xf32, #acc>
    %e = kgpu.wgmma_wait 0 %d : tensor<64x8xf32, #acc> -> tensor<64x8xf32, #acc>
    tile.store %e, %y[%c0, %c0] : tensor<64x8xf32, #acc>, !tile.view<2xf32, mut>
  }
  tile.return
}
