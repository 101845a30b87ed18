// Tests accesses to shared memory through views.
// RUN: kpkg-opt --lower-gpu --canonicalize --cse %s | FileCheck %s

#row = #kgpu.layout<"reg 0:1-2 lane 0:4-64 rep 1">
!memory = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>
!one = !tile.view<0xf32, mut, align = 4, index = 32>
!line = !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 4, index = 32>
!out = !tile.view<1xf32, mut, unit = 0>

// Facts of the view give vectors. A single element exists at address 0, too.
// CHECK-LABEL: gpu.func @views
// CHECK: %[[BASE:.*]] = llvm.mlir.addressof @kpkg_shared : !llvm.ptr<3>
// CHECK: st.shared.v4.b32 {{.*}}"r,r,r,r,r,b,~{memory}"
// CHECK-COUNT-4: ld.shared.b32
// CHECK: llvm.atomicrmw fadd %{{.*}}, %{{.*}} syncscope("block") monotonic : !llvm.ptr<3>, f32
// CHECK-NOT: llvm.icmp
// CHECK: ld.shared.b32
// CHECK: st.global.b32
tile.kernel @views(%y: !out, %n: index) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 32, shared = 4096>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = arith.constant dense<1.0> : tensor<128xf32, #row>
  %i = tile.iota : tensor<128xindex, #row>
  %b = kgpu.alloc offset 0 : !kgpu.smem<8x128xf32>
  %m = kgpu.view_buffer %b : !kgpu.smem<8x128xf32> -> !memory
  %line = tile.drop %m [0] at (%n) : !memory -> !line
  tile.store %v, %line[%c0] : tensor<128xf32, #row>, !line
  kgpu.warp_barrier
  %g = tile.gather %line[%i] fill %zero : !line, tensor<128xindex, #row> -> tensor<128xf32, #row>
  tile.atomic add %g, %line[%i] : tensor<128xf32, #row>, !line, tensor<128xindex, #row>
  kgpu.warp_barrier
  %place = tile.drop %m [0, 1] at (%n, %c0) : !memory -> !one
  %e = tile.load %place[] fill %zero : !one -> f32
  %s = tile.splat %e : f32 -> tensor<128xf32, #row>
  tile.store %s, %y[%c0] : tensor<128xf32, #row>, !out
  tile.return
}
