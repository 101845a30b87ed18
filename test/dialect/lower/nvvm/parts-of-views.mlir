// Tests elements at scalar coordinates, slices and atomic updates: computation by every thread, and predicates.
// RUN: kpkg-opt --lower-gpu --canonicalize --cse %s | FileCheck %s

#row = #kgpu.layout<"reg 0:1 lane 0:2-32 rep 1">
!ends = !tile.view<1xi32, index = 32>
!in = !tile.view<1xf32, unit = 0>
!out = !tile.view<1xf32, mut, unit = 0>

// All threads read the element where it exists. It bounds the slice, whose end bounds loads and stores.
// CHECK-LABEL: gpu.func @segment
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult
// CHECK: ld.global.nc.b32
// CHECK: %[[END:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: arith.minsi
// CHECK: arith.subi
// CHECK: ld.global.nc
// CHECK: st.global
tile.kernel @segment(%x: !in, %ends: !ends, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %block = tile.block_id x
  %one = tile.drop %ends [0] at (%block) : !ends -> !tile.view<0xi32, index = 32>
  %e = tile.load %one[] fill %none : !tile.view<0xi32, index = 32> -> i32
  %end = arith.index_cast %e : i32 to index
  %part = tile.slice %x, 0 from %block to %end : !in -> !in
  %out = tile.slice %y, 0 from %c0 to %end : !out -> !out
  %v = tile.load %part[%c0] fill %zero : !in -> tensor<64xf32, #row>
  tile.store %v, %out[%c0] : tensor<64xf32, #row>, !out
  tile.return
}

// CHECK-LABEL: gpu.func @atomic
// CHECK: scf.if
// CHECK: llvm.atomicrmw fadd %{{.*}}, %{{.*}} syncscope("device") monotonic : !llvm.ptr<1>, f32
// CHECK: llvm.atomicrmw fadd
// CHECK: llvm.atomicrmw fmaximum
tile.kernel @atomic(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %i = tile.iota : tensor<64xindex, #row>
  %v = tile.load %x[%c0] fill %zero : !in -> tensor<64xf32, #row>
  tile.atomic add %v, %y[%i] : tensor<64xf32, #row>, !out, tensor<64xindex, #row>
  tile.atomic max %v, %y[%i] : tensor<64xf32, #row>, !out, tensor<64xindex, #row>
  tile.return
}
