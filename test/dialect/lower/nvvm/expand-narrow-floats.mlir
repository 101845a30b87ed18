// RUN: kpkg-opt --nvvm-expand-narrow-floats %s | FileCheck %s

// CHECK-LABEL: llvm.func @product
// CHECK-COUNT-2: arith.bitcast %{{.*}} : f8E5M2 to i8
// CHECK: %[[P:.*]] = arith.mulf {{.*}} : f32
// CHECK: arith.bitcast %{{.*}} : i8 to f8E5M2
// CHECK-NOT: arith.mulf
llvm.func @product() {
  %a = ub.poison : f8E5M2
  %b = ub.poison : f8E5M2
  %p = arith.mulf %a, %b : f8E5M2
  llvm.return
}

// CHECK-LABEL: llvm.func @conversions
// CHECK-NOT: arith.extf {{.*}} f8
// CHECK-NOT: arith.truncf {{.*}} f8
// CHECK: llvm.return
llvm.func @conversions(%x: f64, %h: bf16) {
  %a = ub.poison : f8E4M3FN
  %b = arith.extf %a : f8E4M3FN to f64
  %c = arith.extf %a : f8E4M3FN to f16
  %d = arith.truncf %x : f64 to f8E4M3FN
  %e = arith.truncf %h : bf16 to f8E5M2
  %f = arith.cmpf olt, %a, %d : f8E4M3FN
  llvm.return
}
