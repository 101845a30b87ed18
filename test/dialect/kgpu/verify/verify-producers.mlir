// Checks three roles: a producer warp copies, a producer warpgroup computes tiles, and consumers read those.
// RUN: kpkg-opt --kgpu-verify-schedule --split-input-file --verify-diagnostics %s

// All roles agree.
#acc = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">
!slots = !kgpu.smem<1x64x64xbf16, "2B 1:144,288,576,1024,2048,4096 2:2,4,8,16,32,64 rep 1x1x1">
!slot = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!one = !kgpu.ring<1>

tile.kernel @agree(%x: !in) attributes {kgpu.launch = #kgpu.launch<threads = 384, shared = 24624, consumers = 1, producers = 1>, kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [64, 64], swizzle = 128>]} {
  %c0 = arith.constant 0 : index
  %use = arith.constant 0 : i32
  %t = arith.constant dense<0.000000e+00> : tensor<64x64xbf16, #acc>
  %0 = kgpu.alloc offset 0 : !slots
  %1 = kgpu.alloc offset 8192 : !slots
  %2 = kgpu.alloc offset 16384 : !slots
  %3 = kgpu.alloc offset 24576 : !kgpu.smem<2x1xi64>
  %4 = kgpu.alloc offset 24592 : !kgpu.smem<2x1xi64>
  %5 = kgpu.alloc offset 24608 : !kgpu.smem<2x1xi64>
  %a = kgpu.ring %3 : !kgpu.smem<2x1xi64> -> !one
  %b = kgpu.ring %4 : !kgpu.smem<2x1xi64> -> !one
  %c = kgpu.ring published %5 : !kgpu.smem<2x1xi64> -> !one
  kgpu.roles producer_warp {
    kgpu.acquire %a[%use] bytes 8192 : !one
    %p = kgpu.slot %0[%c0] : !slots -> !slot
    kgpu.tensor_load %x[%c0, %c0] map 0 to %p plus 0 signals %a[%use] : !in, !slot, !one
    kgpu.acquire %b[%use] bytes 8192 : !one
    %q = kgpu.slot %1[%c0] : !slots -> !slot
    kgpu.tensor_load %x[%c0, %c0] map 0 to %q plus 0 signals %b[%use] : !in, !slot, !one
  } consumers {
    kgpu.await %a[%use] : !one
    kgpu.release %a[%use] : !one
    kgpu.await %c[%use] : !one
    %s = kgpu.slot %2[%c0] : !slots -> !slot
    %r = kgpu.local_load %s : !slot -> tensor<64x64xbf16, #acc>
    kgpu.release %c[%use] : !one
  } producers {
    kgpu.await %b[%use] : !one
    kgpu.release %b[%use] : !one
    %s = kgpu.slot %2[%c0] : !slots -> !slot
    kgpu.publish %t to %s signals %c[%use] : tensor<64x64xbf16, #acc>, !slot, !one
  }
  tile.return
}

// -----

// Any two roles agree, but all three wait for each other.
#acc = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">
!slots = !kgpu.smem<1x64x64xbf16, "2B 1:144,288,576,1024,2048,4096 2:2,4,8,16,32,64 rep 1x1x1">
!slot = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!one = !kgpu.ring<1>

tile.kernel @circle(%x: !in) attributes {kgpu.launch = #kgpu.launch<threads = 384, shared = 24624, consumers = 1, producers = 1>, kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [64, 64], swizzle = 128>]} {
  %c0 = arith.constant 0 : index
  %use = arith.constant 0 : i32
  %t = arith.constant dense<0.000000e+00> : tensor<64x64xbf16, #acc>
  %0 = kgpu.alloc offset 0 : !slots
  %1 = kgpu.alloc offset 8192 : !slots
  %2 = kgpu.alloc offset 16384 : !slots
  %3 = kgpu.alloc offset 24576 : !kgpu.smem<2x1xi64>
  %4 = kgpu.alloc offset 24592 : !kgpu.smem<2x1xi64>
  %5 = kgpu.alloc offset 24608 : !kgpu.smem<2x1xi64>
  %a = kgpu.ring %3 : !kgpu.smem<2x1xi64> -> !one
  %b = kgpu.ring %4 : !kgpu.smem<2x1xi64> -> !one
  %c = kgpu.ring published %5 : !kgpu.smem<2x1xi64> -> !one
  // expected-error @+1 {{has three roles that wait for each other}}
  kgpu.roles producer_warp {
    kgpu.acquire %a[%use] bytes 8192 : !one
    %p = kgpu.slot %0[%c0] : !slots -> !slot
    kgpu.tensor_load %x[%c0, %c0] map 0 to %p plus 0 signals %a[%use] : !in, !slot, !one
    kgpu.acquire %b[%use] bytes 8192 : !one
    %q = kgpu.slot %1[%c0] : !slots -> !slot
    kgpu.tensor_load %x[%c0, %c0] map 0 to %q plus 0 signals %b[%use] : !in, !slot, !one
  } consumers {
    kgpu.await %c[%use] : !one
    %s = kgpu.slot %2[%c0] : !slots -> !slot
    %r = kgpu.local_load %s : !slot -> tensor<64x64xbf16, #acc>
    kgpu.release %c[%use] : !one
    kgpu.await %a[%use] : !one
    kgpu.release %a[%use] : !one
  } producers {
    kgpu.await %b[%use] : !one
    kgpu.release %b[%use] : !one
    %s = kgpu.slot %2[%c0] : !slots -> !slot
    kgpu.publish %t to %s signals %c[%use] : tensor<64x64xbf16, #acc>, !slot, !one
  }
  tile.return
}

// -----

// No role consumes the tile.
#acc = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">
!slots = !kgpu.smem<1x64x64xbf16, "2B 1:144,288,576,1024,2048,4096 2:2,4,8,16,32,64 rep 1x1x1">
!slot = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!one = !kgpu.ring<1>

tile.kernel @left(%x: !in) attributes {kgpu.launch = #kgpu.launch<threads = 384, shared = 24624, consumers = 1, producers = 1>, kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [64, 64], swizzle = 128>]} {
  %c0 = arith.constant 0 : index
  %use = arith.constant 0 : i32
  %t = arith.constant dense<0.000000e+00> : tensor<64x64xbf16, #acc>
  %0 = kgpu.alloc offset 0 : !slots
  %1 = kgpu.alloc offset 8192 : !slots
  %2 = kgpu.alloc offset 16384 : !slots
  %3 = kgpu.alloc offset 24576 : !kgpu.smem<2x1xi64>
  %4 = kgpu.alloc offset 24592 : !kgpu.smem<2x1xi64>
  %5 = kgpu.alloc offset 24608 : !kgpu.smem<2x1xi64>
  %a = kgpu.ring %3 : !kgpu.smem<2x1xi64> -> !one
  %b = kgpu.ring %4 : !kgpu.smem<2x1xi64> -> !one
  // expected-error @+1 {{is filled with tiles that nobody takes}}
  %c = kgpu.ring published %5 : !kgpu.smem<2x1xi64> -> !one
  kgpu.roles producer_warp {
    kgpu.acquire %a[%use] bytes 8192 : !one
    %p = kgpu.slot %0[%c0] : !slots -> !slot
    kgpu.tensor_load %x[%c0, %c0] map 0 to %p plus 0 signals %a[%use] : !in, !slot, !one
    kgpu.acquire %b[%use] bytes 8192 : !one
    %q = kgpu.slot %1[%c0] : !slots -> !slot
    kgpu.tensor_load %x[%c0, %c0] map 0 to %q plus 0 signals %b[%use] : !in, !slot, !one
  } consumers {
    kgpu.await %a[%use] : !one
    kgpu.release %a[%use] : !one
  } producers {
    kgpu.await %b[%use] : !one
    kgpu.release %b[%use] : !one
    %s = kgpu.slot %2[%c0] : !slots -> !slot
    kgpu.publish %t to %s signals %c[%use] : tensor<64x64xbf16, #acc>, !slot, !one
  }
  tile.return
}

// -----

// No role publishes the tile.
#acc = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">
!slots = !kgpu.smem<1x64x64xbf16, "2B 1:144,288,576,1024,2048,4096 2:2,4,8,16,32,64 rep 1x1x1">
!slot = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!one = !kgpu.ring<1>

tile.kernel @awaited(%x: !in) attributes {kgpu.launch = #kgpu.launch<threads = 384, shared = 24624, consumers = 1, producers = 1>, kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [64, 64], swizzle = 128>]} {
  %c0 = arith.constant 0 : index
  %use = arith.constant 0 : i32
  %t = arith.constant dense<0.000000e+00> : tensor<64x64xbf16, #acc>
  %0 = kgpu.alloc offset 0 : !slots
  %1 = kgpu.alloc offset 8192 : !slots
  %2 = kgpu.alloc offset 16384 : !slots
  %3 = kgpu.alloc offset 24576 : !kgpu.smem<2x1xi64>
  %4 = kgpu.alloc offset 24592 : !kgpu.smem<2x1xi64>
  %5 = kgpu.alloc offset 24608 : !kgpu.smem<2x1xi64>
  %a = kgpu.ring %3 : !kgpu.smem<2x1xi64> -> !one
  %b = kgpu.ring %4 : !kgpu.smem<2x1xi64> -> !one
  // expected-error @+1 {{is read by a role, and filled by none}}
  %c = kgpu.ring published %5 : !kgpu.smem<2x1xi64> -> !one
  kgpu.roles producer_warp {
    kgpu.acquire %a[%use] bytes 8192 : !one
    %p = kgpu.slot %0[%c0] : !slots -> !slot
    kgpu.tensor_load %x[%c0, %c0] map 0 to %p plus 0 signals %a[%use] : !in, !slot, !one
    kgpu.acquire %b[%use] bytes 8192 : !one
    %q = kgpu.slot %1[%c0] : !slots -> !slot
    kgpu.tensor_load %x[%c0, %c0] map 0 to %q plus 0 signals %b[%use] : !in, !slot, !one
  } consumers {
    kgpu.await %a[%use] : !one
    kgpu.release %a[%use] : !one
    kgpu.await %c[%use] : !one
    %s = kgpu.slot %2[%c0] : !slots -> !slot
    %r = kgpu.local_load %s : !slot -> tensor<64x64xbf16, #acc>
    kgpu.release %c[%use] : !one
  } producers {
    kgpu.await %b[%use] : !one
    kgpu.release %b[%use] : !one
  }
  tile.return
}

// -----

// The tile is read after its slot has been released.
#acc = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">
!slots = !kgpu.smem<1x64x64xbf16, "2B 1:144,288,576,1024,2048,4096 2:2,4,8,16,32,64 rep 1x1x1">
!slot = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!one = !kgpu.ring<1>

tile.kernel @late(%x: !in) attributes {kgpu.launch = #kgpu.launch<threads = 384, shared = 24624, consumers = 1, producers = 1>, kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [64, 64], swizzle = 128>]} {
  %c0 = arith.constant 0 : index
  %use = arith.constant 0 : i32
  %t = arith.constant dense<0.000000e+00> : tensor<64x64xbf16, #acc>
  %0 = kgpu.alloc offset 0 : !slots
  %1 = kgpu.alloc offset 8192 : !slots
  %2 = kgpu.alloc offset 16384 : !slots
  %3 = kgpu.alloc offset 24576 : !kgpu.smem<2x1xi64>
  %4 = kgpu.alloc offset 24592 : !kgpu.smem<2x1xi64>
  %5 = kgpu.alloc offset 24608 : !kgpu.smem<2x1xi64>
  %a = kgpu.ring %3 : !kgpu.smem<2x1xi64> -> !one
  %b = kgpu.ring %4 : !kgpu.smem<2x1xi64> -> !one
  %c = kgpu.ring published %5 : !kgpu.smem<2x1xi64> -> !one
  kgpu.roles producer_warp {
    kgpu.acquire %a[%use] bytes 8192 : !one
    %p = kgpu.slot %0[%c0] : !slots -> !slot
    kgpu.tensor_load %x[%c0, %c0] map 0 to %p plus 0 signals %a[%use] : !in, !slot, !one
    kgpu.acquire %b[%use] bytes 8192 : !one
    %q = kgpu.slot %1[%c0] : !slots -> !slot
    kgpu.tensor_load %x[%c0, %c0] map 0 to %q plus 0 signals %b[%use] : !in, !slot, !one
  } consumers {
    kgpu.await %a[%use] : !one
    kgpu.release %a[%use] : !one
    kgpu.await %c[%use] : !one
    %s = kgpu.slot %2[%c0] : !slots -> !slot
    kgpu.release %c[%use] : !one
    // expected-error @+1 {{reads a slot that was not awaited before, or is released}}
    %r = kgpu.local_load %s : !slot -> tensor<64x64xbf16, #acc>
  } producers {
    kgpu.await %b[%use] : !one
    kgpu.release %b[%use] : !one
    %s = kgpu.slot %2[%c0] : !slots -> !slot
    kgpu.publish %t to %s signals %c[%use] : tensor<64x64xbf16, #acc>, !slot, !one
  }
  tile.return
}

// -----

// The tile is published through a ring for copies.
#acc = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">
!slots = !kgpu.smem<1x64x64xbf16, "2B 1:144,288,576,1024,2048,4096 2:2,4,8,16,32,64 rep 1x1x1">
!slot = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!one = !kgpu.ring<1>

tile.kernel @mixed(%x: !in) attributes {kgpu.launch = #kgpu.launch<threads = 384, shared = 24624, consumers = 1, producers = 1>, kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [64, 64], swizzle = 128>]} {
  %c0 = arith.constant 0 : index
  %use = arith.constant 0 : i32
  %t = arith.constant dense<0.000000e+00> : tensor<64x64xbf16, #acc>
  %0 = kgpu.alloc offset 0 : !slots
  %1 = kgpu.alloc offset 8192 : !slots
  %2 = kgpu.alloc offset 16384 : !slots
  %3 = kgpu.alloc offset 24576 : !kgpu.smem<2x1xi64>
  %4 = kgpu.alloc offset 24592 : !kgpu.smem<2x1xi64>
  %5 = kgpu.alloc offset 24608 : !kgpu.smem<2x1xi64>
  %a = kgpu.ring %3 : !kgpu.smem<2x1xi64> -> !one
  %b = kgpu.ring %4 : !kgpu.smem<2x1xi64> -> !one
  %c = kgpu.ring published %5 : !kgpu.smem<2x1xi64> -> !one
  kgpu.roles producer_warp {
    kgpu.acquire %a[%use] bytes 8192 : !one
    %p = kgpu.slot %0[%c0] : !slots -> !slot
    kgpu.tensor_load %x[%c0, %c0] map 0 to %p plus 0 signals %a[%use] : !in, !slot, !one
    kgpu.acquire %b[%use] bytes 8192 : !one
    %q = kgpu.slot %1[%c0] : !slots -> !slot
    kgpu.tensor_load %x[%c0, %c0] map 0 to %q plus 0 signals %b[%use] : !in, !slot, !one
  } consumers {
    kgpu.await %a[%use] : !one
    kgpu.release %a[%use] : !one
    kgpu.await %c[%use] : !one
    %s = kgpu.slot %2[%c0] : !slots -> !slot
    %r = kgpu.local_load %s : !slot -> tensor<64x64xbf16, #acc>
    kgpu.release %c[%use] : !one
  } producers {
    kgpu.await %b[%use] : !one
    kgpu.release %b[%use] : !one
    %s = kgpu.slot %2[%c0] : !slots -> !slot
    // expected-error @+1 {{needs a ring of tiles that are published}}
    kgpu.publish %t to %s signals %b[%use] : tensor<64x64xbf16, #acc>, !slot, !one
  }
  tile.return
}
