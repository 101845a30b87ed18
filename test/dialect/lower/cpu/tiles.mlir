// Tests that products of bf16 use the tiles of AMX, with and without optimisation, and that other products do not.
// RUN: kpkg-opt %s --lower-cpu=isa=x86-64-v4-amx | FileCheck %s
// RUN: kpkg-opt %s --lower-cpu=isa=x86-64-v4-amx | mlir-translate --mlir-to-llvmir | llc -O0 -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4 -mattr=+avx512bf16,+amx-tile,+amx-bf16 | FileCheck %s --check-prefix=ASM
// RUN: kpkg-opt %s --lower-cpu=isa=x86-64-v4-amx | mlir-translate --mlir-to-llvmir | opt -O2 -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4 -mattr=+avx512bf16,+amx-tile,+amx-bf16 | llc -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4 -mattr=+avx512bf16,+amx-tile,+amx-bf16 | FileCheck %s --check-prefix=ASM
// RUN: kpkg-opt %s --lower-cpu=isa=x86-64-v4-bf16 | FileCheck %s --check-prefix=PAIRS

// Each tile is loaded, multiplied and stored under its own number; nothing else uses or saves them.
// CHECK-LABEL: llvm.func @halves
// CHECK: llvm.call_intrinsic "llvm.x86.ldtilecfg"
// CHECK: llvm.call_intrinsic "llvm.x86.tilezero"
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK: llvm.call_intrinsic "llvm.x86.tilestored64"
// CHECK: llvm.call_intrinsic "llvm.x86.tilerelease"
// CHECK-LABEL: llvm.func @singles
// CHECK-NOT: llvm.x86.
// CHECK: llvm.intr.fma
// CHECK-NOT: llvm.x86.
// ASM-LABEL: halves:
// ASM: ldtilecfg
// ASM: tdpbf16ps %tmm{{[67]}}, %tmm{{[45]}}, %tmm3
// ASM: tilerelease
// ASM-LABEL: singles:
// ASM-NOT: tmm
// PAIRS-LABEL: llvm.func @halves
// PAIRS-NOT: tdpbf16ps
// PAIRS: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// PAIRS-NOT: tdpbf16ps
tile.kernel @halves(%a: !tile.view<2xbf16>, %b: !tile.view<2xbf16>, %c: !tile.view<2xf32, mut>) {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] fill %zero : !tile.view<2xbf16> -> tensor<64x64xbf16>
  %y = tile.load %b[%c0, %c0] fill %zero : !tile.view<2xbf16> -> tensor<64x64xbf16>
  %s = tile.dot %x, %y, %none : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  tile.store %s, %c[%c0, %c0] : tensor<64x64xf32>, !tile.view<2xf32, mut>
  tile.return
}

tile.kernel @singles(%a: !tile.view<2xf32>, %b: !tile.view<2xf32>, %c: !tile.view<2xf32, mut>) {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] fill %zero : !tile.view<2xf32> -> tensor<64x64xf32>
  %y = tile.load %b[%c0, %c0] fill %zero : !tile.view<2xf32> -> tensor<64x64xf32>
  %s = tile.dot %x, %y, %none : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  tile.store %s, %c[%c0, %c0] : tensor<64x64xf32>, !tile.view<2xf32, mut>
  tile.return
}
