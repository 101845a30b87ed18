// Checks that loads stand together before ops that wait.
// RUN: kpkg-opt --kgpu-hoist-loads %s | FileCheck %s
// RUN: kpkg-opt --kgpu-hoist-loads '--remarks-filter=kgpu-hoist-loads' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] load before the kernel waits | Category:kgpu-hoist-loads | Function=weights | Remark="it is issued together with the first load"
// REMARK-DAG: [Missed] load before the kernel waits | Category:kgpu-hoist-loads | Function=stays | Reason="the kernel may write to the tensor"

!row = !tile.view<2xf32>
!vector = !tile.view<1xf32>
!out = !tile.view<2xf32, mut>

// CHECK-LABEL: tile.kernel @weights
// CHECK: tile.load %arg0
// CHECK-NEXT: arith.muli
// CHECK-NEXT: tile.load %arg1
// CHECK-NEXT: tile.reduce
tile.kernel @weights(%x: !row, %w: !vector, %y: !out, %n: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 64, early_loads>, kgpu.target = #kgpu.target<"sm_90a">} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %v = tile.load %x[%row, %c0] fill %zero : !row -> tensor<1x256xf32>
  %s = tile.reduce sum %v axis 1 : tensor<1x256xf32> -> tensor<1x1xf32>
  %start = arith.muli %n, %n : index
  %u = tile.load %w[%start] fill %zero : !vector -> tensor<256xf32>
  %r = tile.reshape %u : tensor<256xf32> -> tensor<1x256xf32>
  %b = tile.broadcast %s : tensor<1x1xf32> -> tensor<1x256xf32>
  %p = arith.mulf %r, %b : tensor<1x256xf32>
  tile.store %p, %y[%row, %c0] : tensor<1x256xf32>, !out
  tile.return
}

// Loads from mutable views stay, and so do loads that depend on the result of a reduction.
// CHECK-LABEL: tile.kernel @stays
// CHECK: tile.load %arg0
// CHECK-NEXT: tile.reduce
// CHECK: tile.load %arg1
tile.kernel @stays(%x: !row, %y: !out) attributes {kgpu.launch = #kgpu.launch<threads = 64, early_loads>, kgpu.target = #kgpu.target<"sm_90a">} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !row -> tensor<1x256xf32>
  %s = tile.reduce sum %v axis 1 : tensor<1x256xf32> -> tensor<1x1xf32>
  %u = tile.load %y[%c0, %c0] fill %zero : !out -> tensor<1x256xf32>
  %b = tile.broadcast %s : tensor<1x1xf32> -> tensor<1x256xf32>
  %p = arith.mulf %u, %b : tensor<1x256xf32>
  tile.store %p, %y[%c0, %c0] : tensor<1x256xf32>, !out
  tile.return
}
