// Checks rows that a product gathers. Each thread has whole vectors of a row, coordinates of rows precede the loop, and
// copies to the ring are iterations ahead.
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(tile.kernel(kgpu-assign-layouts,kgpu-expand-mma,kgpu-ring-copies,canonicalize))' | FileCheck %s
// Elements go through registers if facts permit only single elements, or if the fill value is not zero.
// RUN: sed 's/unit = 1, align = 16, divisible = 8, index = 32>$/unit = 1, index = 32>/' %s | kpkg-opt --pass-pipeline='builtin.module(tile.kernel(kgpu-assign-layouts,kgpu-expand-mma,kgpu-ring-copies,canonicalize))' | FileCheck %s --check-prefix=SINGLE
// RUN: sed 's/gather .x\(.*\) fill .zero/gather \%x\1 fill \%one/' %s | kpkg-opt --pass-pipeline='builtin.module(tile.kernel(kgpu-assign-layouts,kgpu-expand-mma,kgpu-ring-copies,canonicalize))' | FileCheck %s --check-prefix=REGISTERS
// Nested loops over rows are merged, and the merged loop's counters run ahead with the copies.
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(tile.kernel(kgpu-merge-loops,kgpu-assign-layouts,kgpu-expand-mma,kgpu-ring-copies,canonicalize))' | FileCheck %s --check-prefix=NESTED
// RUN: kpkg-opt --pass-pipeline='builtin.module(tile.kernel(kgpu-assign-layouts,kgpu-expand-mma,kgpu-ring-copies,canonicalize))' '--remarks-filter=kgpu-ring-copies' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] operand copied ahead | Category:kgpu-ring-copies | Function=product | Remark="2 iterations ahead"
// REMARK-DAG: [Passed] operand copied ahead | Category:kgpu-ring-copies | Function=nested | Remark="2 iterations ahead"
// REMARK-DAG: [Passed] operand copied ahead | Category:kgpu-ring-copies | Function=single | Remark="2 iterations ahead"

!x = !tile.view<2xf16, unit = 1, align = 16, divisible = 8, index = 32>
!plain = !tile.view<2xf16, unit = 1, index = 32>
!rows = !tile.view<1xi32, unit = 0, index = 32>
!d = !tile.view<2xf32, mut, unit = 1>

// CHECK: #[[ROWS:layout[0-9]+]] = #kgpu.layout<"reg 1:1-4 0:32 lane 1:8-16
// CHECK-LABEL: tile.kernel @product
// CHECK: tile.broadcast %{{.*}} -> tensor<64x32xindex, #[[ROWS]]>
// CHECK: kgpu.alloc : !kgpu.smem<3x64x32xf16
// CHECK: kgpu.alloc : !kgpu.smem<3x32x64xf16
// CHECK: kgpu.async_gather %arg0{{.*}} if {{.*}} to {{.*}}[tensor<64x32xindex, #[[ROWS]]>, tensor<64x32xindex, #[[ROWS]]>], !kgpu.smem<64x32xf16
// CHECK: kgpu.async_copy %arg1
// CHECK: kgpu.async_commit
// CHECK: kgpu.async_gather %arg0
// CHECK: kgpu.async_commit
// CHECK: scf.for
// CHECK-NEXT: kgpu.async_wait
// CHECK-NEXT: kgpu.barrier
// CHECK-NOT: kgpu.cvt_layout
// CHECK: kgpu.async_gather %arg0
// CHECK: kgpu.async_copy %arg1
// CHECK-NEXT: kgpu.async_commit
// CHECK: kgpu.local_load
// CHECK: kgpu.mma
// CHECK-NOT: kgpu.local_store
// CHECK: scf.yield

// SINGLE-NOT: kgpu.async_gather
// SINGLE: tile.gather %arg0
// SINGLE-NOT: kgpu.async_gather

// REGISTERS-LABEL: tile.kernel @product
// REGISTERS-NOT: kgpu.async_gather
// REGISTERS: scf.for
// REGISTERS: kgpu.barrier
// REGISTERS: %[[AHEAD:.*]] = tile.gather %arg0
// REGISTERS: kgpu.mma
// REGISTERS: kgpu.local_store %[[AHEAD]], %{{.*}} ahead
// REGISTERS: scf.yield
tile.kernel @product(%x: !x, %b: !x, %numbers: !rows, %d: !d, %count: index)
    attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 128, stages = 3>} {
  %zero = arith.constant 0.0 : f16
  %one = arith.constant 1.0 : f16
  %none = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %acc = arith.constant dense<0.0> : tensor<64x64xf32>
  %n = tile.load %numbers[%c0] fill %none : !rows -> tensor<64xi32>
  %column = tile.reshape %n : tensor<64xi32> -> tensor<64x1xi32>
  %sum = scf.for %k = %c0 to %count step %c1 iter_args(%s = %acc) -> tensor<64x64xf32> {
    %at = arith.muli %k, %c32 : index
    %wide = arith.index_cast %column : tensor<64x1xi32> to tensor<64x1xindex>
    %r = tile.broadcast %wide : tensor<64x1xindex> -> tensor<64x32xindex>
    %i = tile.iota : tensor<32xindex>
    %line = tile.reshape %i : tensor<32xindex> -> tensor<1x32xindex>
    %first = tile.splat %at : index -> tensor<1x32xindex>
    %c = arith.addi %first, %line : tensor<1x32xindex>
    %cb = tile.broadcast %c : tensor<1x32xindex> -> tensor<64x32xindex>
    %u = tile.gather %x[%r, %cb] fill %zero : !x, tensor<64x32xindex> -> tensor<64x32xf16>
    %v = tile.load %b[%at, %c0] fill %zero : !x -> tensor<32x64xf16>
    %t = tile.dot %u, %v, %s : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>
    scf.yield %t : tensor<64x64xf32>
  }
  tile.store %sum, %d[%c0, %c0] : tensor<64x64xf32>, !d
  tile.return
}

// NESTED-LABEL: tile.kernel @nested
// NESTED: kgpu.async_gather %arg0
// NESTED: %[[J1:.*]] = arith.select
// NESTED: %[[I1:.*]] = arith.select
// NESTED: kgpu.async_gather %arg0
// NESTED: %[[J2:.*]] = arith.select
// NESTED: %[[I2:.*]] = arith.select
// NESTED: scf.for %{{.*}} iter_args(%{{[a-z0-9]+}} = %{{[a-z0-9]+}}, %[[I:[a-z0-9]+]] = %[[I2]], %[[J:[a-z0-9]+]] = %[[J2]], %{{[a-z0-9]+}} = %c0{{.*}}, %{{[a-z0-9]+}} = %c2{{[_0-9]*}})
// NESTED-NOT: scf.for
// NESTED: kgpu.async_wait 1
// NESTED: arith.muli %[[J]]
// NESTED: kgpu.async_gather %arg0
// NESTED: kgpu.mma
// NESTED: scf.yield
// NESTED-LABEL: tile.kernel @single
// NESTED-COUNT-2: scf.for
tile.kernel @nested(%x: !x, %b: !x, %d: !d, %rows: index, %count: index)
    attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 128, stages = 3>} {
  %zero = arith.constant 0.0 : f16
  %one = arith.constant 1.0 : f16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %acc = arith.constant dense<0.0> : tensor<64x64xf32>
  %n = tile.iota : tensor<64xindex>
  %wide = tile.reshape %n : tensor<64xindex> -> tensor<64x1xindex>
  %sum = scf.for %i = %c0 to %rows step %c1 iter_args(%q = %acc) -> tensor<64x64xf32> {
    %tap = tile.splat %i : index -> tensor<64x1xindex>
    %moved = arith.addi %wide, %tap : tensor<64x1xindex>
    %inner = scf.for %k = %c0 to %count step %c1 iter_args(%s = %q) -> tensor<64x64xf32> {
      %at = arith.muli %k, %c32 : index
      %r = tile.broadcast %moved : tensor<64x1xindex> -> tensor<64x32xindex>
      %iota = tile.iota : tensor<32xindex>
      %line = tile.reshape %iota : tensor<32xindex> -> tensor<1x32xindex>
      %first = tile.splat %at : index -> tensor<1x32xindex>
      %c = arith.addi %first, %line : tensor<1x32xindex>
      %cb = tile.broadcast %c : tensor<1x32xindex> -> tensor<64x32xindex>
      %u = tile.gather %x[%r, %cb] fill %zero : !x, tensor<64x32xindex> -> tensor<64x32xf16>
      %v = tile.load %b[%at, %c0] fill %zero : !x -> tensor<32x64xf16>
      %t = tile.dot %u, %v, %s : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>
      scf.yield %t : tensor<64x64xf32>
    }
    scf.yield %inner : tensor<64x64xf32>
  }
  tile.store %sum, %d[%c0, %c0] : tensor<64x64xf32>, !d
  tile.return
}

// Loops with loads instead of gathers stay nested.
tile.kernel @single(%x: !x, %b: !x, %d: !d, %rows: index, %count: index)
    attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 128, stages = 3>} {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %acc = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = scf.for %i = %c0 to %rows step %c1 iter_args(%q = %acc) -> tensor<64x64xf32> {
    %inner = scf.for %k = %c0 to %count step %c1 iter_args(%s = %q) -> tensor<64x64xf32> {
      %at = arith.muli %k, %c32 : index
      %u = tile.load %x[%i, %at] fill %zero : !x -> tensor<64x32xf16>
      %v = tile.load %b[%at, %c0] fill %zero : !x -> tensor<32x64xf16>
      %t = tile.dot %u, %v, %s : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>
      scf.yield %t : tensor<64x64xf32>
    }
    scf.yield %inner : tensor<64x64xf32>
  }
  tile.store %sum, %d[%c0, %c0] : tensor<64x64xf32>, !d
  tile.return
}
