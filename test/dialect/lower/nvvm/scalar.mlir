// Checks that a number read from a tile is the register that every thread holds: no exchange and no barrier.
// RUN: kpkg-opt --lower-gpu --canonicalize --cse %s | FileCheck %s

#all = #kgpu.layout<"lane *5 warp *2 rep 1x1">
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// CHECK-LABEL: gpu.func @led
// CHECK: %[[LIMIT:.*]] = arith.constant 2.0
// CHECK: %[[V:.*]] = {{.*}}ld.global
// CHECK-NOT: barrier
// CHECK-NOT: shuffle
// CHECK: %[[P:.*]] = arith.cmpf ogt, %{{.*}}, %[[LIMIT]] : f32
// CHECK: scf.if %[[P]]
// CHECK: st.global
tile.kernel @led(%x: !in, %y: !out)
    attributes {kgpu.launch = #kgpu.launch<threads = 128>, kgpu.target = #kgpu.target<"sm_90a">} {
  %zero = arith.constant 0.0 : f32
  %limit = arith.constant 2.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<1x1xf32, #all>
  %s = tile.scalar %v : tensor<1x1xf32, #all> -> f32
  %p = arith.cmpf ogt, %s, %limit : f32
  scf.if %p {
    tile.store %v, %y[%c0, %c0] : tensor<1x1xf32, #all>, !out
  }
  tile.return
}
