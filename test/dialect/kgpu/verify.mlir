// What kgpu-verify refuses.
// RUN: kpkg-opt --kgpu-verify --split-input-file --verify-diagnostics %s

#wide = #kgpu.layout<"lane 0:1-16 warp 0:32 rep 1">
tile.kernel @warps() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.threads = 32 : i32} {
  // expected-error @+1 {{has the layout lane 0:1-16 warp 0:32 rep 1, but a kernel block has 32 lanes, 1 warps and 1 CTAs}}
  %t = arith.constant dense<0.0> : tensor<64xf32, #wide>
  tile.return
}

// -----

tile.kernel @layoutless() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.threads = 32 : i32} {
  // expected-error @+1 {{has a tile without a layout: 'tensor<64xf32>'}}
  %t = arith.constant dense<0.0> : tensor<64xf32>
  tile.return
}

// -----

#row = #kgpu.layout<"lane 1:1-16 rep 1x1">
#column = #kgpu.layout<"lane 1:1 *4 rep 1x1">
tile.kernel @reduction() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.threads = 32 : i32} {
  %t = arith.constant dense<0.0> : tensor<1x32xf32, #row>
  // expected-error @+1 {{has the layout lane 1:1 *4 rep 1x1 where lane *5 rep 1x1 follows from its other tile}}
  %s = tile.reduce sum %t axis 1 : tensor<1x32xf32, #row> -> tensor<1x1xf32, #column>
  tile.return
}

// -----

// expected-error @+1 {{has clusters of 8 CTAs, sm_80 runs at most 1}}
tile.kernel @clusters() attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.threads = 32 : i32, kgpu.cluster = 8 : i32} {
  tile.return
}

// -----

tile.kernel @outside() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.threads = 32 : i32, kgpu.shared = 128 : i32} {
  // expected-error @+1 {{lies at byte 128 of 128 and takes 16, aligned to 128}}
  %b = kgpu.alloc offset 128 : !kgpu.smem<4xf32>
  tile.return
}

// -----

tile.kernel @packed() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.threads = 128 : i32, kgpu.blocks = 8 : i32} {
  // expected-error @+1 {{cannot be in a kernel whose blocks are packed into CTAs}}
  kgpu.barrier
  tile.return
}
