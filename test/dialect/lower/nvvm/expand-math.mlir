// RUN: kpkg-opt --nvvm-expand-math %s | FileCheck %s

// sin and cos of large numbers multiply by bits of 2/pi, which are in constant memory.
// CHECK: llvm.mlir.global internal constant @kpkg_table_{{[0-9A-F]+}}(dense<{{.*}}> : tensor<{{[0-9]+}}xi64>) {addr_space = 4 : i32

// exp: one saturating multiply-add for the exponent, two for the remainder, one instruction of the special function
// unit.
// CHECK-LABEL: func @exp
// CHECK-SAME: %[[X:.*]]: f32
// CHECK: %[[PART:.*]] = llvm.call_intrinsic "llvm.nvvm.fma.rn.sat.f"(%[[X]],
// CHECK: %[[SHIFTED:.*]] = math.fma %[[PART]]
// CHECK: %[[POWER:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK: %[[BITS:.*]] = arith.bitcast %[[SHIFTED]]
// CHECK: arith.shli %[[BITS]]
// CHECK: arith.mulf %[[POWER]]
llvm.func @exp(%x: f32) {
  %e = math.exp %x : f32
  llvm.return
}

// bf16 is computed in f32 and rounded once.
// CHECK-LABEL: func @exp2
// CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : bf16 to f32
// CHECK: %[[E:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[WIDE]])
// CHECK: arith.truncf %[[E]] : f32 to bf16
llvm.func @exp2(%x: bf16) {
  %e = math.exp2 %x : bf16
  llvm.return
}

// CHECK-LABEL: func @rsqrt
// CHECK: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"
// The special function unit has no f64: sqrt and a division, both correctly rounded.
// CHECK: math.sqrt {{.*}} : f64
// CHECK: arith.divf {{.*}} : f64
llvm.func @rsqrt(%x: f32, %y: f64) {
  %r = math.rsqrt %x : f32
  %s = math.rsqrt %y : f64
  llvm.return
}

// No division, no table: two polynomials and one power.
// CHECK-LABEL: func @erf
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK-COUNT-7: math.fma
// CHECK: arith.select
// CHECK-NOT: arith.divf
llvm.func @erf(%x: f32) {
  %e = math.erf %x : f32
  llvm.return
}

// Bits that are rounded away are not computed.
// CHECK-LABEL: func @relaxed
// CHECK-COUNT-1: arith.mulf
// CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.div.full"
// CHECK-NEXT: llvm.return
llvm.func @relaxed(%x: f32) {
  %e = math.exp %x fastmath<afn> : f32
  %q = arith.divf %e, %x fastmath<afn> : f32
  llvm.return
}

// Reciprocals that may be approximate take one instruction. Others, and those of wider floats, are correctly rounded.
// CHECK-LABEL: func @reciprocal
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f64
// CHECK: llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[X]])
// CHECK: arith.divf {{.*}}, %[[X]] : f32
// CHECK: arith.divf {{.*}}, %[[Y]] fastmath<arcp> : f64
llvm.func @reciprocal(%x: f32, %y: f64) {
  %one = arith.constant 1.0 : f32
  %wide = arith.constant 1.0 : f64
  %a = arith.divf %one, %x fastmath<arcp> : f32
  %b = arith.divf %one, %x : f32
  %c = arith.divf %wide, %y fastmath<arcp> : f64
  llvm.return
}

// CHECK-LABEL: func @nothing_left
// CHECK-NOT: math.{{(tanh|log|log2|sin|cos|powf|round) }}
// CHECK: llvm.return
llvm.func @nothing_left(%x: f32, %y: f64) {
  %a = math.tanh %x : f32
  %b = math.log %x : f32
  %c = math.log2 %x : f32
  %d = math.sin %x : f32
  %e = math.powf %x, %a : f32
  %f = math.cos %y : f64
  %g = math.round %y : f64
  %h = math.powf %y, %f : f64
  llvm.return
}

// Ops on tiles are not expanded here.
// CHECK-LABEL: func @tile
// CHECK: math.exp {{.*}} : tensor<4xf32>
llvm.func @tile() {
  %x = ub.poison : tensor<4xf32>
  %e = math.exp %x : tensor<4xf32>
  llvm.return
}
