// Tests asserts and prints: a report block is the last parameter, and numbers identify the kernel's texts.
// RUN: kpkg-opt --lower-gpu --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

!in = !tile.view<1xf32, unit = 0, align = 16, divisible = 4, index = 32>

// The first failure is kept, and the kernel continues.
// CHECK-LABEL: gpu.func @scalar_assert
// CHECK-SAME: %[[REPORT:[a-z0-9]+]]: !llvm.ptr<1>)
// CHECK-DAG: %[[NONE:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[SECOND:.*]] = arith.constant 2 : i32
// CHECK: scf.if
// CHECK: scf.if
// CHECK: llvm.cmpxchg %[[REPORT]], %[[NONE]], %[[SECOND]] monotonic monotonic
// CHECK: gpu.return
tile.kernel @scalar_assert(%x: !in, %n: index, %m: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %c0 = arith.constant 0 : index
  %some = arith.cmpi sgt, %n, %c0 : index
  tile.assert %some, "n is positive" : i1
  %more = arith.cmpi sgt, %m, %c0 : index
  tile.assert %more, "m is positive" : i1
  tile.return
}

// -----

#row = #kgpu.layout<"reg 0:1-2 lane 0:4-64 rep 1">
!in = !tile.view<1xf32, unit = 0, align = 16, divisible = 4, index = 32>

// Of 100 elements in a layout of 128, the padding is not tested.
// CHECK-LABEL: gpu.func @tile_assert
// CHECK: %[[LIMIT:.*]] = arith.constant 100 : i32
// CHECK: arith.cmpi slt, %{{.*}}, %[[LIMIT]] : i32
// CHECK-COUNT-4: arith.andi
// CHECK: scf.if
// CHECK-NEXT: llvm.cmpxchg
tile.kernel @tile_assert(%x: !in) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0] fill %zero : !in -> tensor<100xf32, #row>
  %limit = tile.splat %zero : f32 -> tensor<100xf32, #row>
  %holds = arith.cmpf oge, %v, %limit : tensor<100xf32, #row>
  tile.assert %holds, "x is not negative" : tensor<100xi1, #row>
  tile.return
}

// -----

!in = !tile.view<1xf32, unit = 0, align = 16, divisible = 4, index = 32>

// One thread reserves space and writes; a message without space is counted.
// CHECK-LABEL: gpu.func @scalar_print
// CHECK-NOT: gpu.barrier
// CHECK: scf.if
// CHECK: %[[START:.*]] = llvm.atomicrmw add %{{.*}}, %{{.*}} monotonic : !llvm.ptr<1>, i64
// CHECK: scf.if
// CHECK-COUNT-3: llvm.store
// CHECK: else
// CHECK: llvm.atomicrmw add %{{.*}} : !llvm.ptr<1>, i32
tile.kernel @scalar_print(%x: !in, %n: index, %f: bf16) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  tile.print "n {} f {}" (%n, %f) : index, bf16
  tile.return
}

// -----

#row = #kgpu.layout<"reg 0:1-2 lane 0:4-64 rep 1">
!in = !tile.view<1xf32, unit = 0, align = 16, divisible = 4, index = 32>

// Each thread writes its own elements of the first 64, at the position that the first thread publishes.
// CHECK: llvm.mlir.global internal @kpkg_print_place() {{.*}}addr_space = 3
// CHECK-LABEL: gpu.func @tile_print
// CHECK: gpu.barrier
// CHECK: llvm.atomicrmw add
// CHECK: gpu.barrier
// CHECK: llvm.load {{.*}} : !llvm.ptr<3> -> i64
// CHECK-COUNT-4: arith.cmpi slt
tile.kernel @tile_print(%x: !in) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0] fill %zero : !in -> tensor<128xf32, #row>
  tile.print "x {}" (%v) : tensor<128xf32, #row>
  tile.return
}

// -----

tile.kernel @cluster_print(%n: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32, cluster = 2>} {
  // expected-error @below {{is not possible in a kernel whose blocks are clusters}}
  tile.print "n {}" (%n) : index
  tile.return
}
