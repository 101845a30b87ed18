// Checks that a tile's coordinates are computed once, during its first product, and stay in registers over the loop.
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(tile.kernel(kgpu-configure{chip=sm_90a},kgpu-schedule-tiles,kgpu-assign-layouts,canonicalize,cse,kgpu-pipeline-products,kgpu-specialise-warps,kgpu-pipeline-waits,kgpu-sink-scalars))' | FileCheck %s
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(gpu-pipeline{chip=sm_90a},lower-gpu)' | FileCheck %s --check-prefix=CODE

// CHECK: } consumers {
// CHECK: scf.for %[[TILE:.*]] = %{{.*}} to
// CHECK-NOT: arith.floordivsi
// CHECK-NOT: arith.divui {{.*}} : index
// CHECK: kgpu.await
// CHECK: kgpu.await
// CHECK: %[[PRODUCT:.*]] = kgpu.wgmma
// CHECK: arith.divui {{.*}} : index
// CHECK: tile.drop %arg3
// CHECK: kgpu.wgmma_wait 0 %[[PRODUCT]]
// CHECK: scf.for
// CHECK: tile.store

// Nothing is divided again after the loop.
// CODE-LABEL: gpu.func @products
// CODE: wgmma.mma_async
// CODE: arith.divui {{.*}} : index
// CODE: scf.for
// CODE: wgmma.mma_async
// CODE-NOT: arith.divui {{.*}} : index
// CODE: gpu.return
!in = !tile.view<3xbf16, unit = 2, align = 16, divisible = 8, index = 32>
!out = !tile.view<3xbf16, mut, unit = 2, align = 16, divisible = 8, index = 32>
tile.kernel @products(%q: !in, %k: !in, %v: !in, %o: !out) attributes {schedule = #tile.schedule<stages = 2>} {
  %zero = arith.constant 0.0 : bf16
  %nothing = arith.constant dense<0.0> : tensor<128x64xf32>
  %least = arith.constant dense<-128.0> : tensor<128x1xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %heads = tile.dim %o, 0 : !out
  %rows = tile.dim %o, 1 : !out
  %keys = tile.dim %k, 1 : !in
  %tiles = arith.ceildivsi %rows, %c128 : index
  %blocks = arith.ceildivsi %keys, %c64 : index
  tile.for_tiles (%h, %i) to (%heads, %tiles) {
    %m = arith.muli %i, %c128 : index
    %qh = tile.drop %q [0] at(%h) : !in -> !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
    %kh = tile.drop %k [0] at(%h) : !in -> !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
    %vh = tile.drop %v [0] at(%h) : !in -> !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
    %oh = tile.drop %o [0] at(%h) : !out -> !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
    %u = tile.load %qh[%m, %c0] fill %zero : !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32> -> tensor<128x64xbf16>
    %result:2 = scf.for %n = %c0 to %blocks step %c1 iter_args(%top = %least, %sum = %nothing) -> (tensor<128x1xf32>, tensor<128x64xf32>) {
      %key = arith.muli %n, %c64 : index
      %kj = tile.load %kh[%key, %c0] fill %zero : !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32> -> tensor<64x64xbf16>
      %kt = tile.permute %kj [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
      %s = tile.dot %u, %kt, %nothing : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      %high = tile.reduce max %s axis 1 : tensor<128x64xf32> -> tensor<128x1xf32>
      %new = arith.maximumf %top, %high : tensor<128x1xf32>
      %less = arith.subf %top, %new : tensor<128x1xf32>
      %keep = tile.broadcast %less : tensor<128x1xf32> -> tensor<128x64xf32>
      %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xbf16>
      %x = arith.mulf %sum, %keep : tensor<128x64xf32>
      %vj = tile.load %vh[%key, %c0] fill %zero : !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32> -> tensor<64x64xbf16>
      %y = tile.dot %p, %vj, %x : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      scf.yield %new, %y : tensor<128x1xf32>, tensor<128x64xf32>
    }
    %r = arith.truncf %result#1 : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %r, %oh[%m, %c0] : tensor<128x64xbf16>, !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
  }
  tile.return
}
