// RUN: kpkg-opt %s --lower-cpu-emit | FileCheck %s
// RUN: kpkg-opt %s --lower-cpu=isa=x86-64-v4 | FileCheck %s --check-prefix=WIDE
// RUN: kpkg-opt %s --lower-cpu=isa=aarch64 | FileCheck %s --check-prefix=NEON

// An elementwise kernel becomes three loops over its row: groups of vectors, vectors, and a masked remainder.
// CHECK-LABEL: llvm.func @add(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64) -> i32
// CHECK-SAME:  kpkg.kernel
// CHECK-SAME:  kpkg.scratch = 0
// CHECK:       scf.for
// CHECK:         scf.for
// CHECK-COUNT-4:   llvm.store %{{.*}} : vector<8xf32>
// CHECK:         scf.for
// CHECK:           llvm.store %{{.*}} : vector<8xf32>
// CHECK-NOT:       llvm.store
// CHECK:         scf.for
// CHECK-COUNT-2:   llvm.intr.masked.load
// CHECK:           llvm.intr.masked.store
// WIDE:        vector<16xf32>
// NEON:        vector<4xf32>
tile.kernel @add(%a: !tile.view<1xf32, unit = 0>, %b: !tile.view<1xf32, unit = 0>, %y: !tile.view<1xf32, mut, unit = 0>) {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 4096 : index
  %i = tile.block_id x
  %o = arith.muli %i, %n : index
  %u = tile.load %a[%o] fill %zero : !tile.view<1xf32, unit = 0> -> tensor<4096xf32>
  %v = tile.load %b[%o] fill %zero : !tile.view<1xf32, unit = 0> -> tensor<4096xf32>
  %w = arith.addf %u, %v : tensor<4096xf32>
  tile.store %w, %y[%o] : tensor<4096xf32>, !tile.view<1xf32, mut, unit = 0>
  tile.return
}
