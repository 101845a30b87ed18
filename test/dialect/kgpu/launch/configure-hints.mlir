// Checks that each of several hints is also tried without the others, so that one that does not fit removes none.
// RUN: kpkg-opt --kgpu-configure="chip=sm_90a" %s | FileCheck %s --check-prefix=BOTH
// RUN: kpkg-opt --kgpu-configure="chip=sm_90a candidate=1" %s | FileCheck %s --check-prefix=OCCUPANCY
// RUN: kpkg-opt --kgpu-configure="chip=sm_90a candidate=2" %s | FileCheck %s --check-prefix=PEEL
// RUN: kpkg-opt --kgpu-configure="chip=sm_90a candidate=3" %s | FileCheck %s --check-prefix=NONE
// RUN: kpkg-opt --kgpu-configure="chip=sm_90a candidate=4" %s | FileCheck %s --check-prefix=LOADS

!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// BOTH: #kgpu.launch<threads = 384, min_ctas = 2, peels, consumers = 2>
// OCCUPANCY: #kgpu.launch<threads = 384, min_ctas = 2, consumers = 2>
// PEEL: #kgpu.launch<threads = 384, peels, consumers = 2>
// NONE: #kgpu.launch<threads = 384, consumers = 2>
// The last launch with roles has more registers for the producer warp, in case its code spills.
// LOADS: #kgpu.launch<threads = 384, consumers = 2, load_registers = 40>
tile.kernel @product(%a: !in, %b: !in, %d: !out) attributes {schedule = #tile.schedule<occupancy = 2, peel = 1>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] fill %zero : !in -> tensor<128x64xbf16>
  %y = tile.load %b[%c0, %c0] fill %zero : !in -> tensor<64x64xbf16>
  %p = tile.dot %x, %y, %zeros : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
  tile.store %p, %d[%c0, %c0] : tensor<128x64xf32>, !out
  tile.return
}
