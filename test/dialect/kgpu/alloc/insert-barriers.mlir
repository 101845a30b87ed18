// RUN: kpkg-opt --kgpu-insert-barriers %s | FileCheck %s

#p = #kgpu.layout<"lane *5 warp 0:1-2 rep 1">
#g = #kgpu.layout<"lane 0:1-2 *3 warp *2 rep 1">
!out = !tile.view<1xf32, mut, unit = 0>

// A read after a write needs a barrier, and so does a write to bytes that slower warps may still read. Disjoint bytes
// need none.
// CHECK-LABEL: tile.kernel @straight
// CHECK: kgpu.local_store
// CHECK-NEXT: kgpu.barrier
// CHECK-NEXT: kgpu.local_load
// CHECK-NEXT: kgpu.barrier
// CHECK-NEXT: kgpu.local_store
// CHECK-NEXT: kgpu.local_store
// CHECK-NEXT: kgpu.barrier
// CHECK-NEXT: kgpu.local_load
// CHECK-NOT: kgpu.barrier
tile.kernel @straight(%y: !out) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 128, shared = 32>} {
  %c0 = arith.constant 0 : index
  %v = arith.constant dense<1.0> : tensor<4xf32, #p>
  %a = kgpu.alloc offset 0 : !kgpu.smem<4xf32>
  %b = kgpu.alloc offset 0 : !kgpu.smem<4xf32>
  %c = kgpu.alloc offset 16 : !kgpu.smem<4xf32>
  kgpu.local_store %v, %a : tensor<4xf32, #p>, !kgpu.smem<4xf32>
  %r = kgpu.local_load %a : !kgpu.smem<4xf32> -> tensor<4xf32, #g>
  kgpu.local_store %v, %b : tensor<4xf32, #p>, !kgpu.smem<4xf32>
  kgpu.local_store %v, %c : tensor<4xf32, #p>, !kgpu.smem<4xf32>
  %s = kgpu.local_load %b : !kgpu.smem<4xf32> -> tensor<4xf32, #g>
  %t = arith.addf %r, %s : tensor<4xf32, #g>
  tile.store %t, %y[%c0] : tensor<4xf32, #g>, !out
  tile.return
}

// The next iteration writes the bytes that this one reads.
// CHECK-LABEL: tile.kernel @loop
// CHECK: scf.for
// CHECK: kgpu.barrier
// CHECK-NEXT: kgpu.local_store
// CHECK-NEXT: kgpu.barrier
// CHECK-NEXT: kgpu.local_load
tile.kernel @loop(%y: !out, %n: index) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 128, shared = 16>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = arith.constant dense<1.0> : tensor<4xf32, #p>
  %a = kgpu.alloc offset 0 : !kgpu.smem<4xf32>
  scf.for %i = %c0 to %n step %c1 {
    kgpu.local_store %v, %a : tensor<4xf32, #p>, !kgpu.smem<4xf32>
    %r = kgpu.local_load %a : !kgpu.smem<4xf32> -> tensor<4xf32, #g>
    tile.store %r, %y[%i] : tensor<4xf32, #g>, !out
  }
  tile.return
}

// An access of one branch is pending after the branches. Within one warp, lanes only need to wait for each other.
// CHECK-LABEL: tile.kernel @branch
// CHECK: scf.if
// CHECK: kgpu.local_store
// CHECK: }
// CHECK-NEXT: kgpu.warp_barrier
// CHECK-NEXT: kgpu.local_load
tile.kernel @branch(%y: !out, %flag: i1) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 32, shared = 16>} {
  %c0 = arith.constant 0 : index
  %v = arith.constant dense<1.0> : tensor<4xf32, #kgpu.layout<"lane 0:1-2 *3 rep 1">>
  %a = kgpu.alloc offset 0 : !kgpu.smem<4xf32>
  scf.if %flag {
    kgpu.local_store %v, %a : tensor<4xf32, #kgpu.layout<"lane 0:1-2 *3 rep 1">>, !kgpu.smem<4xf32>
  }
  %r = kgpu.local_load %a : !kgpu.smem<4xf32> -> tensor<4xf32, #kgpu.layout<"lane *3 0:1-2 rep 1">>
  tile.store %r, %y[%c0] : tensor<4xf32, #kgpu.layout<"lane *3 0:1-2 rep 1">>, !out
  tile.return
}
