// RUN: kpkg-opt --kgpu-alloc-smem %s | FileCheck %s

#p = #kgpu.layout<"lane *5 warp 0:1-2 rep 1">
#q = #kgpu.layout<"lane 0:1-16 warp *2 rep 8">
!out = !tile.view<1xf32, mut, unit = 0>

// The second buffer is written only after the last read of the first, so it may overlap with it. The third one overlaps
// with nothing, because it is small.
// CHECK-LABEL: tile.kernel @reuse
// CHECK-SAME: #kgpu.launch<{{[^>]*}}shared = 1040
// CHECK: kgpu.alloc offset 0 : !kgpu.smem<256xf32>
// CHECK: kgpu.alloc offset 0 : !kgpu.smem<256xf32>
// CHECK: kgpu.alloc offset 1024 : !kgpu.smem<4xf32>
tile.kernel @reuse(%y: !out) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %v = arith.constant dense<1.0> : tensor<4xf32, #p>
  %w = arith.constant dense<1.0> : tensor<256xf32, #q>
  %a = kgpu.alloc : !kgpu.smem<256xf32>
  kgpu.local_store %w, %a : tensor<256xf32, #q>, !kgpu.smem<256xf32>
  %r = kgpu.local_load %a : !kgpu.smem<256xf32> -> tensor<256xf32, #q>
  %b = kgpu.alloc : !kgpu.smem<256xf32>
  %c = kgpu.alloc : !kgpu.smem<4xf32>
  kgpu.local_store %r, %b : tensor<256xf32, #q>, !kgpu.smem<256xf32>
  kgpu.local_store %v, %c : tensor<4xf32, #p>, !kgpu.smem<4xf32>
  %s = kgpu.local_load %b : !kgpu.smem<256xf32> -> tensor<256xf32, #q>
  %t = kgpu.local_load %c : !kgpu.smem<4xf32> -> tensor<4xf32, #p>
  tile.store %s, %y[%c0] : tensor<256xf32, #q>, !out
  tile.store %t, %y[%c0] : tensor<4xf32, #p>, !out
  tile.return
}

// A buffer from before a loop that is read in the loop is live throughout the loop.
// CHECK-LABEL: tile.kernel @loop
// CHECK: kgpu.alloc offset 0 : !kgpu.smem<4xf32>
// CHECK: scf.for
// CHECK: kgpu.alloc offset 128 : !kgpu.smem<4xf32>
tile.kernel @loop(%y: !out, %n: index) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = arith.constant dense<1.0> : tensor<4xf32, #p>
  %a = kgpu.alloc : !kgpu.smem<4xf32>
  kgpu.local_store %v, %a : tensor<4xf32, #p>, !kgpu.smem<4xf32>
  scf.for %i = %c0 to %n step %c1 {
    %r = kgpu.local_load %a : !kgpu.smem<4xf32> -> tensor<4xf32, #p>
    %b = kgpu.alloc : !kgpu.smem<4xf32>
    kgpu.local_store %r, %b : tensor<4xf32, #p>, !kgpu.smem<4xf32>
    %t = kgpu.local_load %b : !kgpu.smem<4xf32> -> tensor<4xf32, #p>
    tile.store %t, %y[%c0] : tensor<4xf32, #p>, !out
  }
  tile.return
}

// The TMA may copy from the first buffer until the kernel ends, so the second one does not overlap with it.
#half = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">
!staging = !kgpu.smem<1x2x64x64xbf16, "2B 2:144,288,576,1024,2048,4096 3:2,4,8,16,32,64 rep 1x2x1x1 stride 0,8192,0,0">
!panel = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
// CHECK-LABEL: tile.kernel @copied
// CHECK: kgpu.alloc offset 0 : !kgpu.smem<1x2x64x64xbf16
// CHECK: kgpu.alloc offset 16384 : !kgpu.smem<256xf32>
tile.kernel @copied(%x: !panel, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, consumers = 1>, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [64, 64], swizzle = 128>]} {
  %c0 = arith.constant 0 : index
  %v = arith.constant dense<1.0> : tensor<64x64xbf16, #half>
  %w = arith.constant dense<1.0> : tensor<256xf32, #q>
  %a = kgpu.alloc : !staging
  kgpu.tensor_store %v, %x[%c0, %c0] map 0 through %a : tensor<64x64xbf16, #half>, !panel, !staging
  %b = kgpu.alloc : !kgpu.smem<256xf32>
  kgpu.local_store %w, %b : tensor<256xf32, #q>, !kgpu.smem<256xf32>
  %s = kgpu.local_load %b : !kgpu.smem<256xf32> -> tensor<256xf32, #q>
  tile.store %s, %y[%c0] : tensor<256xf32, #q>, !out
  tile.return
}
