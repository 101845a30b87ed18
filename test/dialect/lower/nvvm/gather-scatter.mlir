// Tests accesses to single elements at coordinates from index tiles.
// RUN: kpkg-opt --lower-gpu --canonicalize --cse %s | FileCheck %s

#row = #kgpu.layout<"reg 0:1 lane 0:2-32 rep 1">
!table = !tile.view<2xf16, unit = 1>
!small = !tile.view<1xf16, unit = 0, index = 32>
!places = !tile.view<1xi32, unit = 0, index = 32>
!bytes = !tile.view<1xi8>
!out = !tile.view<1xf16, mut, unit = 0>
!counts = !tile.view<1xi8, mut>

// Memory that is never written while the kernel runs uses the read-only path. On sm_90a the kernel may start too early
// for that. Elements outside the view are not read, and neither is the tile's padding (60 of 64).
// CHECK-LABEL: gpu.func @gather
// CHECK: %[[EXTENT:.*]] = arith.constant 60 : i32
// CHECK: arith.cmpi ult
// CHECK: arith.cmpi slt, {{.*}}, %[[EXTENT]]
// CHECK-COUNT-2: ld.global.nc.b16
// CHECK-COUNT-2: st.global.b16
tile.kernel @gather(%table: !table, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %three = arith.constant dense<3> : tensor<60xindex, #row>
  %i = tile.iota : tensor<60xindex, #row>
  %v = tile.gather %table[%i, %three] fill %zero : !table, tensor<60xindex, #row> -> tensor<60xf16, #row>
  tile.store %v, %y[%c0] : tensor<60xf16, #row>, !out
  tile.return
}

// 32-bit indices into a view with 32-bit extents are compared in 32-bit registers.
// CHECK-LABEL: gpu.func @narrow
// CHECK: arith.cmpi ult, {{.*}} : i32
// CHECK: ld.global.nc.b16
// CHECK: arith.cmpi ult, {{.*}} : i32
// CHECK: ld.global.nc.b16
tile.kernel @narrow(%table: !small, %places: !places, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0.0 : f16
  %none = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %p = tile.load %places[%c0] fill %none : !places -> tensor<64xi32, #row>
  %i = arith.index_cast %p : tensor<64xi32, #row> to tensor<64xindex, #row>
  %v = tile.gather %table[%i] fill %zero : !small, tensor<64xindex, #row> -> tensor<64xf16, #row>
  tile.store %v, %y[%c0] : tensor<64xf16, #row>, !out
  tile.return
}

// CHECK-LABEL: gpu.func @scatter
// CHECK: ld.global.nc.b8
// CHECK: st.global.b8
tile.kernel @scatter(%x: !bytes, %y: !counts) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0 : i8
  %limit = arith.constant dense<40> : tensor<64xindex, #row>
  %i = tile.iota : tensor<64xindex, #row>
  %mask = arith.cmpi ult, %i, %limit : tensor<64xindex, #row>
  %v = tile.gather %x[%i] fill %zero mask %mask : !bytes, tensor<64xindex, #row> -> tensor<64xi8, #row>
  tile.scatter %v, %y[%i] mask %mask : tensor<64xi8, #row>, !counts, tensor<64xindex, #row>
  tile.return
}

// Updates answer 0 for elements without an update. Of four threads with the same element only the first one updates.
// CHECK-LABEL: gpu.func @updates
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: scf.if %{{.*}} -> (f32) {
// CHECK: %[[OLD:.*]] = llvm.atomicrmw fadd %{{.*}}, %{{.*}} syncscope("device") monotonic : !llvm.ptr<1>, f32
// CHECK: scf.yield %[[OLD]] : f32
// CHECK: scf.yield %[[ZERO]] : f32
// CHECK: llvm.cmpxchg %{{.*}}, %{{.*}}, %{{.*}} syncscope("device") monotonic monotonic : !llvm.ptr<1>, i32
// CHECK-NOT: scf.yield
// CHECK: st.global.b32
tile.kernel @updates(%x: !tile.view<1xf32, unit = 0>, %y: !tile.view<1xf32, mut, unit = 0>, %z: !tile.view<1xf32, mut, unit = 0>) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %i = tile.iota : tensor<64xindex, #row>
  %v = tile.load %x[%c0] fill %zero : !tile.view<1xf32, unit = 0> -> tensor<64xf32, #row>
  %old = tile.atomic add %v, %y[%i] : tensor<64xf32, #row>, !tile.view<1xf32, mut, unit = 0>, tensor<64xindex, #row> -> tensor<64xf32, #row>
  tile.atomic compare_exchange %v, %y[%i] expected %old : tensor<64xf32, #row>, !tile.view<1xf32, mut, unit = 0>, tensor<64xindex, #row>
  tile.store %old, %z[%c0] : tensor<64xf32, #row>, !tile.view<1xf32, mut, unit = 0>
  tile.return
}
