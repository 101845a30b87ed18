// Tests that each of the first threads prefetches the sector of one element into the L2 cache.
// RUN: kpkg-opt --lower-gpu --canonicalize --cse %s | FileCheck %s

!in = !tile.view<1xf32, unit = 0, index = 32>

// CHECK-LABEL: gpu.func @touch
// CHECK: %[[AT:.*]] = arith.addi
// CHECK-DAG: arith.cmpi slt, %{{.*}}, %c4
// CHECK-DAG: arith.cmpi slt, %[[AT]], %
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "@$1 prefetch.global.L2 [$0];", "l,b"
tile.kernel @touch(%x: !in, %n: index, %more: i1) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>} {
  kgpu.touch %x[%n] of tensor<4xf32> if %more : !in
  tile.return
}
