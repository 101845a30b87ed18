// Wrong kgpu IR is refused with the reason.
// RUN: kpkg-opt --split-input-file --verify-diagnostics %s

// expected-error @+1 {{unknown chip 'sm_35', known are sm_80 sm_86 sm_89 sm_90a sm_100a sm_120}}
tile.kernel @chip() attributes {kgpu.target = #kgpu.target<"sm_35">} {
  tile.return
}

// -----

tile.kernel @covers() attributes {kgpu.target = #kgpu.target<"sm_90a">} {
  // expected-error @+1 {{layout reg 0:1-2 lane 0:4-64 rep 1 does not cover the shape [256]}}
  %t = arith.constant dense<0.0> : tensor<256xf32, #kgpu.layout<"reg 0:1-2 lane 0:4-64 rep 1">>
  tile.return
}

// -----

// expected-error @+1 {{packs 4 blocks into 512 threads; each must get a power of two of lanes of one warp}}
tile.kernel @packed() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.threads = 512 : i32, kgpu.blocks = 4 : i32} {
  tile.return
}

// -----

// expected-error @+1 {{has 96 threads, which is no power of two up to 1024}}
tile.kernel @threads() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.threads = 96 : i32} {
  tile.return
}

// -----

#layout = #kgpu.layout<"lane 0:1-16 rep 1">
// expected-error @+2 {{has a layout in a kernel without a 'kgpu.target' attribute}}
tile.kernel @untargeted() {
  %t = arith.constant dense<0.0> : tensor<32xf32, #layout>
  tile.return
}

// -----

#layout = #kgpu.layout<"lane 0:1-16 warp 0:32 rep 1">
#wrong = #kgpu.layout<"lane 0:1 *4 warp * rep 1">
tile.kernel @partial() attributes {kgpu.target = #kgpu.target<"sm_90a">} {
  %t = arith.constant dense<0.0> : tensor<64xf32, #layout>
  // expected-error @+1 {{gives 'tensor<2xf32, #kgpu.layout<"lane *5 warp 0:1 rep 1">>', not}}
  %p = kgpu.partial_reduce sum %t axis 0 : tensor<64xf32, #layout> -> tensor<2xf32, #wrong>
  tile.return
}

// -----

tile.kernel @layoutless() attributes {kgpu.target = #kgpu.target<"sm_90a">} {
  %b = kgpu.alloc : !kgpu.smem<32xf32>
  // expected-error @+1 {{needs a layout on 'tensor<32xf32>'}}
  %t = kgpu.local_load %b : !kgpu.smem<32xf32> -> tensor<32xf32>
  tile.return
}
