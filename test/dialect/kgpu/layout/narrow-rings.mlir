// Checks that tiles of several short rows also go through rings, with a vector for every thread.
// RUN: kpkg-opt --kgpu-assign-layouts %s | FileCheck %s --check-prefix=LAYOUT
// RUN: kpkg-opt --kgpu-assign-layouts --kgpu-ring-loads %s | FileCheck %s

!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// With vectors of 16 bytes, half of the threads would repeat the work of others.
// LAYOUT: #[[HALF:.*]] = #kgpu.layout<"reg 1:1-2
// LAYOUT-LABEL: tile.kernel @strips
// LAYOUT: tile.load {{.*}} -> tensor<8x32xbf16, #[[HALF]]>
// CHECK-LABEL: tile.kernel @strips
// CHECK: kgpu.alloc : !kgpu.smem<3x512xi8>
// CHECK: scf.for
// CHECK: kgpu.async_wait 2
// CHECK: kgpu.fetched
tile.kernel @strips(%x: !in, %y: !out, %first: index, %last: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 64, stages = 3>, kgpu.target = #kgpu.target<"sm_90a">} {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %first to %last step %c8 {
    %v = tile.load %x[%i, %c0] fill %zero : !in -> tensor<8x32xbf16>
    tile.store %v, %y[%i, %c0] : tensor<8x32xbf16>, !out
  }
  tile.return
}

// One short row stays as it is: all threads would copy the same elements.
// CHECK-LABEL: tile.kernel @row
// CHECK-NOT: kgpu.fetch
// CHECK: tile.return
tile.kernel @row(%x: !in, %y: !out, %first: index, %last: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 64, stages = 3>, kgpu.target = #kgpu.target<"sm_90a">} {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %first to %last step %c1 {
    %v = tile.load %x[%i, %c0] fill %zero : !in -> tensor<1x512xbf16>
    tile.store %v, %y[%i, %c0] : tensor<1x512xbf16>, !out
  }
  tile.return
}
