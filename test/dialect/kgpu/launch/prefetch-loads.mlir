// Checks that loads of a loop are one iteration ahead, if the launch asks for it and their addresses are known.
// RUN: kpkg-opt --kgpu-prefetch-loads --split-input-file %s | FileCheck %s
// RUN: kpkg-opt --kgpu-prefetch-loads --split-input-file '--remarks-filter=kgpu-prefetch-loads' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] load one iteration ahead in registers | Category:kgpu-prefetch-loads | Function=ahead | Remark="it is in flight while an iteration computes"
// REMARK-DAG: [Missed] load one iteration ahead in registers | Category:kgpu-prefetch-loads | Function=indirect | Reason="it loads a single element"
// REMARK-DAG: [Passed] load one iteration ahead in registers | Category:kgpu-prefetch-loads | Function=indirect | Remark="it is in flight while an iteration computes"
// REMARK-DAG: [Missed] load one iteration ahead in registers | Category:kgpu-prefetch-loads | Function=not_known | Reason="it loads a single element"
// REMARK-DAG: [Missed] load one iteration ahead in registers | Category:kgpu-prefetch-loads | Function=not_known | Reason="its place depends on more than the loop's counter"
// REMARK-DAG: [Missed] load one iteration ahead in registers | Category:kgpu-prefetch-loads | Function=not_known | Reason="the kernel may write to the tensor"
// REMARK-DAG: [Passed] load one iteration ahead in registers | Category:kgpu-prefetch-loads | Function=beside_ring | Remark="it is in flight while an iteration computes"

!row = !tile.view<2xf32>
!index = !tile.view<1xindex>
!out = !tile.view<2xf32, mut>

// CHECK-LABEL: tile.kernel @ahead
// CHECK: %[[FIRST:.*]] = tile.load %arg0[%[[BLOCK:[a-z0-9]+]], %{{.*}}]
// CHECK: scf.for %[[I:.*]] = %[[BLOCK]] to %arg2 step %[[STEP:.*]] iter_args(%[[SUM:.*]] = %{{.*}}, %[[V:.*]] = %[[FIRST]])
// CHECK-NEXT: %[[J:.*]] = arith.addi %[[I]], %[[STEP]]
// CHECK-NEXT: %[[NEXT:.*]] = tile.load %arg0[%[[J]], %{{.*}}]
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[SUM]], %[[V]]
// CHECK-NEXT: scf.yield %[[T]], %[[NEXT]]
tile.kernel @ahead(%x: !row, %y: !out, %rows: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 64, prefetch>, kgpu.target = #kgpu.target<"sm_90a">} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %none = arith.constant dense<0.0> : tensor<1x256xf32>
  %block = tile.block_id x
  %step = tile.grid_dim x
  %sum = scf.for %i = %block to %rows step %step iter_args(%s = %none) -> (tensor<1x256xf32>) {
    %v = tile.load %x[%i, %c0] fill %zero : !row -> tensor<1x256xf32>
    %t = arith.addf %s, %v : tensor<1x256xf32>
    scf.yield %t : tensor<1x256xf32>
  }
  tile.store %sum, %y[%block, %c0] : tensor<1x256xf32>, !out
  tile.return
}

// A row whose number comes from a read-only table is one iteration ahead, and so is its number.
// CHECK-LABEL: tile.kernel @indirect
// CHECK: %[[J:.*]] = tile.load %{{.*}}[] fill
// CHECK: %[[FIRST:.*]] = tile.load %arg0[%[[J]], %{{.*}}]
// CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[V:.*]] = %[[FIRST]])
// CHECK: %[[K:.*]] = tile.load %{{.*}}[] fill
// CHECK: %[[NEXT:.*]] = tile.load %arg0[%[[K]], %{{.*}}]
// CHECK: arith.addf %[[SUM]], %[[V]]
tile.kernel @indirect(%x: !row, %where: !index, %y: !out, %rows: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 64, prefetch>, kgpu.target = #kgpu.target<"sm_90a">} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant dense<0.0> : tensor<1x256xf32>
  %sum = scf.for %i = %c0 to %rows step %c1 iter_args(%s = %none) -> (tensor<1x256xf32>) {
    %element = tile.drop %where [0] at (%i) : !index -> !tile.view<0xindex>
    %j = tile.load %element[] fill %c0 : !tile.view<0xindex> -> index
    %v = tile.load %x[%j, %c0] fill %zero : !row -> tensor<1x256xf32>
    %t = arith.addf %s, %v : tensor<1x256xf32>
    scf.yield %t : tensor<1x256xf32>
  }
  tile.store %sum, %y[%c0, %c0] : tensor<1x256xf32>, !out
  tile.return
}

// Loads from memory that the kernel writes stay, and so do loads at positions that are read from there.
// CHECK-LABEL: tile.kernel @not_known
// CHECK: scf.for
// CHECK-NEXT: tile.load %{{.*}}[] fill
// CHECK-NEXT: tile.load %arg0
// CHECK-NEXT: tile.load %arg2
tile.kernel @not_known(%x: !row, %where: !tile.view<1xindex, mut>, %y: !out, %rows: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 64, prefetch>, kgpu.target = #kgpu.target<"sm_90a">} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %element = tile.drop %where [0] at (%c0) : !tile.view<1xindex, mut> -> !tile.view<0xindex, mut>
  scf.for %i = %c0 to %rows step %c1 {
    %j = tile.load %element[] fill %c0 : !tile.view<0xindex, mut> -> index
    %v = tile.load %x[%j, %c0] fill %zero : !row -> tensor<1x256xf32>
    %w = tile.load %y[%i, %c0] fill %zero : !out -> tensor<1x256xf32>
    %t = arith.addf %w, %v : tensor<1x256xf32>
    tile.store %t, %y[%i, %c0] : tensor<1x256xf32>, !out
  }
  tile.return
}

// -----

// In kernels with rings only narrow loads are carried in registers, and their later addresses are prefetched to L2.
#target = #kgpu.target<"sm_90a">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!means = !tile.view<1xf32, unit = 0, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// CHECK-LABEL: tile.kernel @beside_ring
// CHECK: %[[FIRST:.*]] = tile.load %arg1[%c0]
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %arg3 step %c1{{.*}} iter_args(%[[MEAN:.*]] = %[[FIRST]])
// CHECK: %[[NEXT:.*]] = tile.load %arg1[%
// CHECK: %[[DISTANCE:.*]] = arith.muli %c1{{.*}}, %c3
// CHECK: %[[LATER:.*]] = arith.addi %[[I]], %[[DISTANCE]]
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[LATER]], %arg3
// CHECK: kgpu.touch %arg1[%[[LATER]]] of tensor<1xf32> if %[[INSIDE]]
// CHECK: tile.load %arg0[%[[I]], %c0]
// CHECK: scf.yield %[[NEXT]]
tile.kernel @beside_ring(%x: !in, %means: !means, %y: !out, %rows: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 256, prefetch, stages = 2>, kgpu.target = #target} {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %rows step %c1 {
    %v = tile.load %x[%i, %c0] fill %zero : !in -> tensor<1x4096xbf16>
    %m = tile.load %means[%i] fill %none : !means -> tensor<1xf32>
    %r = tile.reshape %m : tensor<1xf32> -> tensor<1x1xf32>
    %h = arith.truncf %r : tensor<1x1xf32> to tensor<1x1xbf16>
    %b = tile.broadcast %h : tensor<1x1xbf16> -> tensor<1x4096xbf16>
    %d = arith.subf %v, %b : tensor<1x4096xbf16>
    tile.store %d, %y[%i, %c0] : tensor<1x4096xbf16>, !out
  }
  tile.return
}
