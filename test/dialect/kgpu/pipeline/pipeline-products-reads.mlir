// Checks that loops that load masks in some of their iterations are software-pipelined; loops that gather are not.
// RUN: kpkg-opt --kgpu-configure=chip=sm_90a --kgpu-schedule-tiles --kgpu-assign-layouts --canonicalize --cse --kgpu-pipeline-products %s | FileCheck %s
// RUN: kpkg-opt --kgpu-configure=chip=sm_90a --kgpu-schedule-tiles --kgpu-assign-layouts --canonicalize --cse --kgpu-pipeline-products '--remarks-filter=kgpu-pipeline-products' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] products of two iterations in flight | Category:kgpu-pipeline-products | Function=masked | Remark="its second product runs beside the arithmetic of the next iteration"
// REMARK-DAG: [Missed] products of two iterations in flight | Category:kgpu-pipeline-products | Function=gathered | Reason="it stores, gathers, or has another effect, which cannot run an iteration earlier"

// The first iteration's mask is read before the loop, under the same condition.
// CHECK-LABEL: tile.kernel @masked
// CHECK: tile.dot
// CHECK: scf.if
// CHECK: tile.load %arg4
// CHECK: scf.for
// CHECK: %[[S:.*]] = tile.dot
// CHECK: tile.dot
// CHECK: scf.if
// CHECK: tile.load %arg4
// CHECK: arith.select %{{.*}}, %[[S]]
// CHECK: scf.yield
// CHECK: tile.dot
// CHECK: tile.return

// CHECK-LABEL: tile.kernel @gathered
// CHECK-NOT: tile.dot
// CHECK: scf.for
// CHECK: tile.dot
// CHECK: tile.gather
// CHECK: tile.dot
// CHECK: scf.yield
// CHECK-NOT: tile.dot
// CHECK: tile.return
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!ids = !tile.view<1xi32, unit = 0, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @masked(%q: !in, %k: !in, %v: !in, %y: !out, %ids: !ids, %blocks: index, %whole: index) {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %zeros = arith.constant dense<0.0> : tensor<128x128xf32>
  %least = arith.constant dense<0xFF800000> : tensor<128x1xf32>
  %hidden = arith.constant dense<0xFF800000> : tensor<128x128xf32>
  %rows = tile.dim %y, 0 : !out
  %tiles = arith.ceildivsi %rows, %c128 : index
  tile.for_tiles (%i) to (%tiles) {
    %first = arith.muli %i, %c128 : index
    %u = tile.load %q[%first, %c0] fill %zero : !in -> tensor<128x128xbf16>
    %result:2 = scf.for %j = %c0 to %blocks step %c1 iter_args(%top = %least, %sum = %zeros) -> (tensor<128x1xf32>, tensor<128x128xf32>) {
      %row = arith.muli %j, %c128 : index
      %kj = tile.load %k[%row, %c0] fill %zero : !in -> tensor<128x128xbf16>
      %kt = tile.permute %kj [1, 0] : tensor<128x128xbf16> -> tensor<128x128xbf16>
      %s = tile.dot %u, %kt, %zeros : tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xf32>
      %part = arith.cmpi slt, %j, %whole : index
      %t = scf.if %part -> (tensor<128x128xf32>) {
        %own = tile.load %ids[%row] fill %none : !ids -> tensor<128xi32>
        %line = tile.reshape %own : tensor<128xi32> -> tensor<1x128xi32>
        %wide = tile.broadcast %line : tensor<1x128xi32> -> tensor<128x128xi32>
        %nothing = tile.splat %none : i32 -> tensor<128x128xi32>
        %seen = arith.cmpi ne, %wide, %nothing : tensor<128x128xi32>
        %masked = arith.select %seen, %s, %hidden : tensor<128x128xi1>, tensor<128x128xf32>
        scf.yield %masked : tensor<128x128xf32>
      } else {
        scf.yield %s : tensor<128x128xf32>
      }
      %m = tile.reduce max %t axis 1 : tensor<128x128xf32> -> tensor<128x1xf32>
      %new = arith.maximumf %top, %m : tensor<128x1xf32>
      %all = tile.broadcast %new : tensor<128x1xf32> -> tensor<128x128xf32>
      %d = arith.subf %t, %all : tensor<128x128xf32>
      %p = arith.truncf %d : tensor<128x128xf32> to tensor<128x128xbf16>
      %x = arith.mulf %sum, %all : tensor<128x128xf32>
      %vj = tile.load %v[%row, %c0] fill %zero : !in -> tensor<128x128xbf16>
      %o = tile.dot %p, %vj, %x : tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xf32>
      scf.yield %new, %o : tensor<128x1xf32>, tensor<128x128xf32>
    }
    %r = arith.truncf %result#1 : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %r, %y[%first, %c0] : tensor<128x128xbf16>, !out
  }
  tile.return
}

tile.kernel @gathered(%q: !in, %k: !in, %v: !in, %y: !out, %ids: !ids, %blocks: index) {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %zeros = arith.constant dense<0.0> : tensor<128x128xf32>
  %least = arith.constant dense<0xFF800000> : tensor<128x1xf32>
  %hidden = arith.constant dense<0xFF800000> : tensor<128x128xf32>
  %rows = tile.dim %y, 0 : !out
  %tiles = arith.ceildivsi %rows, %c128 : index
  tile.for_tiles (%i) to (%tiles) {
    %first = arith.muli %i, %c128 : index
    %u = tile.load %q[%first, %c0] fill %zero : !in -> tensor<128x128xbf16>
    %result:2 = scf.for %j = %c0 to %blocks step %c1 iter_args(%top = %least, %sum = %zeros) -> (tensor<128x1xf32>, tensor<128x128xf32>) {
      %row = arith.muli %j, %c128 : index
      %kj = tile.load %k[%row, %c0] fill %zero : !in -> tensor<128x128xbf16>
      %kt = tile.permute %kj [1, 0] : tensor<128x128xbf16> -> tensor<128x128xbf16>
      %s = tile.dot %u, %kt, %zeros : tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xf32>
      %places = tile.iota : tensor<128xindex>
      %line = tile.reshape %places : tensor<128xindex> -> tensor<1x128xindex>
      %own = tile.gather %ids[%line] fill %none : !ids, tensor<1x128xindex> -> tensor<1x128xi32>
      %wide = tile.broadcast %own : tensor<1x128xi32> -> tensor<128x128xi32>
      %nothing = tile.splat %none : i32 -> tensor<128x128xi32>
      %seen = arith.cmpi ne, %wide, %nothing : tensor<128x128xi32>
      %t = arith.select %seen, %s, %hidden : tensor<128x128xi1>, tensor<128x128xf32>
      %m = tile.reduce max %t axis 1 : tensor<128x128xf32> -> tensor<128x1xf32>
      %new = arith.maximumf %top, %m : tensor<128x1xf32>
      %all = tile.broadcast %new : tensor<128x1xf32> -> tensor<128x128xf32>
      %d = arith.subf %t, %all : tensor<128x128xf32>
      %p = arith.truncf %d : tensor<128x128xf32> to tensor<128x128xbf16>
      %x = arith.mulf %sum, %all : tensor<128x128xf32>
      %vj = tile.load %v[%row, %c0] fill %zero : !in -> tensor<128x128xbf16>
      %o = tile.dot %p, %vj, %x : tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xf32>
      scf.yield %new, %o : tensor<128x1xf32>, tensor<128x128xf32>
    }
    %r = arith.truncf %result#1 : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %r, %y[%first, %c0] : tensor<128x128xbf16>, !out
  }
  tile.return
}
