// Checks attention: the second product of an iteration overlaps with arithmetic of the next, and warpgroups take turns.
// RUN: kpkg-opt --kgpu-pipeline-products --canonicalize --cse %s | FileCheck %s
// RUN: kpkg-opt --kgpu-pipeline-products --canonicalize --cse --kgpu-specialise-warps --kgpu-pipeline-waits --kgpu-ping-pong --kgpu-verify-schedule %s | FileCheck %s --check-prefix=ROLES
// RUN: kpkg-opt --kgpu-pipeline-products --canonicalize --cse '--remarks-filter=kgpu-pipeline-products' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] products of two iterations in flight | Category:kgpu-pipeline-products | Function=attention | Remark="its second product runs beside the arithmetic of the next iteration"

#acc = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-64 rep 1x1">
#row = #kgpu.layout<"reg 0:8 lane *2 0:1-4 warp 0:16-64 rep 1x1">
#any = #kgpu.layout<"reg 1:1-32 lane 0:1-16 warp 0:32-64 * rep 1x1">
#turned = #kgpu.layout<"reg 0:1-32 lane 1:1-16 warp 1:32 *2 rep 1x1">
#small = #kgpu.layout<"reg 1:1-32 lane 0:1-16 warp 0:32 *2 rep 1x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xf32, mut, unit = 1>

// The first iteration up to its second product, the loop from the second iteration on, and the last product.
// CHECK-LABEL: tile.kernel @attention
// CHECK: %[[Q:.*]] = tile.load %arg0
// CHECK: %[[S:.*]] = tile.dot %[[Q]], {{.*}}
// CHECK: %[[TOP:.*]] = tile.reduce max
// CHECK: %[[P:.*]] = arith.truncf
// CHECK: %[[LOOP:.*]]:3 = scf.for %[[J:.*]] = %c1 to %arg4 step %c1 iter_args(%{{.*}} = %{{.*}}, %[[LEFT:[a-z0-9]+]] = %[[P]], %[[SUM:[a-z0-9]+]] = %{{.*}})
// CHECK: tile.dot %[[Q]]
// CHECK: %[[BEFORE:.*]] = arith.subi %[[J]], %c1
// CHECK: %[[ROW:.*]] = arith.muli %[[BEFORE]], %c64
// CHECK: %[[V:.*]] = tile.load %arg2[%[[ROW]]
// CHECK: %[[O:.*]] = tile.dot %[[LEFT]], %[[V]], %[[SUM]]
// CHECK: tile.reduce max
// CHECK: arith.mulf %[[O]]
// CHECK: scf.yield
// CHECK: %[[END:.*]] = tile.dot %[[LOOP]]#1, %{{.*}}, %[[LOOP]]#2
// CHECK: arith.select %{{.*}}, %[[END]]

// Both products of an iteration start in one turn. Then the first result is waited for, and last the second one.
// ROLES: consumers {
// ROLES: scf.for
// ROLES: kgpu.ping_pong_wait
// ROLES: %[[S:.*]] = kgpu.wgmma %{{.*}}, %{{.*}}, %{{.*}} adds %false
// ROLES: kgpu.await
// ROLES: %[[O:.*]] = kgpu.wgmma %{{.*}}, %{{.*}}, %{{.*}} adds %true
// ROLES: kgpu.ping_pong_signal
// ROLES: kgpu.wgmma_wait 1 %[[S]]
// ROLES: kgpu.release
// ROLES: tile.reduce
// Neither passes nor ptxas move the wait for the second product above the first one's reduction.
// ROLES-NEXT: kgpu.scheduling_fence
// ROLES: kgpu.wgmma_wait 0 %[[O]]
// ROLES: kgpu.release
// ROLES: arith.mulf
// ROLES: scf.yield
tile.kernel @attention(%q: !in, %k: !in, %v: !in, %y: !out, %blocks: index)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 384, consumers = 2>} {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32, #acc>
  %least = arith.constant dense<0xFF800000> : tensor<128x1xf32, #row>
  %u = tile.load %q[%c0, %c0] fill %zero : !in -> tensor<128x64xbf16, #any>
  %result:2 = scf.for %j = %c0 to %blocks step %c1 iter_args(%top = %least, %sum = %zeros) -> (tensor<128x1xf32, #row>, tensor<128x64xf32, #acc>) {
    %row = arith.muli %j, %c64 : index
    %kj = tile.load %k[%row, %c0] fill %zero : !in -> tensor<64x64xbf16, #small>
    %kt = tile.permute %kj [1, 0] : tensor<64x64xbf16, #small> -> tensor<64x64xbf16, #turned>
    %s = tile.dot %u, %kt, %zeros : tensor<128x64xbf16, #any>, tensor<64x64xbf16, #turned>, tensor<128x64xf32, #acc>
    %m = tile.reduce max %s axis 1 : tensor<128x64xf32, #acc> -> tensor<128x1xf32, #row>
    %new = arith.maximumf %top, %m : tensor<128x1xf32, #row>
    %wide = tile.broadcast %new : tensor<128x1xf32, #row> -> tensor<128x64xf32, #acc>
    %d = arith.subf %s, %wide : tensor<128x64xf32, #acc>
    %p = arith.truncf %d : tensor<128x64xf32, #acc> to tensor<128x64xbf16, #acc>
    %x = arith.mulf %sum, %wide : tensor<128x64xf32, #acc>
    %vj = tile.load %v[%row, %c0] fill %zero : !in -> tensor<64x64xbf16, #small>
    %o = tile.dot %p, %vj, %x : tensor<128x64xbf16, #acc>, tensor<64x64xbf16, #small>, tensor<128x64xf32, #acc>
    scf.yield %new, %o : tensor<128x1xf32, #row>, tensor<128x64xf32, #acc>
  }
  tile.store %result#1, %y[%c0, %c0] : tensor<128x64xf32, #acc>, !out
  tile.return
}
