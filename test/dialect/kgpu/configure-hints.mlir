// Checks that each of several hints is also tried without the others, so that one that does not fit removes none.
// RUN: kpkg-opt --kgpu-configure="chip=sm_90a" %s | FileCheck %s --check-prefix=BOTH
// RUN: kpkg-opt --kgpu-configure="chip=sm_90a candidate=1" %s | FileCheck %s --check-prefix=OCCUPANCY
// RUN: kpkg-opt --kgpu-configure="chip=sm_90a candidate=2" %s | FileCheck %s --check-prefix=PEEL
// RUN: kpkg-opt --kgpu-configure="chip=sm_90a candidate=3" %s | FileCheck %s --check-prefix=NONE
// RUN: kpkg-opt --kgpu-configure="chip=sm_90a candidate=4" %s | FileCheck %s --check-prefix=LOADS

!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// BOTH: kgpu.consumers = 2 : i32, kgpu.min_ctas = 2 : i32, {{.*}}kgpu.peels
// OCCUPANCY: kgpu.consumers = 2 : i32, kgpu.min_ctas = 2 : i32
// OCCUPANCY-NOT: kgpu.peels
// PEEL: kgpu.consumers = 2 : i32
// PEEL-NOT: kgpu.min_ctas
// PEEL-SAME: kgpu.peels
// NONE: kgpu.consumers = 2 : i32
// NONE-NOT: kgpu.min_ctas
// NONE-NOT: kgpu.load_registers
// NONE-NOT: kgpu.peels
// The last launch with roles has more registers for the producer warp, in case its code spills.
// LOADS: kgpu.consumers = 2 : i32, kgpu.load_registers = 40 : i32
tile.kernel @product(%a: !in, %b: !in, %d: !out) attributes {schedule = {occupancy = 2 : i32, peel = 1 : i32}} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] fill %zero : !in -> tensor<128x64xbf16>
  %y = tile.load %b[%c0, %c0] fill %zero : !in -> tensor<64x64xbf16>
  %p = tile.dot %x, %y, %zeros : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
  tile.store %p, %d[%c0, %c0] : tensor<128x64xf32>, !out
  tile.return
}
