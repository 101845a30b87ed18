// Tests stores that share two buffers. One of a single panel ends at the first buffer, so that no store may begin while
// the copy before it still reads.
// RUN: kpkg-opt --lower-nvvm %s | FileCheck %s

#acc = #kgpu.layout<"reg 1:1 0:8 1:8-64 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">
!staging = !kgpu.smem<1x2x64x64xbf16, "2B 2:144,288,576,1024,2048,4096 3:2,4,8,16,32,64 rep 1x2x1x1 stride 0,8192,0,0">
!rights = !kgpu.smem<8x64x128xbf16, "2B 1:144,288,576,1024,2048,4096 2:2,4,8,16,32,64 rep 8x1x2 stride 16384,0,8192">
!lefts = !kgpu.smem<8x64x64xbf16, "2B 1:144,288,576,1024,2048,4096 2:2,4,8,16,32,64 rep 8x1x1 stride 8192,0,0">
!right = !kgpu.smem<64x128xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x2 stride 0,8192">
!left = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!barriers = !kgpu.smem<2x8xi64>

#half = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">

// CHECK-LABEL: llvm.func @uneven
// CHECK: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK: nvvm.stmatrix
// CHECK: nvvm.cp.async.bulk.wait_group 1 {read}
// CHECK: nvvm.stmatrix
// CHECK: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK: nvvm.stmatrix
// CHECK: nvvm.cp.async.bulk.wait_group 0
tile.kernel @uneven(%arg0: !in, %arg1: !in, %arg2: !out, %narrow: !out, %arg3: index, %arg4: index, %arg5: index) attributes {kgpu.launch = #kgpu.launch<threads = 256, shared = 213120, consumers = 1>, kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 2, box = [64, 64], swizzle = 128>, #kgpu.tensor_map<arg = 0, box = [64, 64], swizzle = 128>, #kgpu.tensor_map<arg = 1, box = [64, 64], swizzle = 128>, #kgpu.tensor_map<arg = 3, box = [64, 64], swizzle = 128>]} {
  %c0_i32 = arith.constant 0 : i32
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c1_i32 = arith.constant 1 : i32
  %c8_i32 = arith.constant 8 : i32
  %0 = ub.poison : tensor<64x128xf32, #acc>
  %cst = arith.constant dense<0.000000e+00> : tensor<64x128xf32, #acc>
  %c64 = arith.constant 64 : index
  %1 = kgpu.alloc offset 196608 : !staging
  %2 = kgpu.alloc offset 131072 : !lefts
  %3 = kgpu.alloc offset 0 : !rights
  %4 = kgpu.alloc offset 212992 : !barriers
  %5 = kgpu.ring %4 : !barriers -> !kgpu.ring<8>
  kgpu.roles producer_warp {
    %6 = scf.for %arg6 = %c0 to %arg5 step %c1 iter_args(%arg7 = %c0_i32) -> (i32) {
      %7 = arith.muli %arg6, %c64 : index
      kgpu.acquire %5[%arg7] bytes 24576 : !kgpu.ring<8>
      %8 = arith.remui %arg7, %c8_i32 : i32
      %9 = arith.index_castui %8 : i32 to index
      %10 = kgpu.slot %2[%9] : !lefts -> !left
      kgpu.tensor_load %arg0[%arg3, %7] map 1 to %10 plus 0 signals %5[%arg7] : !in, !left, !kgpu.ring<8>
      %11 = kgpu.slot %3[%9] : !rights -> !right
      kgpu.tensor_load %arg1[%7, %arg4] map 2 to %11 plus 0 signals %5[%arg7] : !in, !right, !kgpu.ring<8>
      %12 = arith.addi %arg4, %c64 : index
      kgpu.tensor_load %arg1[%7, %12] map 2 to %11 plus 8192 signals %5[%arg7] : !in, !right, !kgpu.ring<8>
      %13 = arith.addi %arg7, %c1_i32 : i32
      scf.yield %13 : i32
    }
  } consumers {
    %6:2 = scf.for %arg6 = %c0 to %arg5 step %c1 iter_args(%arg7 = %0, %arg8 = %c0_i32) -> (tensor<64x128xf32, #acc>, i32) {
      kgpu.await %5[%arg8] : !kgpu.ring<8>
      %10 = arith.remui %arg8, %c8_i32 : i32
      %11 = arith.index_castui %10 : i32 to index
      %12 = kgpu.slot %2[%11] : !lefts -> !left
      %13 = kgpu.slot %3[%11] : !rights -> !right
      %14 = arith.cmpi ne, %arg6, %c0 : index
      %15 = kgpu.wgmma %12, %13, %arg7 adds %14 : !left, !right, tensor<64x128xf32, #acc>
      %16 = kgpu.wgmma_wait 0 %15 : tensor<64x128xf32, #acc> -> tensor<64x128xf32, #acc>
      kgpu.release %5[%arg8] : !kgpu.ring<8>
      %17 = arith.addi %arg8, %c1_i32 : i32
      scf.yield %16, %17 : tensor<64x128xf32, #acc>, i32
    }
    %7 = arith.cmpi sgt, %arg5, %c0 : index
    %8 = arith.select %7, %6#0, %cst : tensor<64x128xf32, #acc>
    %9 = arith.truncf %8 : tensor<64x128xf32, #acc> to tensor<64x128xbf16, #acc>
    kgpu.tensor_store %9, %arg2[%arg3, %arg4] map 0 through %1 : tensor<64x128xbf16, #acc>, !out, !staging
    %half = arith.constant dense<0.0> : tensor<64x64xbf16, #half>
    kgpu.tensor_store %half, %narrow[%arg3, %arg4] map 3 through %1 : tensor<64x64xbf16, #half>, !out, !staging
  }
  tile.return
}
