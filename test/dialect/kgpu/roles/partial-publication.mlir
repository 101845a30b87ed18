// Checks that operands are published in two parts, so that products of the first one overlap with computing the second.
// RUN: kpkg-opt --kgpu-configure=chip=sm_90a --kgpu-schedule-tiles --kgpu-assign-layouts --canonicalize --cse --kgpu-specialise-warps --kgpu-verify-schedule %s | FileCheck %s
// RUN: kpkg-opt --kgpu-configure=chip=sm_90a --kgpu-schedule-tiles --kgpu-assign-layouts --canonicalize --cse --kgpu-specialise-warps '--remarks-filter=kgpu-specialise-warps' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] roles of warps | Category:kgpu-specialise-warps | Function=parts | Remark="in an iteration, a warp copies 73728 bytes, and the warpgroups that multiply take 1024 cycles of tensor cores, 0 of FP32 units, 0 of special function units; the warpgroup that computes operands takes 1152 cycles of tensor cores, 65 of FP32 units, 256 of special function units"
// REMARK-DAG: [Passed] computed operand in two parts | Category:kgpu-specialise-warps | Function=parts | Remark="products of the first part run while the second part is computed"
// REMARK-DAG: [Missed] computed operand in two parts | Category:kgpu-specialise-warps | Function=dependent | Reason="its products do not follow each other without a wait"
// REMARK-DAG: [Missed] computed operand in two parts | Category:kgpu-specialise-warps | Function=several | Reason="shared memory has room for several tiles, so that none waits for a whole one"

// CHECK: #[[PART:.*]] = #kgpu.layout<"reg 1:1 0:8 1:8-16 lane 1:2-4 0:1-4 warp 0:16-32 * rep 1x1">
// CHECK-LABEL: tile.kernel @parts
// CHECK-NOT: !kgpu.smem<1x64x64xbf16
// CHECK: %[[FIRST:.*]] = kgpu.alloc : !kgpu.smem<1x64x32xbf16, "2B 1:64,144,288,512,1024,2048 2:2,4,8,16,32
// CHECK: %[[RING:.*]] = kgpu.ring published
// CHECK: %[[SECOND:.*]] = kgpu.alloc : !kgpu.smem<1x64x32xbf16
// CHECK: %[[OTHER:.*]] = kgpu.ring published
// CHECK: } consumers {
// CHECK: kgpu.await %[[RING]][%[[USE:[a-z0-9_]+]]]
// CHECK: %[[P:.*]] = kgpu.slot %[[FIRST]]
// CHECK: %[[A:.*]] = kgpu.wgmma %[[P]], %{{[^,]*}}, %{{.*}} adds %[[SOME:.*]] :
// CHECK: %[[LOW:.*]] = kgpu.wgmma_wait 0 %[[A]]
// CHECK: %[[B:.*]] = kgpu.wgmma %[[P]], %{{[^,]*}}, %{{.*}} adds
// CHECK: %[[HIGH:.*]] = kgpu.wgmma_wait 0 %[[B]]
// CHECK: kgpu.await %[[OTHER]][%[[USE]]]
// CHECK: %[[Q:.*]] = kgpu.slot %[[SECOND]]
// Products of the second part always add to those of the first.
// CHECK: %[[C:.*]] = kgpu.wgmma %[[Q]], %{{.*}} from 32, %[[LOW]] adds %true
// CHECK: kgpu.wgmma_wait 0 %[[C]]
// CHECK: %[[D:.*]] = kgpu.wgmma %[[Q]], %{{.*}} from 32, %[[HIGH]] adds %true
// CHECK: kgpu.wgmma_wait 0 %[[D]]
// CHECK: kgpu.release %[[RING]][%[[USE]]]
// CHECK: kgpu.release %[[OTHER]][%[[USE]]]
// CHECK: } producers {
// CHECK: %[[L:.*]] = kgpu.columns %[[S:.*]] from 0 : {{.*}} -> tensor<64x32xf32, #[[PART]]>
// CHECK: %[[E:.*]] = math.exp2 %{{.*}} : tensor<64x32xf32
// CHECK: arith.truncf %[[E]]
// CHECK: kgpu.publish %{{.*}} signals %[[RING]]
// CHECK: kgpu.columns %[[S]] from 32
// CHECK: %[[F:.*]] = math.exp2 %{{.*}} : tensor<64x32xf32
// CHECK: arith.truncf %[[F]]
// CHECK: kgpu.publish %{{.*}} signals %[[OTHER]]
// Uses of the whole tile follow.
// CHECK: %[[WHOLE:.*]] = kgpu.join_columns %[[E]], %[[F]]
// CHECK: tile.reduce sum %[[WHOLE]]

// The second product's sum depends on the first product, which must be complete: the operand is published whole.
// CHECK-LABEL: tile.kernel @dependent
// CHECK: kgpu.publish %{{.*}} : tensor<64x64xbf16
// If two operands fit, no product waits for one.
// CHECK-LABEL: tile.kernel @several
// CHECK: !kgpu.smem<2x64x64xbf16
// CHECK: kgpu.publish %{{.*}} : tensor<64x64xbf16
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>
!column = !tile.view<2xf32, mut, unit = 1, index = 32>
tile.kernel @parts(%q: !in, %k: !in, %y: !out, %w: !column) attributes {schedule = #tile.schedule<roles = 3>} {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %zeros = arith.constant dense<0.0> : tensor<64x256xf32>
  %nothing = arith.constant dense<0.0> : tensor<64x1xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %rows = tile.dim %q, 0 : !in
  %keys = tile.dim %k, 0 : !in
  %tm = arith.ceildivsi %rows, %c64 : index
  %tn = arith.ceildivsi %keys, %c64 : index
  tile.for_tiles (%i) to (%tm) {
    %m = arith.muli %i, %c64 : index
    %x = tile.load %q[%m, %c0] fill %zero : !in -> tensor<64x256xbf16>
    %z = tile.load %q[%m, %c256] fill %zero : !in -> tensor<64x320xbf16>
    %total, %low, %high = scf.for %j = %c0 to %tn step %c1 iter_args(%before = %nothing, %first = %zeros, %second = %zeros)
        -> (tensor<64x1xf32>, tensor<64x256xf32>, tensor<64x256xf32>) {
      %n = arith.muli %j, %c64 : index
      %c = tile.load %k[%n, %c0] fill %zero : !in -> tensor<64x256xbf16>
      %ct = tile.permute %c [1, 0] : tensor<64x256xbf16> -> tensor<256x64xbf16>
      %half = tile.dot %x, %ct, %none : tensor<64x256xbf16>, tensor<256x64xbf16>, tensor<64x64xf32>
      %d = tile.load %k[%n, %c256] fill %zero : !in -> tensor<64x320xbf16>
      %dt = tile.permute %d [1, 0] : tensor<64x320xbf16> -> tensor<320x64xbf16>
      %s = tile.dot %z, %dt, %half : tensor<64x320xbf16>, tensor<320x64xbf16>, tensor<64x64xf32>
      %e = math.exp2 %s : tensor<64x64xf32>
      %sum = tile.reduce sum %e axis 1 : tensor<64x64xf32> -> tensor<64x1xf32>
      %now = arith.addf %before, %sum : tensor<64x1xf32>
      %p = arith.truncf %e : tensor<64x64xf32> to tensor<64x64xbf16>
      %v = tile.load %k[%n, %c256] fill %zero : !in -> tensor<64x256xbf16>
      %o = tile.dot %p, %c, %first : tensor<64x64xbf16>, tensor<64x256xbf16>, tensor<64x256xf32>
      %u = tile.dot %p, %v, %second : tensor<64x64xbf16>, tensor<64x256xbf16>, tensor<64x256xf32>
      scf.yield %now, %o, %u : tensor<64x1xf32>, tensor<64x256xf32>, tensor<64x256xf32>
    }
    tile.store %low, %y[%m, %c0] : tensor<64x256xf32>, !out
    tile.store %high, %y[%m, %c256] : tensor<64x256xf32>, !out
    tile.store %total, %w[%m, %c0] : tensor<64x1xf32>, !column
  }
  tile.return
}
tile.kernel @dependent(%q: !in, %k: !in, %y: !out) attributes {schedule = #tile.schedule<roles = 3>} {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %zeros = arith.constant dense<0.0> : tensor<64x256xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %rows = tile.dim %q, 0 : !in
  %keys = tile.dim %k, 0 : !in
  %tm = arith.ceildivsi %rows, %c64 : index
  %tn = arith.ceildivsi %keys, %c64 : index
  tile.for_tiles (%i) to (%tm) {
    %m = arith.muli %i, %c64 : index
    %x = tile.load %q[%m, %c0] fill %zero : !in -> tensor<64x256xbf16>
    %z = tile.load %q[%m, %c256] fill %zero : !in -> tensor<64x320xbf16>
    %low, %high = scf.for %j = %c0 to %tn step %c1 iter_args(%first = %zeros, %second = %zeros)
        -> (tensor<64x256xf32>, tensor<64x256xf32>) {
      %n = arith.muli %j, %c64 : index
      %c = tile.load %k[%n, %c0] fill %zero : !in -> tensor<64x256xbf16>
      %ct = tile.permute %c [1, 0] : tensor<64x256xbf16> -> tensor<256x64xbf16>
      %half = tile.dot %x, %ct, %none : tensor<64x256xbf16>, tensor<256x64xbf16>, tensor<64x64xf32>
      %d = tile.load %k[%n, %c256] fill %zero : !in -> tensor<64x320xbf16>
      %dt = tile.permute %d [1, 0] : tensor<64x320xbf16> -> tensor<320x64xbf16>
      %s = tile.dot %z, %dt, %half : tensor<64x320xbf16>, tensor<320x64xbf16>, tensor<64x64xf32>
      %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
      %v = tile.load %k[%n, %c256] fill %zero : !in -> tensor<64x256xbf16>
      %o = tile.dot %p, %c, %first : tensor<64x64xbf16>, tensor<64x256xbf16>, tensor<64x256xf32>
      %both = arith.addf %o, %second : tensor<64x256xf32>
      %u = tile.dot %p, %v, %both : tensor<64x64xbf16>, tensor<64x256xbf16>, tensor<64x256xf32>
      scf.yield %o, %u : tensor<64x256xf32>, tensor<64x256xf32>
    }
    tile.store %low, %y[%m, %c0] : tensor<64x256xf32>, !out
    tile.store %high, %y[%m, %c256] : tensor<64x256xf32>, !out
  }
  tile.return
}
tile.kernel @several(%q: !in, %k: !in, %y: !out) attributes {schedule = #tile.schedule<roles = 3, stages = 2>} {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %zeros = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim %q, 0 : !in
  %keys = tile.dim %k, 0 : !in
  %tm = arith.ceildivsi %rows, %c64 : index
  %tn = arith.ceildivsi %keys, %c64 : index
  tile.for_tiles (%i) to (%tm) {
    %m = arith.muli %i, %c64 : index
    %x = tile.load %q[%m, %c0] fill %zero : !in -> tensor<64x128xbf16>
    %sums = scf.for %j = %c0 to %tn step %c1 iter_args(%before = %zeros) -> tensor<64x128xf32> {
      %n = arith.muli %j, %c64 : index
      %c = tile.load %k[%n, %c0] fill %zero : !in -> tensor<64x128xbf16>
      %ct = tile.permute %c [1, 0] : tensor<64x128xbf16> -> tensor<128x64xbf16>
      %s = tile.dot %x, %ct, %none : tensor<64x128xbf16>, tensor<128x64xbf16>, tensor<64x64xf32>
      %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
      %o = tile.dot %p, %c, %before : tensor<64x64xbf16>, tensor<64x128xbf16>, tensor<64x128xf32>
      scf.yield %o : tensor<64x128xf32>
    }
    tile.store %sums, %y[%m, %c0] : tensor<64x128xf32>, !out
  }
  tile.return
}
