// Checks `occupancy` of a kernel with roles: CTAs share an SM's memory and registers evenly. The next candidate is
// alone on its SM.
// RUN: kpkg-opt --kgpu-configure=chip=sm_90a %s | FileCheck %s
// RUN: kpkg-opt --kgpu-configure="chip=sm_90a candidate=1" %s | FileCheck %s --check-prefix=ALONE
// RUN: kpkg-opt --kgpu-configure=chip=sm_90a --kgpu-assign-layouts --kgpu-tensor-stores --kgpu-specialise-warps %s | FileCheck %s --check-prefix=RINGS

!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// CHECK-LABEL: tile.kernel @twice
// CHECK-SAME: #kgpu.launch<{{[^>]*}}min_ctas = 2{{[^>]*}}consumers = 1
// ALONE-LABEL: tile.kernel @twice
// ALONE-SAME: #kgpu.launch<threads = 256, overlaps, consumers = 1>

// A slot takes 16 KB, and the result 16 KB: six slots fit half of 228 KB.
// RINGS: kgpu.ring {{.*}} -> !kgpu.ring<6>
tile.kernel @twice(%x: !in, %w: !in, %y: !out, %count: index) attributes {schedule = #tile.schedule<occupancy = 2, stages = 16>} {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %sum = scf.for %k = %c0 to %count step %c1 iter_args(%s = %zeros) -> tensor<64x64xf32> {
    %at = arith.muli %k, %c32 : index
    %u = tile.load %x[%c0, %at] fill %zero : !in -> tensor<64x32xf32>
    %v = tile.load %w[%c0, %at] fill %zero : !in -> tensor<64x32xf32>
    %t = tile.permute %v [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
    %d = tile.dot %u, %t, %s precision tf32 : tensor<64x32xf32>, tensor<32x64xf32>, tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %y[%c0, %c0] : tensor<64x64xf32>, !out
  tile.return
}
