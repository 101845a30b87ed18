// Checks that peeling is tried first if the author asks for it. The same launch without it follows, in case registers
// spill.
// RUN: kpkg-opt --kgpu-configure="chip=sm_90a" %s | FileCheck %s
// RUN: kpkg-opt --kgpu-configure="chip=sm_90a candidate=1" %s | FileCheck %s --check-prefix=WITHOUT

!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// CHECK-LABEL: tile.kernel @product
// CHECK-SAME: #kgpu.launch<{{[^>]*}}peels{{[^>]*}}consumers = 2
// WITHOUT-LABEL: tile.kernel @product
// WITHOUT-SAME: #kgpu.launch<threads = 384, consumers = 2>
tile.kernel @product(%a: !in, %b: !in, %d: !out) attributes {schedule = #tile.schedule<peel = 1>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] fill %zero : !in -> tensor<128x64xbf16>
  %y = tile.load %b[%c0, %c0] fill %zero : !in -> tensor<64x64xbf16>
  %p = tile.dot %x, %y, %zeros : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
  tile.store %p, %d[%c0, %c0] : tensor<128x64xf32>, !out
  tile.return
}
