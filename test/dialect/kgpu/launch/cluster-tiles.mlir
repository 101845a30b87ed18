// Checks the coordinate along which pairs of CTAs take adjacent tiles: that with most bytes of shared operands.
// RUN: kpkg-opt --kgpu-configure="chip=sm_90a" --kgpu-schedule-tiles %s | FileCheck %s

!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
!sum = !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 4, index = 32>

// Tiles in one row share 128 x 64 elements, and tiles in one column share 64 x 64.
// CHECK-LABEL: tile.kernel @wide
// CHECK-SAME: #kgpu.launch<{{[^>]*}}cluster = 2
// CHECK: arith.ceildivsi %{{.*}}, %c128
// CHECK: %[[COLUMNS:.*]] = arith.ceildivsi %{{.*}}, %c64
// CHECK: %[[SOME:.*]] = arith.maxsi %[[COLUMNS]]
// CHECK: arith.ceildivsi %[[SOME]], %c2
tile.kernel @wide(%a: !in, %b: !in, %d: !out, %e: !sum) attributes {schedule = #tile.schedule<cluster = 2>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %ones = arith.constant dense<1.0> : tensor<128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %d, 0 : !out
  %columns = tile.dim %d, 1 : !out
  %depth = tile.dim %a, 1 : !in
  %tm = arith.ceildivsi %rows, %c128 : index
  %tn = arith.ceildivsi %columns, %c64 : index
  %tk = arith.ceildivsi %depth, %c64 : index
  tile.for_tiles (%i, %j) to (%tm, %tn) {
    %m = arith.muli %i, %c128 : index
    %n = arith.muli %j, %c64 : index
    %sum = scf.for %s = %c0 to %tk step %c1 iter_args(%acc = %zeros) -> tensor<128x64xf32> {
      %k = arith.muli %s, %c64 : index
      %x = tile.load %a[%m, %k] fill %zero : !in -> tensor<128x64xbf16>
      %y = tile.load %b[%k, %n] fill %zero : !in -> tensor<64x64xbf16>
      %p = tile.dot %x, %y, %acc : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      scf.yield %p : tensor<128x64xf32>
    }
    %r = arith.truncf %sum : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %r, %d[%m, %n] : tensor<128x64xbf16>, !out
  }
  tile.return
}

// A tile beyond the last column would store the row again, so this store is guarded.
// CHECK-LABEL: tile.kernel @rows_only
// CHECK-SAME: #kgpu.launch<{{[^>]*}}cluster = 2
// CHECK: %[[COUNT:.*]] = arith.ceildivsi %{{.*}}, %c64
// CHECK: %[[RANK:.*]] = kgpu.cluster_rank
// CHECK: %[[COLUMN:.*]] = arith.addi %{{.*}}, %[[RANK]]
// CHECK: %[[IS_TILE:.*]] = arith.cmpi slt, %[[COLUMN]], %[[COUNT]]
// CHECK: tile.store {{.*}}tensor<128x64xbf16>
// CHECK-NEXT: scf.if %[[IS_TILE]] {
// CHECK-NEXT: tile.store {{.*}}tensor<128xf32>
tile.kernel @rows_only(%a: !in, %b: !in, %d: !out, %e: !sum) attributes {schedule = #tile.schedule<cluster = 2>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %ones = arith.constant dense<1.0> : tensor<128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %d, 0 : !out
  %columns = tile.dim %d, 1 : !out
  %depth = tile.dim %a, 1 : !in
  %tm = arith.ceildivsi %rows, %c128 : index
  %tn = arith.ceildivsi %columns, %c64 : index
  %tk = arith.ceildivsi %depth, %c64 : index
  tile.for_tiles (%i, %j) to (%tm, %tn) {
    %m = arith.muli %i, %c128 : index
    %n = arith.muli %j, %c64 : index
    %sum = scf.for %s = %c0 to %tk step %c1 iter_args(%acc = %zeros) -> tensor<128x64xf32> {
      %k = arith.muli %s, %c64 : index
      %x = tile.load %a[%m, %k] fill %zero : !in -> tensor<128x64xbf16>
      %y = tile.load %b[%k, %n] fill %zero : !in -> tensor<64x64xbf16>
      %p = tile.dot %x, %y, %acc : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      scf.yield %p : tensor<128x64xf32>
    }
    %r = arith.truncf %sum : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %r, %d[%m, %n] : tensor<128x64xbf16>, !out
    tile.store %ones, %e[%m] : tensor<128xf32>, !sum
  }
  tile.return
}

// The column decides how long a tile takes, so pairs take tiles in one column.
// CHECK-LABEL: tile.kernel @uneven
// CHECK-SAME: #kgpu.launch<{{[^>]*}}cluster = 2
// CHECK: %[[ROWS:.*]] = arith.ceildivsi %{{.*}}, %c128
// CHECK: %[[SOME:.*]] = arith.maxsi %[[ROWS]]
// CHECK: arith.ceildivsi %[[SOME]], %c2
tile.kernel @uneven(%a: !in, %b: !in, %d: !out, %e: !sum) attributes {schedule = #tile.schedule<cluster = 2>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %ones = arith.constant dense<1.0> : tensor<128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %d, 0 : !out
  %columns = tile.dim %d, 1 : !out
  %depth = tile.dim %a, 1 : !in
  %tm = arith.ceildivsi %rows, %c128 : index
  %tn = arith.ceildivsi %columns, %c64 : index
  %tk = arith.ceildivsi %depth, %c64 : index
  tile.for_tiles (%i, %j) to (%tm, %tn) {
    %m = arith.muli %i, %c128 : index
    %n = arith.muli %j, %c64 : index
    %sum = scf.for %s = %c0 to %j step %c1 iter_args(%acc = %zeros) -> tensor<128x64xf32> {
      %k = arith.muli %s, %c64 : index
      %x = tile.load %a[%m, %k] fill %zero : !in -> tensor<128x64xbf16>
      %y = tile.load %b[%k, %n] fill %zero : !in -> tensor<64x64xbf16>
      %p = tile.dot %x, %y, %acc : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      scf.yield %p : tensor<128x64xf32>
    }
    %r = arith.truncf %sum : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %r, %d[%m, %n] : tensor<128x64xbf16>, !out
  }
  tile.return
}
