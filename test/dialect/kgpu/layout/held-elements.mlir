// Checks the error, with a suggestion, for a tile of which a thread would hold too many elements.
// RUN: kpkg-opt --kgpu-assign-layouts --split-input-file --verify-diagnostics %s

!in = !tile.view<1xi32, unit = 0, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xi32, mut, unit = 1, align = 16, divisible = 4, index = 32>

tile.kernel @few_threads(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %none = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0] fill %none : !in -> tensor<256xi32>
  %column = tile.reshape %v : tensor<256xi32> -> tensor<256x1xi32>
  // expected-error @+1 {{a thread would hold 4096 elements of a tile of 256x512, at most 1024 are possible; @schedule(warps=4) spreads it over more threads}}
  %all = tile.broadcast %column : tensor<256x1xi32> -> tensor<256x512xi32>
  %s = tile.reduce sum %all axis 0 : tensor<256x512xi32> -> tensor<1x512xi32>
  tile.store %s, %y[%c0, %c0] : tensor<1x512xi32>, !out
  tile.return
}

// -----

!in = !tile.view<1xi32, unit = 0, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xi32, mut, unit = 1, align = 16, divisible = 4, index = 32>

tile.kernel @too_large(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256>} {
  %none = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0] fill %none : !in -> tensor<1024xi32>
  %column = tile.reshape %v : tensor<1024xi32> -> tensor<1024x1xi32>
  // expected-error @+1 {{a thread would hold 4096 elements of a tile of 1024x1024, at most 1024 are possible; @schedule(warps=32) spreads it over more threads}}
  %all = tile.broadcast %column : tensor<1024x1xi32> -> tensor<1024x1024xi32>
  %s = tile.reduce sum %all axis 0 : tensor<1024x1024xi32> -> tensor<1x1024xi32>
  tile.store %s, %y[%c0, %c0] : tensor<1x1024xi32>, !out
  tile.return
}
