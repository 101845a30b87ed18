// Checks a product of tiles in shared memory: one thread copies operands to a ring, and a warpgroup multiplies.
// RUN: kpkg-opt --kgpu-tensor-stores --kgpu-specialise-warps --cse %s | FileCheck %s
// RUN: kpkg-opt --kgpu-tensor-stores --kgpu-specialise-warps --kgpu-alloc-smem --kgpu-insert-barriers --kgpu-verify %s -o /dev/null
// RUN: kpkg-opt --kgpu-tensor-stores --kgpu-specialise-warps --cse '--remarks-filter=kgpu-specialise-warps|kgpu-tensor-stores' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] stores through shared memory | Category:kgpu-tensor-stores | Function=product | Remark="the TMA writes whole lines while the next tile is computed"
// REMARK-DAG: [Passed] operand copied ahead | Category:kgpu-specialise-warps | Function=product | Remark="by a warp of its own, to shared memory with room for 5 tiles"

#acc = #kgpu.layout<"reg 1:1 0:8 1:8-64 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">
#any = #kgpu.layout<"reg 1:1-32 lane 0:1-16 warp 0:32 * rep 1x1">
#wide = #kgpu.layout<"reg 1:1-64 lane 0:1-16 warp 0:32 * rep 1x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!turned = !tile.view<2xbf16, unit = 0, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// CHECK: tile.kernel @product
// The operand that is contiguous along K lies in one panel of 128 rows, the other one in two of 64.
// CHECK-SAME: kgpu.tensor_maps = [#kgpu.tensor_map<arg = 3, box = [64, 64], swizzle = 128>, #kgpu.tensor_map<arg = 0, box = [64, 64], swizzle = 128>, #kgpu.tensor_map<arg = 1, box = [64, 128], swizzle = 128>, #kgpu.tensor_map<arg = 2, box = [64, 64], swizzle = 128>]
// CHECK: %[[START:.*]] = ub.poison : tensor<64x128xf32, #{{.*}}>
// CHECK: %[[STAGING:.*]] = kgpu.alloc : !kgpu.smem<1x2x64x64xbf16
// An operand of two products is copied once: it has a ring, and each of the others has one.
// CHECK: %[[BOTH:.*]] = kgpu.ring %{{.*}} : !kgpu.smem<2x5xi64> -> !kgpu.ring<5>
// CHECK: %[[LEFT:.*]] = kgpu.ring %{{.*}} : !kgpu.smem<2x5xi64> -> !kgpu.ring<5>
// CHECK: %[[RIGHT:.*]] = kgpu.ring %{{.*}} : !kgpu.smem<2x5xi64> -> !kgpu.ring<5>
// CHECK: kgpu.roles producer_warp {
// CHECK-NOT: wgmma
// CHECK-NOT: tile.load
// CHECK: scf.for {{.*}} iter_args(%[[USE:[a-z0-9]+]] = %{{.*}}, %[[OTHER:[a-z0-9]+]] = %{{.*}}, %[[THIRD:[a-z0-9]+]] = %{{.*}}) -> (i32, i32, i32)
// CHECK: kgpu.acquire %[[BOTH]][%[[USE]]] bytes 8192
// CHECK: kgpu.tensor_load %arg0[%{{.*}}, %[[DEPTH:.*]]] map 1 to %{{.*}} plus 0 signals %[[BOTH]][%[[USE]]]
// CHECK: kgpu.acquire %[[LEFT]][%[[OTHER]]] bytes 16384
// CHECK: kgpu.tensor_load %arg1[%[[DEPTH]], %{{.*}}] map 2 to %{{.*}} plus 0 signals %[[LEFT]][%[[OTHER]]]
// CHECK: kgpu.acquire %[[RIGHT]][%[[THIRD]]] bytes 16384
// CHECK: kgpu.tensor_load %arg2{{.*}} map 3 to %[[SLOT:.*]] plus 0 signals
// CHECK: kgpu.tensor_load %arg2{{.*}} map 3 to %[[SLOT]] plus 8192 signals
// CHECK: } consumers {
// CHECK: scf.for %[[I:.*]] = %[[FIRST:.*]] to %[[LAST:.*]] step {{.*}} iter_args(%[[SUM:[a-z0-9]+]] = %[[START]]
// CHECK: kgpu.await %[[BOTH]]
// CHECK: kgpu.await %[[LEFT]]
// CHECK: %[[ADDS:.*]] = arith.cmpi ne, %[[I]], %[[FIRST]]
// CHECK: %[[D:.*]] = kgpu.wgmma %[[U:[a-z0-9]+]], %{{.*}}, %[[SUM]] adds %[[ADDS]]
// CHECK: kgpu.wgmma_wait 0 %[[D]]
// CHECK: kgpu.release %[[LEFT]]
// CHECK: kgpu.await %[[RIGHT]]
// CHECK: kgpu.wgmma %[[U]], {{.*}} adds %[[ADDS]]
// CHECK: kgpu.wgmma_wait 0
// CHECK-DAG: kgpu.release %[[BOTH]]
// CHECK-DAG: kgpu.release %[[RIGHT]]
// A loop that never runs results in zeros.
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<64x128xf32
// CHECK: kgpu.tensor_store {{.*}} map 0 through %[[STAGING]]
tile.kernel @product(%a: !in, %bt: !turned, %b: !in, %y: !out, %m: index, %column: index, %blocks: index)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, consumers = 1>} {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zeros = arith.constant dense<0.0> : tensor<64x128xf32, #acc>
  %n = arith.muli %column, %c64 : index
  %sums:2 = scf.for %k = %c0 to %blocks step %c1 iter_args(%s = %zeros, %t = %zeros) -> (tensor<64x128xf32, #acc>, tensor<64x128xf32, #acc>) {
    %depth = arith.muli %k, %c64 : index
    %u = tile.load %a[%m, %depth] fill %zero : !in -> tensor<64x64xbf16, #any>
    %v = tile.load %bt[%depth, %n] fill %zero : !turned -> tensor<64x128xbf16, #wide>
    %d = tile.dot %u, %v, %s : tensor<64x64xbf16, #any>, tensor<64x128xbf16, #wide>, tensor<64x128xf32, #acc>
    %w = tile.load %b[%depth, %n] fill %zero : !in -> tensor<64x128xbf16, #wide>
    %e = tile.dot %u, %w, %t : tensor<64x64xbf16, #any>, tensor<64x128xbf16, #wide>, tensor<64x128xf32, #acc>
    scf.yield %d, %e : tensor<64x128xf32, #acc>, tensor<64x128xf32, #acc>
  }
  %both = arith.addf %sums#0, %sums#1 : tensor<64x128xf32, #acc>
  %r = arith.truncf %both : tensor<64x128xf32, #acc> to tensor<64x128xbf16, #acc>
  tile.store %r, %y[%m, %n] : tensor<64x128xbf16, #acc>, !out
  tile.return
}
