// Tests setmaxnreg: registers move from the producer warpgroup to the consumers, no more than the CTA starts with. 640
// threads start with 96 registers each. 56 + 4 * 104 is less than 5 * 96; with 112 the last warpgroup would wait
// forever.
// RUN: kpkg-opt --lower-nvvm %s | FileCheck %s

#acc = #kgpu.layout<"reg 1:1 0:8 1:8-64 lane 1:2-4 0:1-4 warp 0:16-128 rep 1x1">

// CHECK-LABEL: llvm.func @four
// CHECK: nvvm.setmaxregister decrease 56
// CHECK: nvvm.setmaxregister increase 104
tile.kernel @four(%y: !tile.view<2xf32, mut>) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 640, shared = 40960, consumers = 4>} {
  %adds = arith.constant true
  %c0 = arith.constant 0 : index
  %zeros = arith.constant dense<0.0> : tensor<256x128xf32, #acc>
  %a = kgpu.alloc offset 0 : !kgpu.smem<256x64xbf16, "2B 0:144,288,576,1024,2048,4096,8192,16384 1:2,4,8,16,32,64 rep 1x1">
  %b = kgpu.alloc offset 0 : !kgpu.smem<64x128xbf16, "2B 0:2,4,8,16,32,64 1:144,288,576,1024,2048,4096,8192 rep 1x1">
  kgpu.roles producer_warp {
    %none = arith.constant 0 : i32
  } consumers {
    %d = kgpu.wgmma %a, %b, %zeros adds %adds : !kgpu.smem<256x64xbf16, "2B 0:144,288,576,1024,2048,4096,8192,16384 1:2,4,8,16,32,64 rep 1x1">, !kgpu.smem<64x128xbf16, "2B 0:2,4,8,16,32,64 1:144,288,576,1024,2048,4096,8192 rep 1x1">, tensor<256x128xf32, #acc>
    %e = kgpu.wgmma_wait 0 %d : tensor<256x128xf32, #acc> -> tensor<256x128xf32, #acc>
    tile.store %e, %y[%c0, %c0] : tensor<256x128xf32, #acc>, !tile.view<2xf32, mut>
  }
  tile.return
}

#sum = #kgpu.layout<"reg 1:1 0:8 1:8-64 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">

// Each of two CTAs of an SM has half of the registers: 128 a thread for 256 threads.
// CHECK-LABEL: llvm.func @two_of_an_sm
// CHECK-SAME: nvvm.minctasm = 2
// CHECK: nvvm.setmaxregister decrease 56
// CHECK: nvvm.setmaxregister increase 200
tile.kernel @two_of_an_sm(%y: !tile.view<2xf32, mut>)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, min_ctas = 2, shared = 24576, consumers = 1>} {
  %adds = arith.constant true
  %c0 = arith.constant 0 : index
  %zeros = arith.constant dense<0.0> : tensor<64x128xf32, #sum>
  %a = kgpu.alloc offset 0 : !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
  %b = kgpu.alloc offset 8192 : !kgpu.smem<64x128xbf16, "2B 0:2,4,8,16,32,64 1:144,288,576,1024,2048,4096,8192 rep 1x1">
  kgpu.roles producer_warp {
    %none = arith.constant 0 : i32
  } consumers {
    %d = kgpu.wgmma %a, %b, %zeros adds %adds : !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">, !kgpu.smem<64x128xbf16, "2B 0:2,4,8,16,32,64 1:144,288,576,1024,2048,4096,8192 rep 1x1">, tensor<64x128xf32, #sum>
    %e = kgpu.wgmma_wait 0 %d : tensor<64x128xf32, #sum> -> tensor<64x128xf32, #sum>
    tile.store %e, %y[%c0, %c0] : tensor<64x128xf32, #sum>, !tile.view<2xf32, mut>
  }
  tile.return
}
