// Checks how tiles of an output are assigned to CTAs; those of a product in groups of 16 rows.
// RUN: kpkg-opt --kgpu-schedule-tiles --canonicalize %s | FileCheck %s
// RUN: kpkg-opt --kgpu-schedule-tiles --canonicalize '--remarks-filter=kgpu-schedule-tiles' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] order of tiles | Category:kgpu-schedule-tiles | Function=product | Remark="tiles of 16 rows follow each other, and share operands in the L2 cache"
// REMARK-DAG: [Passed] order of tiles | Category:kgpu-schedule-tiles | Function=uneven | Remark="each block takes tiles from the first to the last and back, since some take longer"
// REMARK-DAG: [Passed] order of tiles | Category:kgpu-schedule-tiles | Function=triangle | Remark="by the number of iterations of a tile, so that all blocks take equally long"
// REMARK-DAG: [Passed] order of tiles | Category:kgpu-schedule-tiles | Function=in_order | Remark="by the number of iterations of a tile, so that all blocks take equally long"

// CHECK-LABEL: tile.kernel @copy
// CHECK: %[[ID:.*]] = kgpu.cta_id
// CHECK: %[[COUNT:.*]] = kgpu.cta_count
// CHECK: scf.for %[[TILE:.*]] = %[[ID]] to %{{.*}} step %[[COUNT]]
// CHECK: %[[COLUMN:.*]] = arith.remui %[[TILE]], %[[COLUMNS:.*]] : index
// CHECK: %[[ROW:.*]] = arith.divui %[[TILE]], %[[COLUMNS]] : index
// CHECK: tile.load %{{.*}}[%[[ROW]], %[[COLUMN]]]
// CHECK-NOT: for_tiles
tile.kernel @copy(%x: !tile.view<2xf32>, %y: !tile.view<2xf32, mut>, %rows: index, %columns: index)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  tile.for_tiles (%m, %n) to (%rows, %columns) {
    %zero = arith.constant 0.0 : f32
    %v = tile.load %x[%m, %n] fill %zero : !tile.view<2xf32> -> tensor<1x1xf32>
    tile.store %v, %y[%m, %n] : tensor<1x1xf32>, !tile.view<2xf32, mut>
  }
  tile.return
}

// The last group may have fewer rows.
// CHECK-LABEL: tile.kernel @product
// CHECK-DAG: %[[HEIGHT:.*]] = arith.constant 16 : index
// CHECK: scf.for
// CHECK: %[[AREA:.*]] = arith.muli %[[COLUMNS:.*]], %[[HEIGHT]] : index
// CHECK: %[[GROUP:.*]] = arith.divui %[[NUMBER:.*]], %[[AREA]] : index
// CHECK: %[[FIRST:.*]] = arith.muli %[[GROUP]], %[[HEIGHT]] : index
// CHECK: %[[LEFT:.*]] = arith.subi %{{.*}}, %[[FIRST]] : index
// CHECK: %[[LINES:.*]] = arith.minsi %[[LEFT]], %[[HEIGHT]] : index
// CHECK: %[[WITHIN:.*]] = arith.remui %[[NUMBER]], %[[AREA]] : index
// CHECK: %[[LINE:.*]] = arith.remui %[[WITHIN]], %[[LINES]] : index
// CHECK: %[[M:.*]] = arith.addi %[[FIRST]], %[[LINE]] : index
// CHECK: %[[N:.*]] = arith.divui %[[WITHIN]], %[[LINES]] : index
// CHECK: tile.load %{{.*}}[%[[M]], %{{.*}}]
// CHECK: tile.load %{{.*}}[%{{.*}}, %[[N]]]
tile.kernel @product(%a: !tile.view<2xf32>, %b: !tile.view<2xf32>, %y: !tile.view<2xf32, mut>, %rows: index, %columns: index)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  tile.for_tiles (%m, %n) to (%rows, %columns) {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %zeros = arith.constant dense<0.0> : tensor<4x4xf32>
    %u = tile.load %a[%m, %c0] fill %zero : !tile.view<2xf32> -> tensor<4x4xf32>
    %v = tile.load %b[%c0, %n] fill %zero : !tile.view<2xf32> -> tensor<4x4xf32>
    %d = tile.dot %u, %v, %zeros : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
    tile.store %d, %y[%m, %n] : tensor<4x4xf32>, !tile.view<2xf32, mut>
  }
  tile.return
}

// The tile's coordinate decides the trip count of a loop: CTAs take tiles from the first to the last, then back.
// CHECK-LABEL: tile.kernel @uneven
// CHECK: %[[ID:.*]] = kgpu.cta_id
// CHECK: %[[COUNT:.*]] = kgpu.cta_count
// CHECK: %[[LAST:.*]] = arith.subi %[[COUNT]], %{{.*}} : index
// CHECK: %[[MIRRORED:.*]] = arith.subi %[[LAST]], %[[ID]] : index
// CHECK: %[[WHOLE:.*]] = arith.divui %[[TOTAL:.*]], %[[COUNT]] : index
// CHECK: %[[REST:.*]] = arith.remui %[[TOTAL]], %[[COUNT]] : index
// CHECK: arith.cmpi ult, %{{.*}}, %[[REST]] : index
// CHECK: scf.for %[[ROUND:.*]] = %{{.*}} to %{{.*}} step
// CHECK: %[[BEFORE:.*]] = arith.muli %[[ROUND]], %[[COUNT]] : index
// CHECK: %[[PLACE:.*]] = arith.select %{{.*}}, %[[MIRRORED]], %[[ID]] : index
// CHECK: %[[TILE:.*]] = arith.addi %[[BEFORE]], %[[PLACE]] : index
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[TILE]] step
tile.kernel @uneven(%x: !tile.view<2xf32>, %y: !tile.view<2xf32, mut>, %rows: index)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  tile.for_tiles (%m) to (%rows) {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant dense<0.0> : tensor<1x1xf32>
    %sum = scf.for %i = %c0 to %m step %c1 iter_args(%s = %none) -> tensor<1x1xf32> {
      %v = tile.load %x[%m, %i] fill %zero : !tile.view<2xf32> -> tensor<1x1xf32>
      %t = arith.addf %s, %v : tensor<1x1xf32>
      scf.yield %t : tensor<1x1xf32>
    }
    tile.store %sum, %y[%m, %c0] : tensor<1x1xf32>, !tile.view<2xf32, mut>
  }
  tile.return
}

// The row decides the trip count of a loop with a product. CTAs take the tiles of a line in pairs, the longest with the
// shortest. Tiles of the last lines come singly, longest first over all these lines. The loop's bounds determine which
// end is longer.
// CHECK-LABEL: tile.kernel @triangle
// CHECK: %[[LAST:.*]] = arith.subi %{{.*}}, %c1{{.*}} : index
// CHECK: %[[MOST:.*]] = arith.maxsi %[[LAST]], %c0
// CHECK: %[[LONGER:.*]] = arith.cmpi sge, %[[MOST]], %{{.*}} : index
// CHECK: %[[COUNT:.*]] = kgpu.cta_count
// CHECK: %[[STEP:.*]] = arith.index_cast %[[COUNT]] : index to i32
// CHECK: scf.for %[[TURN:.*]] = %{{.*}} to %{{.*}} step %{{.*}} : i32
// CHECK: %[[HALF:.*]] = arith.shrui %[[TURN]], %{{.*}} : i32
// CHECK: %[[ROUND:.*]] = arith.muli %[[HALF]], %[[STEP]] : i32
// CHECK: %[[DEPTH:.*]] = arith.shrui %[[WITHIN:.*]], %{{.*}} : i32
// CHECK: %[[FAR:.*]] = arith.subi %{{.*}}, %[[DEPTH]] : i32
// CHECK: %[[PAIR:.*]] = arith.select %{{.*}}, %[[DEPTH]], %[[FAR]] : i32
// CHECK: %[[RANK:.*]] = arith.divui %[[NUMBER:.*]], %[[LINES:.*]] : i32
// CHECK: arith.remui %[[NUMBER]], %[[LINES]] : i32
// CHECK: %[[SINGLE:.*]] = arith.select %[[LONGER]], %{{.*}}, %[[RANK]] : i32
// CHECK: %[[TILE:.*]] = arith.select %{{.*}}, %[[PAIR]], %[[SINGLE]] : i32
// CHECK: %[[ROW:.*]] = arith.index_cast %[[TILE]] : i32 to index
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[ROW]] step
tile.kernel @triangle(%x: !tile.view<2xf32>, %y: !tile.view<3xf32, mut>, %heads: index, %rows: index)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  tile.for_tiles (%h, %m) to (%heads, %rows) {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant dense<0.0> : tensor<4x4xf32>
    %sum = scf.for %i = %c0 to %m step %c1 iter_args(%s = %none) -> tensor<4x4xf32> {
      %u = tile.load %x[%m, %i] fill %zero : !tile.view<2xf32> -> tensor<4x4xf32>
      %t = tile.dot %u, %u, %s : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
      scf.yield %t : tensor<4x4xf32>
    }
    %line = tile.drop %y [0] at(%h) : !tile.view<3xf32, mut> -> !tile.view<2xf32, mut>
    tile.store %sum, %line[%m, %c0] : tensor<4x4xf32>, !tile.view<2xf32, mut>
  }
  tile.return
}

// The same for a dynamic tile scheduler. Numbers follow an order: line after line, and the last lines longest first.
// CHECK-LABEL: tile.kernel @in_order
// CHECK: %[[LONGER:.*]] = arith.cmpi sge
// CHECK: arith.andi
// CHECK: %[[EARLY:.*]] = arith.muli %{{.*}}, %[[LENGTH:.*]] : i32
// CHECK-NEXT: %[[ID:.*]] = kgpu.cta_id
// CHECK: scf.for %[[NUMBER:.*]] = %[[ID]] to %{{.*}} step %{{.*}} {
// CHECK: %[[PLACE:.*]] = arith.index_cast %[[NUMBER]] : index to i32
// CHECK: %[[IS_EARLY:.*]] = arith.cmpi slt, %[[PLACE]], %[[EARLY]] : i32
// CHECK: %[[RANK:.*]] = arith.subi %[[PLACE]], %[[EARLY]] : i32
// CHECK: %[[LINE:.*]] = arith.divui %[[PLACE]], %[[LENGTH]] : i32
// CHECK: arith.select %[[IS_EARLY]], %[[LINE]], %{{.*}} : i32
// CHECK: %[[WITHIN:.*]] = arith.remui %[[PLACE]], %[[LENGTH]] : i32
// CHECK: %[[DEPTH:.*]] = arith.divui %[[RANK]], %{{.*}} : i32
// CHECK: %[[AT:.*]] = arith.select %[[IS_EARLY]], %[[WITHIN]], %[[DEPTH]] : i32
// CHECK: arith.select %[[LONGER]], %{{.*}}, %[[AT]] : i32
tile.kernel @in_order(%x: !tile.view<2xf32>, %y: !tile.view<3xf32, mut>, %heads: index, %rows: index)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, dynamic, consumers = 1>} {
  tile.for_tiles (%h, %m) to (%heads, %rows) {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant dense<0.0> : tensor<4x4xf32>
    %sum = scf.for %i = %c0 to %m step %c1 iter_args(%s = %none) -> tensor<4x4xf32> {
      %u = tile.load %x[%m, %i] fill %zero : !tile.view<2xf32> -> tensor<4x4xf32>
      %t = tile.dot %u, %u, %s : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
      scf.yield %t : tensor<4x4xf32>
    }
    %line = tile.drop %y [0] at(%h) : !tile.view<3xf32, mut> -> !tile.view<2xf32, mut>
    tile.store %sum, %line[%m, %c0] : tensor<4x4xf32>, !tile.view<2xf32, mut>
  }
  tile.return
}
