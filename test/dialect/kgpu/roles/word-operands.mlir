// Checks a left operand of f32 that is contiguous along M. Tensor cores read words of shared memory only along K, so
// warpgroups load it from its slot as fragments first. It is copied in four panels of 32 rows of the product, with 32
// steps along K each.
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(tile.kernel(kgpu-configure{chip=sm_90a},kgpu-schedule-tiles,kgpu-assign-layouts,canonicalize,kgpu-specialise-warps,kgpu-verify-schedule))' | FileCheck %s
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(gpu-pipeline{chip=sm_90a})' | kpkg-opt --lower-nvvm | FileCheck --check-prefix=CODE %s
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(gpu-pipeline{chip=sm_80})' | kpkg-opt --lower-nvvm | FileCheck --check-prefix=OLD %s

!x = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!w = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!y = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// CHECK: #[[FRAGMENT:.*]] = #kgpu.layout<"reg 1:4 0:8 1:8-16 lane 1:1-2 0:1-4 warp 0:16-64 rep 1x1">
// CHECK-LABEL: tile.kernel @product
// CHECK-SAME: #kgpu.launch<{{[^>]*}}consumers = 2
// CHECK-SAME: #kgpu.tensor_map<arg = 0, box = [32, 32], swizzle = 128>, #kgpu.tensor_map<arg = 1, box = [64, 32], swizzle = 128>
// CHECK: kgpu.roles producer_warp {
// CHECK-COUNT-5: kgpu.tensor_load
// CHECK: } consumers {
// CHECK: kgpu.await
// CHECK: %[[LEFT:.*]] = kgpu.local_load %{{.*}} : {{.*}} -> tensor<128x32xf32, #[[FRAGMENT]]>
// CHECK: kgpu.wgmma %[[LEFT]], %{{.*}}, %{{.*}} adds %{{.*}} : tensor<128x32xf32, #[[FRAGMENT]]>, !kgpu.smem<32x64xf32
// CHECK: kgpu.release

// Four steps of 8 along K, with a fragment of four words each.
// CODE-LABEL: llvm.func @product
// CODE-COUNT-16: llvm.load {{.*}} : !llvm.ptr<3> -> i32
// CODE-COUNT-4: wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {{.*}}, {$64, $65, $66, $67}, $68
// CODE-NOT: wgmma.mma_async
// OLD-LABEL: llvm.func @product
// OLD: nvvm.mma.sync {{.*}}<tf32>
tile.kernel @product(%x: !x, %w: !w, %y: !y) {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %results = tile.dim %y, 0 : !y
  %pixels = tile.dim %y, 1 : !y
  %channels = tile.dim %x, 0 : !x
  %tm = arith.ceildivsi %pixels, %c128 : index
  %tn = arith.ceildivsi %results, %c64 : index
  %tk = arith.ceildivsi %channels, %c32 : index
  tile.for_tiles (%j, %i) to (%tn, %tm) {
    %m = arith.muli %i, %c128 : index
    %n = arith.muli %j, %c64 : index
    %sum = scf.for %s = %c0 to %tk step %c1 iter_args(%acc = %zeros) -> tensor<128x64xf32> {
      %k = arith.muli %s, %c32 : index
      %u = tile.load %x[%k, %m] fill %zero : !x -> tensor<32x128xf32>
      %v = tile.load %w[%n, %k] fill %zero : !w -> tensor<64x32xf32>
      %left = tile.permute %u [1, 0] : tensor<32x128xf32> -> tensor<128x32xf32>
      %right = tile.permute %v [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
      %p = tile.dot %left, %right, %acc precision tf32 : tensor<128x32xf32>, tensor<32x64xf32>, tensor<128x64xf32>
      scf.yield %p : tensor<128x64xf32>
    }
    %r = tile.permute %sum [1, 0] : tensor<128x64xf32> -> tensor<64x128xf32>
    tile.store %r, %y[%n, %m] : tensor<64x128xf32>, !y
  }
  tile.return
}
