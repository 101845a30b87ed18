// Tests that elementary functions reach LLVM as instructions, without calls.
// RUN: kpkg-opt --lower-nvvm %s | FileCheck %s

#row = #kgpu.layout<"reg 0:1-2 lane 0:4-64 rep 1">
!in = !tile.view<1xf32, unit = 0, align = 16, divisible = 4, index = 32>
!out = !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 4, index = 32>

// CHECK-LABEL: llvm.func @functions
// CHECK-NOT: llvm.call @
// CHECK-NOT: llvm.intr.{{(exp|log|sin|cos|pow)}}
// CHECK: llvm.return
tile.kernel @functions(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0] fill %zero : !in -> tensor<128xf32, #row>
  %a = math.exp %v : tensor<128xf32, #row>
  %b = math.log2 %a : tensor<128xf32, #row>
  %c = math.tanh %b : tensor<128xf32, #row>
  %d = math.erf %c : tensor<128xf32, #row>
  %e = math.sin %d : tensor<128xf32, #row>
  %f = math.rsqrt %e : tensor<128xf32, #row>
  %g = math.powf %f, %v : tensor<128xf32, #row>
  %h = math.exp2 %g : tensor<128xf32, #row>
  %i = math.log %h : tensor<128xf32, #row>
  %j = math.round %i : tensor<128xf32, #row>
  tile.store %j, %y[%c0] : tensor<128xf32, #row>, !out
  tile.return
}
