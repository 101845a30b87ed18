// Checks that nested loops around a product whose operands are copied ahead are merged.
// RUN: kpkg-opt --kgpu-merge-loops --canonicalize %s | FileCheck %s
// RUN: kpkg-opt --kgpu-merge-loops --canonicalize '--remarks-filter=kgpu-merge-loops' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] nested loops as one | Category:kgpu-merge-loops | Function=nested | Remark="operands are copied ahead across the ends of the inner loop"
// REMARK-DAG: [Missed] nested loops as one | Category:kgpu-merge-loops | Function=others | Reason="the inner loop's bound depends on the outer loop"
// REMARK-DAG: [Missed] nested loops as one | Category:kgpu-merge-loops | Function=others | Reason="the outer loop does more than run the inner one"
// REMARK-DAG: [Missed] nested loops as one | Category:kgpu-merge-loops | Function=others | Reason="it has several products, which wait for each other anyway"

// CHECK-LABEL: tile.kernel @nested
// CHECK: %[[BOUND:.*]] = arith.addi %arg3, %c1
// CHECK: %[[ROWS:.*]] = arith.maxsi %arg2, %c0
// CHECK: %[[TRIPS:.*]] = arith.maxsi %[[BOUND]], %c0
// CHECK: %[[ALL:.*]] = arith.muli %[[ROWS]], %[[TRIPS]]
// CHECK: scf.for %{{.*}} = %c0 to %[[ALL]] step %c1 iter_args(%[[SUM:.*]] = %{{.*}}, %[[I:.*]] = %c0, %[[J:.*]] = %c0)
// CHECK: %[[SCALED:.*]] = arith.muli %[[I]], %arg3
// CHECK: tile.load %arg0[%[[SCALED]], %[[J]]]
// CHECK: %[[DOT:.*]] = tile.dot {{.*}}, %[[SUM]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[J]], %c1
// CHECK: %[[PASSES:.*]] = arith.cmpi eq, %[[NEXT]], %[[BOUND]]
// CHECK: %[[COLUMN:.*]] = arith.select %[[PASSES]], %c0, %[[NEXT]]
// CHECK: %[[MORE:.*]] = arith.addi %[[I]], %c1
// CHECK: %[[ROW:.*]] = arith.select %[[PASSES]], %[[MORE]], %[[I]]
// CHECK: scf.yield %[[DOT]], %[[ROW]], %[[COLUMN]]
tile.kernel @nested(%x: !tile.view<2xbf16>, %y: !tile.view<2xf32, mut>, %rows: index, %columns: index)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, consumers = 1>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %sum = scf.for %i = %c0 to %rows step %c1 iter_args(%s = %zeros) -> tensor<64x64xf32> {
    %bound = arith.addi %columns, %c1 : index
    %scaled = arith.muli %i, %columns : index
    %inner = scf.for %j = %c0 to %bound step %c1 iter_args(%t = %s) -> tensor<64x64xf32> {
      %v = tile.load %x[%scaled, %j] fill %zero : !tile.view<2xbf16> -> tensor<64x64xbf16>
      %d = tile.dot %v, %v, %t : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    scf.yield %inner : tensor<64x64xf32>
  }
  tile.store %sum, %y[%c0, %c0] : tensor<64x64xf32>, !tile.view<2xf32, mut>
  tile.return
}

// Loops stay nested if the inner trip count depends on the outer loop, the outer loop does more, or there are two
// products.
// CHECK-LABEL: tile.kernel @others
// CHECK-COUNT-6: scf.for
// CHECK-NOT: scf.for
tile.kernel @others(%x: !tile.view<2xbf16>, %y: !tile.view<2xf32, mut>, %rows: index)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, consumers = 1>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %sum = scf.for %i = %c0 to %rows step %c1 iter_args(%s = %zeros) -> tensor<64x64xf32> {
    %inner = scf.for %j = %c0 to %i step %c1 iter_args(%t = %s) -> tensor<64x64xf32> {
      %v = tile.load %x[%i, %j] fill %zero : !tile.view<2xbf16> -> tensor<64x64xbf16>
      %d = tile.dot %v, %v, %t : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    scf.yield %inner : tensor<64x64xf32>
  }
  scf.for %i = %c0 to %rows step %c1 {
    %inner = scf.for %j = %c0 to %rows step %c1 iter_args(%t = %sum) -> tensor<64x64xf32> {
      %v = tile.load %x[%i, %j] fill %zero : !tile.view<2xbf16> -> tensor<64x64xbf16>
      %d = tile.dot %v, %v, %t : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    tile.store %inner, %y[%i, %c0] : tensor<64x64xf32>, !tile.view<2xf32, mut>
  }
  %pair = scf.for %i = %c0 to %rows step %c1 iter_args(%s = %zeros) -> tensor<64x64xf32> {
    %inner = scf.for %j = %c0 to %rows step %c1 iter_args(%t = %s) -> tensor<64x64xf32> {
      %v = tile.load %x[%i, %j] fill %zero : !tile.view<2xbf16> -> tensor<64x64xbf16>
      %d = tile.dot %v, %v, %t : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      %e = tile.dot %v, %v, %d : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    scf.yield %inner : tensor<64x64xf32>
  }
  tile.store %pair, %y[%c0, %c0] : tensor<64x64xf32>, !tile.view<2xf32, mut>
  tile.return
}
