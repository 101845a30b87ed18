// Checks the products of latent attention. The second one's operand is the first columns of the first one's, and is
// copied once. Its accumulator has too many columns for the registers of a warpgroup, so two have half of them each.
// They also share the columns of the first product, and exchange the tiles that they compute from it.
// RUN: kpkg-opt --gpu-pipeline=chip=sm_90a %s | FileCheck %s
// RUN: kpkg-opt --gpu-pipeline=chip=sm_90a --lower-nvvm %s | FileCheck %s --check-prefix=CODE
// RUN: kpkg-opt --gpu-pipeline=chip=sm_90a '--remarks-filter=kgpu-ping-pong|kgpu-pipeline-products|kgpu-tensor-stores' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Missed] stores through shared memory | Category:kgpu-tensor-stores | Function=latent | Reason="it must store elements of 16 bits, in rows of 32 bytes or multiples, and 64 rows for each warpgroup"
// REMARK-DAG: [Missed] products of two iterations in flight | Category:kgpu-pipeline-products | Function=latent | Reason="its second product reads a part of a tile that the first product reads"
// REMARK-DAG: [Missed] warpgroups that take turns | Category:kgpu-ping-pong | Function=latent | Reason="warpgroups exchange elements of a tile in each iteration, and so run in step"

// CHECK: #[[OWN:.*]] = #kgpu.layout<"reg 1:1 0:8 1:8-16 lane 1:2-4 0:1-4 warp 0:16-32 1:32 rep 1x1">
// CHECK: #[[HALF:.*]] = #kgpu.layout<"reg 1:1 0:8 1:8-128 lane 1:2-4 0:1-4 warp 0:16-32 1:256 rep 1x1">
// CHECK: #[[BOTH:.*]] = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-32 * rep 1x1">
// CHECK: tile.kernel @latent
// CHECK-SAME: #kgpu.launch<{{[^>]*}}consumers = 2
// CHECK: kgpu.roles producer_warp {
// CHECK: scf.for
// CHECK: kgpu.acquire %{{.*}} bytes 73728 : !kgpu.ring<1>
// CHECK: scf.for
// CHECK: kgpu.acquire %{{.*}} bytes 73728 : !kgpu.ring<2>
// CHECK-COUNT-9: kgpu.tensor_load %arg1
// CHECK-NOT: kgpu.acquire
// CHECK: } consumers {
// The loop is not software-pipelined, since it would hold the slot of an iteration through the next one.
// CHECK: scf.for
// CHECK: scf.for
// CHECK: kgpu.await %[[RING:.*]][%[[USE:.*]]]
// CHECK: %[[SLOT:.*]] = kgpu.slot %{{.*}} -> !kgpu.smem<576x64xbf16
// CHECK: %[[COLUMNS:.*]] = kgpu.transpose_buffer %[[SLOT]]
// CHECK: %[[S:.*]] = kgpu.wgmma %{{.*}}, %[[SLOT]], %{{.*}} adds %false : {{.*}}, tensor<64x64xf32, #[[OWN]]>
// Warpgroups that meet run in step, and take no turns.
// CHECK-NOT: kgpu.ping_pong_wait
// CHECK: kgpu.wgmma_wait 0 %[[S]]
// CHECK: kgpu.local_store %{{.*}}, %[[SHARED:.*]] : tensor<64x64xbf16, #[[OWN]]>
// CHECK: kgpu.barrier
// CHECK: %[[P:.*]] = kgpu.local_load %[[SHARED]] : {{.*}} -> tensor<64x64xbf16, #[[BOTH]]>
// CHECK: %[[O:.*]] = kgpu.wgmma %[[P]], %[[COLUMNS]], %{{.*}} : tensor<64x64xbf16, #[[BOTH]]>, !kgpu.smem<64x576xbf16, {{.*}}>, tensor<64x512xf32, #[[HALF]]>
// CHECK: kgpu.wgmma_wait 0 %[[O]]
// CHECK: kgpu.release %[[RING]][%[[USE]]]

// CODE-COUNT-36: wgmma.mma_async{{.*(m64n32k16|n = 32, k = 16)}}
// CODE-NOT: m64n32k16
// CODE-COUNT-4: wgmma.mma_async{{.*(m64n256k16|n = 256, k = 16)}}
// CODE-NOT: wgmma.mma_async
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @latent(%q: !in, %k: !in, %y: !out) {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %zeros = arith.constant dense<0.0> : tensor<64x512xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim %q, 0 : !in
  %keys = tile.dim %k, 0 : !in
  %tm = arith.ceildivsi %rows, %c64 : index
  %tn = arith.ceildivsi %keys, %c64 : index
  tile.for_tiles (%i) to (%tm) {
    %m = arith.muli %i, %c64 : index
    %x = tile.load %q[%m, %c0] fill %zero : !in -> tensor<64x576xbf16>
    %sum = scf.for %j = %c0 to %tn step %c1 iter_args(%acc = %zeros) -> tensor<64x512xf32> {
      %n = arith.muli %j, %c64 : index
      %c = tile.load %k[%n, %c0] fill %zero : !in -> tensor<64x576xbf16>
      %ct = tile.permute %c [1, 0] : tensor<64x576xbf16> -> tensor<576x64xbf16>
      %s = tile.dot %x, %ct, %none : tensor<64x576xbf16>, tensor<576x64xbf16>, tensor<64x64xf32>
      %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
      %v = tile.load %k[%n, %c0] fill %zero : !in -> tensor<64x512xbf16>
      %o = tile.dot %p, %v, %acc : tensor<64x64xbf16>, tensor<64x512xbf16>, tensor<64x512xf32>
      scf.yield %o : tensor<64x512xf32>
    }
    %r = arith.truncf %sum : tensor<64x512xf32> to tensor<64x512xbf16>
    tile.store %r, %y[%m, %c0] : tensor<64x512xbf16>, !out
  }
  tile.return
}
