// Checks that independent sums share one exchange, and that a sum that needs another one follows it.
// RUN: kpkg-opt --kgpu-group-reductions %s | FileCheck %s
// RUN: kpkg-opt --kgpu-group-reductions --kgpu-expand-reductions --kgpu-alloc-smem --kgpu-insert-barriers %s | FileCheck %s --check-prefix=BARRIER
// RUN: kpkg-opt --kgpu-group-reductions '--remarks-filter=kgpu-group-reductions' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] reductions that share an exchange | Category:kgpu-group-reductions | Function=sums | Remark="warps meet once for this reduction and an earlier one"
// REMARK-DAG: [Missed] reductions that share an exchange | Category:kgpu-group-reductions | Function=sums | Reason="its tile depends on an earlier reduction, or on a load or store between them"
// REMARK-DAG: [Missed] reductions that share an exchange | Category:kgpu-group-reductions | Function=around_loop | Reason="its tile depends on an earlier reduction, or on a load or store between them"

#row = #kgpu.layout<"reg 1:1-2 lane 1:4-64 warp 1:128-256 rep 1x1">
#all = #kgpu.layout<"lane *5 warp *2 rep 1x1">
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// CHECK-LABEL: tile.kernel @sums
// CHECK: %[[P:.*]] = arith.mulf
// CHECK-NEXT: tile.reduce sum
// CHECK-NEXT: tile.reduce sum %[[P]]
// CHECK-NEXT: tile.broadcast
// CHECK: tile.reduce max
// BARRIER-LABEL: tile.kernel @sums
// BARRIER: local_store
// BARRIER-NOT: kgpu.barrier
// BARRIER: local_store
// BARRIER-NEXT: kgpu.barrier
// BARRIER-NEXT: local_load
// BARRIER-NEXT: tile.reduce
// BARRIER-NEXT: local_load
// BARRIER: partial_reduce max
tile.kernel @sums(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<1x512xf32, #row>
  %s = tile.reduce sum %v axis 1 : tensor<1x512xf32, #row> -> tensor<1x1xf32, #all>
  %b = tile.broadcast %s : tensor<1x1xf32, #all> -> tensor<1x512xf32, #row>
  %d = arith.subf %v, %b : tensor<1x512xf32, #row>
  %p = arith.mulf %v, %v : tensor<1x512xf32, #row>
  %q = tile.reduce sum %p axis 1 : tensor<1x512xf32, #row> -> tensor<1x1xf32, #all>
  %m = tile.reduce max %d axis 1 : tensor<1x512xf32, #row> -> tensor<1x1xf32, #all>
  %e = arith.addf %q, %m : tensor<1x1xf32, #all>
  tile.store %e, %y[%c0, %c0] : tensor<1x1xf32, #all>, !out
  tile.return
}

// A loop that reads the first sum stays behind it, and so does a sum that depends on the loop.
// CHECK-LABEL: tile.kernel @around_loop
// CHECK: %[[S:.*]] = tile.reduce sum
// CHECK-NEXT: %[[L:.*]] = scf.for
// CHECK: arith.addf %{{.*}}, %[[S]]
// CHECK: %[[B:.*]] = tile.broadcast %[[L]]
// CHECK: tile.reduce sum
tile.kernel @around_loop(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c24 = arith.constant 24 : index
  %none = arith.constant dense<0.0> : tensor<1x1xf32, #all>
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<1x512xf32, #row>
  %s = tile.reduce sum %v axis 1 : tensor<1x512xf32, #row> -> tensor<1x1xf32, #all>
  %l = scf.for %i = %c0 to %c24 step %c1 iter_args(%low = %none) -> tensor<1x1xf32, #all> {
    %next = arith.addf %low, %s : tensor<1x1xf32, #all>
    scf.yield %next : tensor<1x1xf32, #all>
  }
  %b = tile.broadcast %l : tensor<1x1xf32, #all> -> tensor<1x512xf32, #row>
  %p = arith.mulf %v, %b : tensor<1x512xf32, #row>
  %q = tile.reduce sum %p axis 1 : tensor<1x512xf32, #row> -> tensor<1x1xf32, #all>
  tile.store %q, %y[%c0, %c0] : tensor<1x1xf32, #all>, !out
  tile.return
}
