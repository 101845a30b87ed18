// Checks a producer warpgroup, which computes operands for the consumers: whole tiles, as if each consumer held them.
// The consumers have half of the columns of two accumulators each. They await the operands and the factors of their
// accumulators. Neither role has a barrier, and the producer warpgroup stores tiles that do not depend on accumulators.
// RUN: kpkg-opt --gpu-pipeline=chip=sm_90a %s | FileCheck %s
// RUN: kpkg-opt --gpu-pipeline=chip=sm_90a --lower-nvvm %s | FileCheck %s --check-prefix=CODE
// RUN: kpkg-opt --kgpu-configure="chip=sm_90a candidate=1" %s | FileCheck %s --check-prefix=NEXT
// RUN: kpkg-opt --gpu-pipeline=chip=sm_90a '--remarks-filter=kgpu-ping-pong|kgpu-configure' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] product by warpgroups | Category:kgpu-configure | Function=parts | Remark="by 2 warpgroups, while another warp copies operands ahead"
// REMARK-DAG: [Missed] operands shared by a cluster | Category:kgpu-configure | Function=parts | Reason="`@schedule(cluster=2)` would ask for it"
// REMARK-DAG: [Missed] dynamic tile scheduler | Category:kgpu-configure | Function=parts | Reason="`@schedule(dynamic=1)` would ask for it"
// REMARK-DAG: [Passed] a warpgroup that computes operands | Category:kgpu-configure | Function=parts | Remark="it publishes them to the warpgroups that multiply"
// REMARK-DAG: [Passed] persistent blocks | Category:kgpu-configure | Function=parts | Remark="as many blocks as fit the chip, and each takes a tile after another"
// REMARK-DAG: [Passed] overlap with the kernel before | Category:kgpu-configure | Function=parts | Remark="blocks start before the kernel before has ended, and wait for it"
// REMARK-DAG: [Missed] warpgroups that take turns | Category:kgpu-ping-pong | Function=parts | Reason="a warpgroup that computes operands sets the pace"

// Registers that some of 512 threads may have are few: the launch without a producer is tried next.
// NEXT: #kgpu.launch<{{[^>]*}}consumers = 2
// NEXT-NOT: producers

// CHECK-DAG: #[[MADE:.*]] = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-32 * rep 1x1">
// CHECK-DAG: #[[PART:.*]] = #kgpu.layout<"reg 1:1 0:8 1:8-16 lane 1:2-4 0:1-4 warp 0:16-32 * rep 1x1">
// CHECK-DAG: #[[HALF:.*]] = #kgpu.layout<"reg 1:1 0:8 1:8-64 lane 1:2-4 0:1-4 warp 0:16-32 1:128 rep 1x1">
// CHECK: tile.kernel @parts
// CHECK-SAME: #kgpu.launch<threads = 512{{[^>]*}}consumers = 2{{[^>]*}}producers = 1
// CHECK: %[[FIRST:[0-9]+]] = kgpu.ring published
// CHECK: %[[SECOND:[0-9]+]] = kgpu.ring published
// CHECK: %[[KEEPS:[0-9]+]] = kgpu.ring published
// CHECK: kgpu.roles producer_warp {
// CHECK: } consumers {
// CHECK-NOT: kgpu.barrier
// CHECK: kgpu.await %[[KEEPS]][%[[I:.*]]]
// CHECK: kgpu.local_load %{{.*}} : !kgpu.smem<64x1xf32> -> tensor<64x1xf32
// CHECK: kgpu.release %[[KEEPS]][%[[I]]]
// Products of half of the keys overlap with the computation of the other weights.
// CHECK: kgpu.await %[[FIRST]][%[[J:.*]]]
// CHECK: %[[L:[0-9]+]] = kgpu.wgmma %[[P:[0-9]+]], %{{.*}} : !kgpu.smem<64x32xbf16, {{.*}}tensor<64x256xf32, #[[HALF]]>
// CHECK: %[[H:[0-9]+]] = kgpu.wgmma %[[P]], %{{.*}} tensor<64x256xf32, #[[HALF]]>
// CHECK: kgpu.await %[[SECOND]][%[[J]]]
// CHECK: %[[LOW:[0-9]+]] = kgpu.wgmma %[[Q:[0-9]+]], %{{.*}} from 32, %[[L]] adds
// CHECK: %[[HIGH:[0-9]+]] = kgpu.wgmma %[[Q]], %{{.*}} from 32, %[[H]] adds
// The first part of the keys is released while products read the second one.
// CHECK: kgpu.wgmma_wait 1 %[[LOW]]
// CHECK: kgpu.release
// CHECK: kgpu.wgmma_wait 0 %[[HIGH]]
// CHECK: kgpu.release %[[FIRST]][%[[J]]]
// CHECK: kgpu.release %[[SECOND]][%[[J]]]
// CHECK: tile.store %{{.*}}, %arg2
// CHECK: tile.store %{{.*}}, %arg2
// CHECK-NOT: tile.store
// CHECK: } producers {
// CHECK-NOT: kgpu.barrier
// A product that the next one adds to is not waited for.
// CHECK: %[[S:[0-9]+]] = kgpu.wgmma {{.*}} tensor<64x64xf32, #[[MADE]]>
// CHECK-NOT: kgpu.wgmma_wait
// CHECK: %[[T:[0-9]+]] = kgpu.wgmma %{{.*}}, %{{.*}}, %[[S]] adds %true
// CHECK: kgpu.wgmma_wait 0 %[[T]]
// The tile that the consumers need first is published first.
// CHECK: kgpu.publish %{{.*}} signals %[[KEEPS]]
// CHECK: math.exp2 %{{.*}} : tensor<64x32xf32, #[[PART]]>
// CHECK: kgpu.publish %{{.*}} signals %[[FIRST]]{{.*}} : tensor<64x32xbf16, #[[PART]]>
// CHECK: math.exp2 %{{.*}} : tensor<64x32xf32, #[[PART]]>
// CHECK: kgpu.publish %{{.*}} signals %[[SECOND]]{{.*}} : tensor<64x32xbf16, #[[PART]]>
// CHECK: tile.store %{{.*}}, %arg3
// CHECK-NOT: tile.store
// CHECK: tile.return

// The producer warpgroup takes as many registers as are left.
// CODE-COUNT-36: wgmma.mma_async{{.*(m64n64k16|n = 64, k = 16)}}
// CODE-COUNT-8: wgmma.mma_async{{.*(m64n128k16|n = 128, k = 16)}}
// CODE-NOT: wgmma.mma_async
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
!column = !tile.view<2xf32, mut, unit = 1, index = 32>
tile.kernel @parts(%q: !in, %k: !in, %y: !out, %w: !column) attributes {schedule = #tile.schedule<roles = 3>} {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %zeros = arith.constant dense<0.0> : tensor<64x256xf32>
  %least = arith.constant dense<0xFF800000> : tensor<64x1xf32>
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
    %top, %low, %high = scf.for %j = %c0 to %tn step %c1 iter_args(%before = %least, %first = %zeros, %second = %zeros)
        -> (tensor<64x1xf32>, tensor<64x256xf32>, tensor<64x256xf32>) {
      %n = arith.muli %j, %c64 : index
      %c = tile.load %k[%n, %c0] fill %zero : !in -> tensor<64x256xbf16>
      %ct = tile.permute %c [1, 0] : tensor<64x256xbf16> -> tensor<256x64xbf16>
      %half = tile.dot %x, %ct, %none : tensor<64x256xbf16>, tensor<256x64xbf16>, tensor<64x64xf32>
      %d = tile.load %k[%n, %c256] fill %zero : !in -> tensor<64x320xbf16>
      %dt = tile.permute %d [1, 0] : tensor<64x320xbf16> -> tensor<320x64xbf16>
      %s = tile.dot %z, %dt, %half : tensor<64x320xbf16>, tensor<320x64xbf16>, tensor<64x64xf32>
      %most = tile.reduce max %s axis 1 : tensor<64x64xf32> -> tensor<64x1xf32>
      %now = arith.maximumf %before, %most : tensor<64x1xf32>
      %shift = tile.broadcast %now : tensor<64x1xf32> -> tensor<64x64xf32>
      %under = arith.subf %s, %shift : tensor<64x64xf32>
      %e = math.exp2 %under : tensor<64x64xf32>
      %fall = arith.subf %before, %now : tensor<64x1xf32>
      %keep = math.exp2 %fall : tensor<64x1xf32>
      %p = arith.truncf %e : tensor<64x64xf32> to tensor<64x64xbf16>
      %v = tile.load %k[%n, %c256] fill %zero : !in -> tensor<64x256xbf16>
      %factor = tile.broadcast %keep : tensor<64x1xf32> -> tensor<64x256xf32>
      %scaled = arith.mulf %first, %factor : tensor<64x256xf32>
      %o = tile.dot %p, %c, %scaled : tensor<64x64xbf16>, tensor<64x256xbf16>, tensor<64x256xf32>
      %others = arith.mulf %second, %factor : tensor<64x256xf32>
      %u = tile.dot %p, %v, %others : tensor<64x64xbf16>, tensor<64x256xbf16>, tensor<64x256xf32>
      scf.yield %now, %o, %u : tensor<64x1xf32>, tensor<64x256xf32>, tensor<64x256xf32>
    }
    %r = arith.truncf %low : tensor<64x256xf32> to tensor<64x256xbf16>
    tile.store %r, %y[%m, %c0] : tensor<64x256xbf16>, !out
    %t = arith.truncf %high : tensor<64x256xf32> to tensor<64x256xbf16>
    tile.store %t, %y[%m, %c256] : tensor<64x256xbf16>, !out
    tile.store %top, %w[%m, %c0] : tensor<64x1xf32>, !column
  }
  tile.return
}
