// Checks that copies for products run ahead through a ring, and that first fragments are read an iteration ahead.
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(tile.kernel(kgpu-assign-layouts,kgpu-expand-mma,kgpu-ring-copies,canonicalize))' | FileCheck %s
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(tile.kernel(kgpu-assign-layouts,kgpu-expand-mma,kgpu-ring-copies,canonicalize,kgpu-preload-fragments,kgpu-alloc-smem,kgpu-insert-barriers))' | FileCheck %s --check-prefix=PRELOAD
// RUN: kpkg-opt --pass-pipeline='builtin.module(tile.kernel(kgpu-assign-layouts,kgpu-expand-mma,kgpu-ring-copies,canonicalize,kgpu-preload-fragments,kgpu-alloc-smem,kgpu-insert-barriers))' '--remarks-filter=kgpu-ring-copies|kgpu-preload-fragments' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] operand copied ahead | Category:kgpu-ring-copies | Function=product | Remark="2 iterations ahead"
// REMARK-DAG: [Passed] operands of the next iteration read early | Category:kgpu-preload-fragments | Function=product | Remark="they are read from shared memory while tensor cores are busy"
// REMARK-DAG: [Passed] operand copied ahead | Category:kgpu-ring-copies | Function=elements | Remark="1 iteration ahead, through registers, since no four bytes of it can be copied at once"
// REMARK-DAG: [Passed] operands of the next iteration read early | Category:kgpu-preload-fragments | Function=elements | Remark="they are read from shared memory while tensor cores are busy"
// REMARK-DAG: [Passed] operand copied ahead | Category:kgpu-ring-copies | Function=one_product | Remark="2 iterations ahead"
// REMARK-DAG: [Passed] operands of the next iteration read early | Category:kgpu-preload-fragments | Function=one_product | Remark="they are read from shared memory while tensor cores are busy"
// REMARK-DAG: [Passed] operand copied ahead | Category:kgpu-ring-copies | Function=tf32_along_columns | Remark="2 iterations ahead"
// REMARK-DAG: [Passed] operands of the next iteration read early | Category:kgpu-preload-fragments | Function=tf32_along_columns | Remark="they are read from shared memory while tensor cores are busy"

!a = !tile.view<2xf16, unit = 1, align = 16, divisible = 8, index = 32>
!plain = !tile.view<2xf16, unit = 1>
!d = !tile.view<2xf32, mut, unit = 1>

// CHECK-LABEL: tile.kernel @product
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK: %[[LEFT:[0-9a-z]+]] = kgpu.alloc : !kgpu.smem<3x64x32xf16
// CHECK: %[[RIGHT:[0-9a-z]+]] = kgpu.alloc : !kgpu.smem<3x32x64xf16
// CHECK: %[[IN0:.*]] = arith.cmpi sgt, %arg3, %[[C0]]
// CHECK: kgpu.slot %[[LEFT]][%[[C0]]]
// CHECK: kgpu.async_copy %arg0[%{{.*}}, %{{.*}}] as {{.*}} if %[[IN0]] to
// CHECK: kgpu.async_copy %arg1
// CHECK: kgpu.async_commit
// CHECK: %[[IN1:.*]] = arith.cmpi sgt, %arg3, %[[C1]]
// CHECK: kgpu.slot %[[LEFT]][%[[C1]]]
// CHECK: kgpu.async_copy %arg0
// CHECK: kgpu.async_copy %arg1
// CHECK: kgpu.async_commit
// CHECK-NOT: kgpu.async_commit
// CHECK: scf.for %[[K:.*]] = %[[C0]] to %arg3 step %[[C1]] iter_args(%{{.*}} = %{{.*}}, %[[READ:.*]] = %[[C0]], %[[WRITE:.*]] = %[[C2]])
// CHECK-NEXT: kgpu.async_wait 1
// CHECK-NEXT: kgpu.barrier
// CHECK-NEXT: %[[L:.*]] = kgpu.slot %[[LEFT]][%[[READ]]]
// CHECK-NEXT: %[[R:.*]] = kgpu.slot %[[RIGHT]][%[[READ]]]
// CHECK-NEXT: %[[AHEAD:.*]] = arith.addi %[[K]], %[[C2]]
// CHECK: arith.cmpi slt, %[[AHEAD]], %arg3
// CHECK: kgpu.slot %[[LEFT]][%[[WRITE]]]
// CHECK: kgpu.async_copy
// CHECK: kgpu.async_copy
// CHECK-NEXT: kgpu.async_commit
// CHECK-NOT: tile.load
// CHECK: kgpu.local_load %[[L]] at [0, 0]
// CHECK: kgpu.local_load %[[R]] at [0, 0]
// CHECK: kgpu.mma
// CHECK: kgpu.mma
// CHECK: %[[NEXT:.*]] = arith.select
// CHECK: scf.yield %{{.*}}, %[[NEXT]], %[[READ]]
// CHECK: kgpu.async_wait 0

// One barrier per iteration, and none between copies before the loop.
// PRELOAD-LABEL: tile.kernel @product
// PRELOAD-NOT: kgpu.barrier
// PRELOAD: kgpu.async_wait 1
// PRELOAD-NEXT: kgpu.barrier
// PRELOAD: %[[A:.*]] = kgpu.local_load %{{.*}} at [0, 0]
// PRELOAD: %[[B:.*]] = kgpu.local_load %{{.*}} at [0, 0]
// PRELOAD-NOT: kgpu.barrier
// PRELOAD: scf.for {{.*}} iter_args({{.*}}, %[[A0:.*]] = %[[A]], %[[B0:.*]] = %[[B]])
// PRELOAD-NOT: kgpu.barrier
// PRELOAD: %[[A1:.*]] = kgpu.local_load %{{.*}} at [0, 16]
// PRELOAD: %[[B1:.*]] = kgpu.local_load %{{.*}} at [16, 0]
// PRELOAD: kgpu.async_copy
// PRELOAD: kgpu.async_copy
// PRELOAD-NEXT: kgpu.async_commit
// PRELOAD: %[[S0:.*]] = kgpu.mma %[[A0]], %[[B0]],
// PRELOAD-NEXT: kgpu.async_wait 1
// PRELOAD-NEXT: kgpu.barrier
// PRELOAD: %[[A2:.*]] = kgpu.local_load %{{.*}} at [0, 0]
// PRELOAD: %[[B2:.*]] = kgpu.local_load %{{.*}} at [0, 0]
// PRELOAD: %[[S1:.*]] = kgpu.mma %[[A1]], %[[B1]], %[[S0]]
// PRELOAD-NOT: kgpu.barrier
// PRELOAD: scf.yield %[[S1]], {{.*}}, %[[A2]], %[[B2]]
// PRELOAD: tile.return
tile.kernel @product(%a: !a, %b: !a, %d: !d, %count: index)
    attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 128, stages = 3>} {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %acc = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = scf.for %k = %c0 to %count step %c1 iter_args(%s = %acc) -> tensor<64x64xf32> {
    %kk = arith.muli %k, %c32 : index
    %x = tile.load %a[%c0, %kk] fill %zero : !a -> tensor<64x32xf16>
    %y = tile.load %b[%kk, %c0] fill %zero : !a -> tensor<32x64xf16>
    %t = tile.dot %x, %y, %s : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>
    scf.yield %t : tensor<64x64xf32>
  }
  tile.store %sum, %d[%c0, %c0] : tensor<64x64xf32>, !d
  tile.return
}

// Without vectors, elements pass through registers: two slots, still one barrier.
// CHECK-LABEL: tile.kernel @elements
// CHECK: kgpu.alloc : !kgpu.smem<2x64x32xf16
// CHECK: tile.load
// CHECK: kgpu.local_store
// CHECK-NOT: ahead
// CHECK: scf.for
// CHECK-NEXT: kgpu.barrier
// CHECK: %[[X:.*]] = tile.load %arg0
// CHECK: %[[Y:.*]] = tile.load %arg1
// CHECK: kgpu.mma
// CHECK: kgpu.mma
// CHECK-DAG: kgpu.local_store %[[X]], %{{.*}} ahead
// CHECK-DAG: kgpu.local_store %[[Y]], %{{.*}} ahead
// CHECK: scf.yield
// CHECK-NOT: kgpu.async_wait
// PRELOAD-LABEL: tile.kernel @elements
// PRELOAD: scf.for
// PRELOAD-NOT: kgpu.barrier
// PRELOAD: kgpu.mma
// PRELOAD: kgpu.local_store
// PRELOAD: kgpu.local_store
// PRELOAD-NEXT: kgpu.barrier
// PRELOAD: kgpu.mma
// PRELOAD-NOT: kgpu.barrier
// PRELOAD: scf.yield
tile.kernel @elements(%a: !plain, %b: !plain, %d: !d, %count: index)
    attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 128, stages = 3>} {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %acc = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = scf.for %k = %c0 to %count step %c1 iter_args(%s = %acc) -> tensor<64x64xf32> {
    %kk = arith.muli %k, %c32 : index
    %x = tile.load %a[%c0, %kk] fill %zero : !plain -> tensor<64x32xf16>
    %y = tile.load %b[%kk, %c0] fill %zero : !plain -> tensor<32x64xf16>
    %t = tile.dot %x, %y, %s : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>
    scf.yield %t : tensor<64x64xf32>
  }
  tile.store %sum, %d[%c0, %c0] : tensor<64x64xf32>, !d
  tile.return
}

// A step with one product: the wait follows the commit that it counts, so the slot that is read next is full.
// CHECK-LABEL: tile.kernel @one_product
// PRELOAD-LABEL: tile.kernel @one_product
// PRELOAD: scf.for
// PRELOAD-NOT: kgpu.async_wait
// PRELOAD: kgpu.async_copy
// PRELOAD: kgpu.async_copy
// PRELOAD-NEXT: kgpu.async_commit
// PRELOAD-NEXT: kgpu.async_wait 1
// PRELOAD-NEXT: kgpu.barrier
// PRELOAD: kgpu.local_load %{{.*}} at [0, 0]
// PRELOAD: kgpu.local_load %{{.*}} at [0, 0]
// PRELOAD: kgpu.mma
// PRELOAD: scf.yield
tile.kernel @one_product(%a: !a, %b: !a, %d: !d, %count: index)
    attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 128, stages = 3>} {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %acc = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = scf.for %k = %c0 to %count step %c1 iter_args(%s = %acc) -> tensor<64x64xf32> {
    %kk = arith.muli %k, %c16 : index
    %x = tile.load %a[%c0, %kk] fill %zero : !a -> tensor<64x16xf16>
    %y = tile.load %b[%kk, %c0] fill %zero : !a -> tensor<16x64xf16>
    %t = tile.dot %x, %y, %s : tensor<64x16xf16>, tensor<16x64xf16>, tensor<64x64xf32>
    scf.yield %t : tensor<64x64xf32>
  }
  tile.store %sum, %d[%c0, %c0] : tensor<64x64xf32>, !d
  tile.return
}

// float32 along columns, read as tf32: vectors of four elements stay contiguous in the buffer, or they could not be
// copied.
// CHECK-LABEL: tile.kernel @tf32_along_columns
// CHECK: kgpu.alloc : !kgpu.smem<3x32x64xf32, "4B 1:{{[0-9,]+}} 2:4,8,
// CHECK: kgpu.async_copy %arg1
!af = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
tile.kernel @tf32_along_columns(%a: !af, %b: !af, %d: !d, %count: index)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128, stages = 3>} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %fill = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %sum = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %zero) -> tensor<64x64xf32> {
    %at = arith.muli %k, %c32 : index
    %x = tile.load %a[%c0, %at] fill %fill : !af -> tensor<64x32xf32>
    %y = tile.load %b[%at, %c0] fill %fill : !af -> tensor<32x64xf32>
    %r = tile.dot %x, %y, %acc precision tf32 : tensor<64x32xf32>, tensor<32x64xf32>, tensor<64x64xf32>
    scf.yield %r : tensor<64x64xf32>
  }
  tile.store %sum, %d[%c0, %c0] : tensor<64x64xf32>, !d
  tile.return
}
