// Checks that waits stand where results are needed or slots are released. If nothing starts between two waits, the
// second is merged into the first, with the releases of its slots.
// RUN: kpkg-opt --kgpu-configure=chip=sm_90a --kgpu-expand-add-stores --kgpu-schedule-tiles --kgpu-assign-layouts --canonicalize --cse --kgpu-tensor-stores --kgpu-specialise-warps --kgpu-pipeline-waits --kgpu-verify-schedule %s | FileCheck %s
// RUN: kpkg-opt --kgpu-configure=chip=sm_90a --kgpu-expand-add-stores --kgpu-schedule-tiles --kgpu-assign-layouts --canonicalize --cse --kgpu-tensor-stores --kgpu-specialise-warps --kgpu-pipeline-waits --kgpu-verify-schedule '--remarks-filter=kgpu-specialise-warps|kgpu-pipeline-waits' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Missed] product of a computed tile one iteration later | Category:kgpu-specialise-warps | Function=merged | Reason="shared memory has room for 2 copies of the tile, not for 4"
// REMARK-DAG: [Passed] product in flight beside other work | Category:kgpu-pipeline-waits | Function=merged | Remark="up to the first use of its result, with 1 later product"
// REMARK-DAG: [Passed] product in flight beside other work | Category:kgpu-pipeline-waits | Function=merged | Remark="up to the first use of its result"
// REMARK-DAG: [Missed] product in flight beside other work | Category:kgpu-pipeline-waits | Function=merged | Reason="its result is used at once"
// REMARK-DAG: [Passed] product in flight beside other work | Category:kgpu-pipeline-waits | Function=chained | Remark="up to the first use of its result"
// REMARK-DAG: [Passed] product in flight beside other work | Category:kgpu-pipeline-waits | Function=chained | Remark="the next product adds to its result without a wait"

// CHECK: tile.kernel @merged
// CHECK: } consumers {
// CHECK: scf.for
// CHECK: scf.for
// CHECK: %[[SCORES:.*]] = kgpu.wgmma
// CHECK: %[[OTHERS:.*]] = kgpu.wgmma
// A later wait for fewer products: both stay.
// CHECK: kgpu.wgmma_wait 1 %[[SCORES]]
// CHECK-NEXT: kgpu.wgmma_wait 0 %[[OTHERS]]
// The result of this product is for the next iteration.
// CHECK: %[[SUM:.*]] = kgpu.wgmma %{{.*}}, %{{.*}}, %{{.*}} adds
// CHECK: %[[ADDED:.*]] = kgpu.wgmma
// CHECK-NEXT: %[[DONE:.*]]:2 = kgpu.wgmma_wait 0 %[[ADDED]], %[[SUM]]
// CHECK-NEXT: kgpu.release
// CHECK-NEXT: kgpu.tensor_store adds %[[DONE]]#0
// CHECK-NEXT: scf.yield %[[DONE]]#1
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
!sum = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>
tile.kernel @merged(%a: !in, %b: !in, %v: !in, %g: !in, %d: !out, %z: !sum) attributes {schedule = #tile.schedule<stages = 2>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %none = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %a, 0 : !in
  %columns = tile.dim %d, 0 : !out
  %tn = arith.ceildivsi %columns, %c128 : index
  %tm = arith.ceildivsi %rows, %c128 : index
  tile.for_tiles (%i) to (%tn) {
    %n = arith.muli %i, %c128 : index
    %k = tile.load %a[%n, %c0] fill %zero : !in -> tensor<128x64xbf16>
    %w = tile.load %v[%n, %c0] fill %zero : !in -> tensor<128x64xbf16>
    %sum = scf.for %j = %c0 to %tm step %c1 iter_args(%x = %zeros) -> tensor<128x64xf32> {
      %m = arith.muli %j, %c128 : index
      %q = tile.load %b[%m, %c0] fill %zero : !in -> tensor<128x64xbf16>
      %qt = tile.permute %q [1, 0] : tensor<128x64xbf16> -> tensor<64x128xbf16>
      %s = tile.dot %k, %qt, %none : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      %u = tile.load %g[%m, %c0] fill %zero : !in -> tensor<128x64xbf16>
      %ut = tile.permute %u [1, 0] : tensor<128x64xbf16> -> tensor<64x128xbf16>
      %t = tile.dot %w, %ut, %none : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      %p = arith.mulf %s, %t : tensor<128x128xf32>
      %e = arith.truncf %p : tensor<128x128xf32> to tensor<128x128xbf16>
      %x1 = tile.dot %e, %q, %x : tensor<128x128xbf16>, tensor<128x64xbf16>, tensor<128x64xf32>
      %et = tile.permute %e [1, 0] : tensor<128x128xbf16> -> tensor<128x128xbf16>
      %y = tile.dot %et, %k, %zeros : tensor<128x128xbf16>, tensor<128x64xbf16>, tensor<128x64xf32>
      tile.add_store %y, %z[%m, %c0] : tensor<128x64xf32>, !sum
      scf.yield %x1 : tensor<128x64xf32>
    }
    %narrow = arith.truncf %sum : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %narrow, %d[%n, %c0] : tensor<128x64xbf16>, !out
  }
  tile.return
}

// A product whose accumulator the next one continues is waited for only where the slot that it reads is released.
// CHECK: tile.kernel @chained
// CHECK: } consumers {
// CHECK: kgpu.await %[[FIRST:[0-9]+]]
// CHECK: %[[ONE:.*]] = kgpu.wgmma %
// CHECK: %[[SUM:.*]] = kgpu.wgmma_wait 0 %[[ONE]]
// CHECK-NEXT: kgpu.release %[[FIRST]][
// CHECK: %[[TWO:.*]] = kgpu.wgmma %{{.*}}, %{{.*}}, %[[SUM]] adds
// CHECK-NOT: kgpu.wgmma_wait
// CHECK: %[[THREE:.*]] = kgpu.wgmma %{{.*}}, %{{.*}}, %[[TWO]] adds
// CHECK: kgpu.wgmma_wait 0 %[[THREE]]
// CHECK-NEXT: kgpu.release
// CHECK-NEXT: kgpu.release
tile.kernel @chained(%a: !in, %b: !in, %v: !in, %g: !in, %d: !out) attributes {schedule = #tile.schedule<stages = 2>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %d, 0 : !out
  %columns = tile.dim %d, 1 : !out
  %depth = tile.dim %a, 1 : !in
  %tm = arith.ceildivsi %rows, %c128 : index
  %tn = arith.ceildivsi %columns, %c128 : index
  %tk = arith.ceildivsi %depth, %c64 : index
  tile.for_tiles (%i, %j) to (%tm, %tn) {
    %m = arith.muli %i, %c128 : index
    %n = arith.muli %j, %c128 : index
    %sum = scf.for %k = %c0 to %tk step %c1 iter_args(%x = %zeros) -> tensor<128x128xf32> {
      %k0 = arith.muli %k, %c64 : index
      %p = tile.load %a[%m, %k0] fill %zero : !in -> tensor<128x64xbf16>
      %q = tile.load %b[%k0, %n] fill %zero : !in -> tensor<64x128xbf16>
      %s = tile.dot %p, %q, %x : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      %r = tile.load %v[%m, %k0] fill %zero : !in -> tensor<128x64xbf16>
      %t = tile.load %g[%k0, %n] fill %zero : !in -> tensor<64x128xbf16>
      %u = tile.dot %r, %t, %s : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      %y = tile.dot %r, %t, %u : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %y : tensor<128x128xf32>
    }
    %narrow = arith.truncf %sum : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %narrow, %d[%m, %n] : tensor<128x128xbf16>, !out
  }
  tile.return
}
