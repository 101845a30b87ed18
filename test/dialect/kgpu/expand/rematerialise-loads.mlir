// Checks that fetched elements are read again after the last wait if registers are short, and so are earlier loads.
// RUN: kpkg-opt --kgpu-rematerialise-loads --split-input-file %s | FileCheck %s
// RUN: kpkg-opt --kgpu-rematerialise-loads --split-input-file '--remarks-filter=kgpu-rematerialise-loads' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] registers saved by reading data again | Category:kgpu-rematerialise-loads | Function=short | Remark="threads read it again after they have waited for other warps"
// REMARK-DAG: [Missed] registers saved by reading data again | Category:kgpu-rematerialise-loads | Function=enough | Reason="a thread has 255 registers, and needs about 56"

#row = #kgpu.layout<"reg 1:1-4 1:4096 lane 1:8-128 warp 1:256-2048 rep 1x2">
#all = #kgpu.layout<"lane *5 warp *4 rep 1x1">
#one = #kgpu.layout<"reg 0:1-4 0:4096 lane 0:8-128 warp 0:256-2048 rep 2">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!weights = !tile.view<1xbf16, unit = 0, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// A thread has 32 elements of a row and of weights, and the loop carries twice as many.
// CHECK-LABEL: tile.kernel @short
// CHECK: %[[PLACE:.*]] = kgpu.alloc : !kgpu.smem<32768xi8>
// CHECK: kgpu.fetch %arg1[%c0{{.*}}] of tensor<16384xbf16, #{{.*}}> if %true to %[[PLACE]]
// CHECK-NEXT: kgpu.async_commit
// CHECK: scf.for
// CHECK: kgpu.async_wait 0
// CHECK-NEXT: kgpu.fetched %[[PLACE]] of %arg1
// CHECK: kgpu.fetched %{{.*}} of %arg0
// CHECK-NOT: kgpu.fetch %
// CHECK: tile.reduce sum
// CHECK-DAG: %[[AGAIN:.*]] = kgpu.fetched %{{.*}} of %arg0
// CHECK-DAG: kgpu.fetched %[[PLACE]] of %arg1
// CHECK: kgpu.fetch %arg0
// CHECK-NEXT: kgpu.async_commit
// CHECK: arith.extf %[[AGAIN]]
// CHECK: arith.mulf
// CHECK: tile.store
tile.kernel @short(%x: !in, %w: !weights, %y: !out, %rows: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 512, stages = 1>, kgpu.target = #kgpu.target<"sm_90a">} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %fill = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<1x16384xf32, #row>
  %loaded = tile.load %w[%c0] fill %fill : !weights -> tensor<16384xbf16, #one>
  %wide = arith.extf %loaded : tensor<16384xbf16, #one> to tensor<16384xf32, #one>
  %weights = tile.reshape %wide : tensor<16384xf32, #one> -> tensor<1x16384xf32, #row>
  %slot = kgpu.alloc : !kgpu.smem<32768xi8>
  %true = arith.constant true
  kgpu.fetch %x[%c0, %c0] of tensor<1x16384xbf16, #row> if %true to %slot : !in, !kgpu.smem<32768xi8>
  kgpu.async_commit
  %sum:2 = scf.for %i = %c0 to %rows step %c1 iter_args(%acc = %zeros, %squares = %zeros) -> (tensor<1x16384xf32, #row>, tensor<1x16384xf32, #row>) {
    kgpu.async_wait 0
    %v = kgpu.fetched %slot of %x[%i, %c0] fill %fill : !kgpu.smem<32768xi8>, !in -> tensor<1x16384xbf16, #row>
    %j = arith.addi %i, %c1 : index
    %inside = arith.cmpi slt, %j, %rows : index
    kgpu.fetch %x[%j, %c0] of tensor<1x16384xbf16, #row> if %inside to %slot : !in, !kgpu.smem<32768xi8>
    kgpu.async_commit
    %f = arith.extf %v : tensor<1x16384xbf16, #row> to tensor<1x16384xf32, #row>
    %p = arith.mulf %f, %weights : tensor<1x16384xf32, #row>
    %s = tile.reduce sum %p axis 1 : tensor<1x16384xf32, #row> -> tensor<1x1xf32, #all>
    %b = tile.broadcast %s : tensor<1x1xf32, #all> -> tensor<1x16384xf32, #row>
    %r = arith.mulf %p, %b : tensor<1x16384xf32, #row>
    %t = arith.truncf %r : tensor<1x16384xf32, #row> to tensor<1x16384xbf16, #row>
    tile.store %t, %y[%i, %c0] : tensor<1x16384xbf16, #row>, !out
    %next = arith.addf %acc, %f : tensor<1x16384xf32, #row>
    %more = math.fma %f, %f, %squares : tensor<1x16384xf32, #row>
    scf.yield %next, %more : tensor<1x16384xf32, #row>, tensor<1x16384xf32, #row>
  }
  %both = arith.addf %sum#0, %sum#1 : tensor<1x16384xf32, #row>
  %half = arith.truncf %both : tensor<1x16384xf32, #row> to tensor<1x16384xbf16, #row>
  tile.store %half, %y[%rows, %c0] : tensor<1x16384xbf16, #row>, !out
  tile.return
}

// -----

// If registers suffice, nothing is read twice.
#row = #kgpu.layout<"reg 1:1-4 lane 1:8-128 warp 1:256-1024 rep 1x1">
#all = #kgpu.layout<"lane *5 warp *3 rep 1x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// CHECK-LABEL: tile.kernel @enough
// CHECK: tile.reduce sum
// CHECK-NOT: kgpu.fetched
tile.kernel @enough(%x: !in, %y: !out, %rows: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 256, stages = 1>, kgpu.target = #kgpu.target<"sm_90a">} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %fill = arith.constant 0.0 : bf16
  %slot = kgpu.alloc : !kgpu.smem<4096xi8>
  %true = arith.constant true
  kgpu.fetch %x[%c0, %c0] of tensor<1x2048xbf16, #row> if %true to %slot : !in, !kgpu.smem<4096xi8>
  kgpu.async_commit
  %zeros = arith.constant dense<0.0> : tensor<1x2048xf32, #row>
  %sum = scf.for %i = %c0 to %rows step %c1 iter_args(%acc = %zeros) -> (tensor<1x2048xf32, #row>) {
    kgpu.async_wait 0
    %v = kgpu.fetched %slot of %x[%i, %c0] fill %fill : !kgpu.smem<4096xi8>, !in -> tensor<1x2048xbf16, #row>
    %j = arith.addi %i, %c1 : index
    %inside = arith.cmpi slt, %j, %rows : index
    kgpu.fetch %x[%j, %c0] of tensor<1x2048xbf16, #row> if %inside to %slot : !in, !kgpu.smem<4096xi8>
    kgpu.async_commit
    %f = arith.extf %v : tensor<1x2048xbf16, #row> to tensor<1x2048xf32, #row>
    %s = tile.reduce sum %f axis 1 : tensor<1x2048xf32, #row> -> tensor<1x1xf32, #all>
    %b = tile.broadcast %s : tensor<1x1xf32, #all> -> tensor<1x2048xf32, #row>
    %r = arith.mulf %f, %b : tensor<1x2048xf32, #row>
    %t = arith.truncf %r : tensor<1x2048xf32, #row> to tensor<1x2048xbf16, #row>
    tile.store %t, %y[%i, %c0] : tensor<1x2048xbf16, #row>, !out
    %next = arith.addf %acc, %f : tensor<1x2048xf32, #row>
    scf.yield %next : tensor<1x2048xf32, #row>
  }
  %half = arith.truncf %sum : tensor<1x2048xf32, #row> to tensor<1x2048xbf16, #row>
  tile.store %half, %y[%rows, %c0] : tensor<1x2048xbf16, #row>, !out
  tile.return
}
