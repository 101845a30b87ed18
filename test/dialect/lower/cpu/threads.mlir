// Tests kernels at thread level on CPUs: loops over threads, and coroutines where threads wait for each other.
// RUN: kpkg-opt %s --lower-cpu-emit | FileCheck %s
// RUN: kpkg-opt %s --lower-cpu | FileCheck %s --check-prefix=SPLIT

!element = !tile.view<0xf32>
!written = !tile.view<0xf32, mut>
!memory = !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 16, index = 32>

// Without barriers, a block is a loop over its threads.
// CHECK-LABEL: llvm.func @plain(
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: suspend
// CHECK: llvm.return
tile.kernel @plain(%x: !tile.view<1xf32>, %y: !tile.view<1xf32, mut>) attributes {tile.threads = array<i64: 64, 1, 1>} {
  %zero = arith.constant 0.0 : f32
  %t = tile.thread_id
  %e = tile.drop %x [0] at (%t) : !tile.view<1xf32> -> !element
  %v = tile.load %e[] fill %zero : !element -> f32
  %o = tile.drop %y [0] at (%t) : !tile.view<1xf32, mut> -> !written
  tile.store %v, %o[] : f32, !written
  tile.return
}

// A thread that waits is a coroutine, and one function runs those of a cluster.
// CHECK: llvm.mlir.global external constant @waiting$frame_bytes()
// CHECK: llvm.func internal @waiting$thread({{.*}}) -> !llvm.ptr
// CHECK-SAME: presplitcoroutine
// CHECK: llvm.intr.coro.size
// CHECK: llvm.call @kpkg.frame_size
// CHECK: llvm.intr.coro.begin
// CHECK: llvm.call @kpkg.suspend()
// CHECK: llvm.func @waiting(
// CHECK-SAME: kpkg.asserts = ["{{.*}}: some threads of the block wait here, and others have ended or wait elsewhere"{{.*}}kpkg.threads = 64
// CHECK: llvm.call @kpkg.run_threads
// CHECK: llvm.func internal @kpkg.run_threads
// CHECK: llvm.intr.coro.resume

// SPLIT-LABEL: llvm.func internal @waiting$thread
// SPLIT-NOT: @kpkg.suspend
// SPLIT: llvm.intr.coro.save
// SPLIT: llvm.intr.coro.suspend
// SPLIT: llvm.switch
// SPLIT: llvm.intr.coro.end
tile.kernel @waiting(%y: !tile.view<1xf32, mut>, %v: f32) attributes {tile.threads = array<i64: 64, 1, 1>} {
  %zero = arith.constant 0.0 : f32
  %last = arith.constant 63 : index
  %t = tile.thread_id
  %m = tile.scratch [64] : !memory
  %to = tile.drop %m [0] at (%t) : !memory -> !tile.view<0xf32, mut>
  tile.store %v, %to[] : f32, !tile.view<0xf32, mut>
  tile.barrier block
  %other = arith.subi %last, %t : index
  %from = tile.drop %m [0] at (%other) : !memory -> !tile.view<0xf32, mut>
  %r = tile.load %from[] fill %zero : !tile.view<0xf32, mut> -> f32
  %o = tile.drop %y [0] at (%t) : !tile.view<1xf32, mut> -> !written
  tile.store %r, %o[] : f32, !written
  tile.return
}
