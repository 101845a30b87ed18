// Checks that sums are multiplied by a factor that is mostly 1 only in warps where it is not 1.
// RUN: kpkg-opt --kgpu-rescale-conditionally %s | FileCheck %s
// RUN: kpkg-opt --kgpu-rescale-conditionally --lower-nvvm %s | FileCheck %s --check-prefix=CODE
// RUN: kpkg-opt --kgpu-rescale-conditionally '--remarks-filter=kgpu-rescale-conditionally' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] rescaling of sums where the factor is not 1 | Category:kgpu-rescale-conditionally | Function=attend | Remark="a warp whose factors are all 1 skips the multiplications"

#acc = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">
#row = #kgpu.layout<"reg 0:8 lane *2 0:1-4 warp 0:16-32 rep 1x1">
!slots = !kgpu.smem<1x64x1xf32>
!slot = !kgpu.smem<64x1xf32>
!in = !tile.view<2xf32, unit = 1, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, index = 32>
!one = !kgpu.ring<1>

// CHECK-LABEL: tile.kernel @attend
// CHECK: } consumers {
// CHECK: %[[KEEP:.*]] = kgpu.local_load
// CHECK: %[[ONES:.*]] = arith.constant dense<1.000000e+00>
// CHECK: %[[DIFFERS:.*]] = arith.cmpf une, %[[KEEP]], %[[ONES]]
// CHECK: %[[SOME:.*]] = kgpu.warp_any %[[DIFFERS]]
// Both sums in one branch, before any product of them.
// CHECK: %[[SUMS:.*]]:2 = scf.if %[[SOME]]
// CHECK: %[[LOW:.*]] = arith.mulf %{{.*}}, %{{.*}} : tensor<64x64xf32
// CHECK: %[[HIGH:.*]] = arith.mulf %{{.*}}, %{{.*}} : tensor<64x64xf32
// CHECK: scf.yield %[[LOW]], %[[HIGH]]
// CHECK: } else {
// CHECK-NEXT: scf.yield %{{.*}}, %{{.*}}
// CHECK: tile.store %[[SUMS]]#0
// CHECK: tile.store %[[SUMS]]#1

// CODE: nvvm.vote.sync any
// Only loads read the published tile, and no products, so it needs no fence.
// CODE-NOT: fence.proxy.async.shared

// A factor that no `select` sets to 1 is multiplied without a branch.
// CHECK-LABEL: tile.kernel @always
// CHECK-NOT: kgpu.warp_any
tile.kernel @attend(%x: !in, %y: !out) attributes {kgpu.launch = #kgpu.launch<threads = 384, shared = 272, consumers = 1, producers = 1>, kgpu.target = #kgpu.target<"sm_90a">} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %use = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %before = arith.constant dense<1.0> : tensor<64x1xf32, #row>
  %least = arith.constant dense<8.0> : tensor<64x1xf32, #row>
  %one = arith.constant dense<1.0> : tensor<64x1xf32, #row>
  %0 = kgpu.alloc offset 0 : !slots
  %1 = kgpu.alloc offset 256 : !kgpu.smem<2x1xi64>
  %ring = kgpu.ring published %1 : !kgpu.smem<2x1xi64> -> !one
  kgpu.roles producer_warp {
    %none = arith.constant 0 : index
  } consumers {
    %low = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<64x64xf32, #acc>
    %high = tile.load %x[%c0, %c64] fill %zero : !in -> tensor<64x64xf32, #acc>
    kgpu.await %ring[%use] : !one
    %s = kgpu.slot %0[%c0] : !slots -> !slot
    %keep = kgpu.local_load %s : !slot -> tensor<64x1xf32, #row>
    kgpu.release %ring[%use] : !one
    %factor = tile.broadcast %keep : tensor<64x1xf32, #row> -> tensor<64x64xf32, #acc>
    %a = arith.mulf %low, %factor : tensor<64x64xf32, #acc>
    %b = arith.mulf %high, %factor : tensor<64x64xf32, #acc>
    tile.store %a, %y[%c0, %c0] : tensor<64x64xf32, #acc>, !out
    tile.store %b, %y[%c0, %c64] : tensor<64x64xf32, #acc>, !out
  } producers {
    %s = tile.load %x[%c64, %c0] fill %zero : !in -> tensor<64x64xf32, #acc>
    %most = tile.reduce max %s axis 1 : tensor<64x64xf32, #acc> -> tensor<64x1xf32, #row>
    %growth = arith.subf %most, %before : tensor<64x1xf32, #row>
    %grows = arith.cmpf ogt, %growth, %least : tensor<64x1xf32, #row>
    %fall = arith.subf %before, %most : tensor<64x1xf32, #row>
    %e = math.exp2 %fall : tensor<64x1xf32, #row>
    %keep = arith.select %grows, %e, %one : tensor<64x1xi1, #row>, tensor<64x1xf32, #row>
    %slot = kgpu.slot %0[%c0] : !slots -> !slot
    kgpu.publish %keep to %slot signals %ring[%use] : tensor<64x1xf32, #row>, !slot, !one
  }
  tile.return
}
tile.kernel @always(%x: !in, %y: !out) attributes {kgpu.launch = #kgpu.launch<threads = 384, shared = 272, consumers = 1, producers = 1>, kgpu.target = #kgpu.target<"sm_90a">} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %use = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %before = arith.constant dense<1.0> : tensor<64x1xf32, #row>
  %least = arith.constant dense<8.0> : tensor<64x1xf32, #row>
  %one = arith.constant dense<0.5> : tensor<64x1xf32, #row>
  %0 = kgpu.alloc offset 0 : !slots
  %1 = kgpu.alloc offset 256 : !kgpu.smem<2x1xi64>
  %ring = kgpu.ring published %1 : !kgpu.smem<2x1xi64> -> !one
  kgpu.roles producer_warp {
    %none = arith.constant 0 : index
  } consumers {
    %low = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<64x64xf32, #acc>
    %high = tile.load %x[%c0, %c64] fill %zero : !in -> tensor<64x64xf32, #acc>
    kgpu.await %ring[%use] : !one
    %s = kgpu.slot %0[%c0] : !slots -> !slot
    %keep = kgpu.local_load %s : !slot -> tensor<64x1xf32, #row>
    kgpu.release %ring[%use] : !one
    %factor = tile.broadcast %keep : tensor<64x1xf32, #row> -> tensor<64x64xf32, #acc>
    %a = arith.mulf %low, %factor : tensor<64x64xf32, #acc>
    %b = arith.mulf %high, %factor : tensor<64x64xf32, #acc>
    tile.store %a, %y[%c0, %c0] : tensor<64x64xf32, #acc>, !out
    tile.store %b, %y[%c0, %c64] : tensor<64x64xf32, #acc>, !out
  } producers {
    %s = tile.load %x[%c64, %c0] fill %zero : !in -> tensor<64x64xf32, #acc>
    %most = tile.reduce max %s axis 1 : tensor<64x64xf32, #acc> -> tensor<64x1xf32, #row>
    %growth = arith.subf %most, %before : tensor<64x1xf32, #row>
    %grows = arith.cmpf ogt, %growth, %least : tensor<64x1xf32, #row>
    %fall = arith.subf %before, %most : tensor<64x1xf32, #row>
    %e = math.exp2 %fall : tensor<64x1xf32, #row>
    %keep = arith.select %grows, %e, %one : tensor<64x1xi1, #row>, tensor<64x1xf32, #row>
    %slot = kgpu.slot %0[%c0] : !slots -> !slot
    kgpu.publish %keep to %slot signals %ring[%use] : tensor<64x1xf32, #row>, !slot, !one
  }
  tile.return
}
