// Checks that loops are not software-pipelined if the second product reads 8 bits from registers and has few columns.
// With 256 columns they are.
// RUN: kpkg-opt --kgpu-configure=chip=sm_90a --kgpu-schedule-tiles --kgpu-assign-layouts --canonicalize --cse --kgpu-pipeline-products %s | FileCheck %s
// RUN: kpkg-opt --kgpu-configure=chip=sm_90a --kgpu-schedule-tiles --kgpu-assign-layouts --canonicalize --cse --kgpu-pipeline-products '--remarks-filter=kgpu-pipeline-products' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Missed] products of two iterations in flight | Category:kgpu-pipeline-products | Function=few | Reason="its second product has 8-bit operands and at most 128 columns, and is shorter than the delay"
// REMARK-DAG: [Passed] products of two iterations in flight | Category:kgpu-pipeline-products | Function=many | Remark="its second product runs beside the arithmetic of the next iteration"

// CHECK-LABEL: tile.kernel @few
// CHECK-NOT: tile.dot
// CHECK: scf.for {{.*}} iter_args
// CHECK: %[[S:.*]] = tile.dot
// CHECK: tile.reduce max %[[S]]
// CHECK: arith.truncf
// CHECK: %[[O:.*]] = tile.dot
// CHECK: scf.yield %{{.*}}, %[[O]]
// CHECK-NOT: tile.dot
// CHECK: tile.return
!in = !tile.view<2xf8E4M3FN, unit = 1, align = 16, divisible = 16, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @few(%q: !in, %k: !in, %v: !in, %y: !out, %blocks: index) {
  %zero = arith.constant 0.0 : f8E4M3FN
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %zeros = arith.constant dense<0.0> : tensor<128x128xf32>
  %least = arith.constant dense<0xFF800000> : tensor<128x1xf32>
  %rows = tile.dim %y, 0 : !out
  %tiles = arith.ceildivsi %rows, %c128 : index
  tile.for_tiles (%i) to (%tiles) {
    %first = arith.muli %i, %c128 : index
    %u = tile.load %q[%first, %c0] fill %zero : !in -> tensor<128x128xf8E4M3FN>
    %result:2 = scf.for %j = %c0 to %blocks step %c1 iter_args(%top = %least, %sum = %zeros) -> (tensor<128x1xf32>, tensor<128x128xf32>) {
      %row = arith.muli %j, %c128 : index
      %kj = tile.load %k[%row, %c0] fill %zero : !in -> tensor<128x128xf8E4M3FN>
      %kt = tile.permute %kj [1, 0] : tensor<128x128xf8E4M3FN> -> tensor<128x128xf8E4M3FN>
      %s = tile.dot %u, %kt, %zeros : tensor<128x128xf8E4M3FN>, tensor<128x128xf8E4M3FN>, tensor<128x128xf32>
      %m = tile.reduce max %s axis 1 : tensor<128x128xf32> -> tensor<128x1xf32>
      %new = arith.maximumf %top, %m : tensor<128x1xf32>
      %wide = tile.broadcast %new : tensor<128x1xf32> -> tensor<128x128xf32>
      %d = arith.subf %s, %wide : tensor<128x128xf32>
      %p = arith.truncf %d : tensor<128x128xf32> to tensor<128x128xf8E4M3FN>
      %x = arith.mulf %sum, %wide : tensor<128x128xf32>
      %vj = tile.load %v[%c0, %row] fill %zero : !in -> tensor<128x128xf8E4M3FN>
      %vt = tile.permute %vj [1, 0] : tensor<128x128xf8E4M3FN> -> tensor<128x128xf8E4M3FN>
      %o = tile.dot %p, %vt, %x : tensor<128x128xf8E4M3FN>, tensor<128x128xf8E4M3FN>, tensor<128x128xf32>
      scf.yield %new, %o : tensor<128x1xf32>, tensor<128x128xf32>
    }
    %narrow = arith.truncf %result#1 : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %narrow, %y[%first, %c0] : tensor<128x128xbf16>, !out
  }
  tile.return
}

// CHECK-LABEL: tile.kernel @many
// CHECK: tile.dot
// CHECK: scf.for {{.*}} iter_args
// CHECK: tile.dot
// CHECK: tile.dot
// CHECK: scf.yield
// CHECK: tile.dot
tile.kernel @many(%q: !in, %k: !in, %v: !in, %y: !out, %blocks: index) {
  %zero = arith.constant 0.0 : f8E4M3FN
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %zeros = arith.constant dense<0.0> : tensor<128x128xf32>
  %sums = arith.constant dense<0.0> : tensor<128x256xf32>
  %least = arith.constant dense<0xFF800000> : tensor<128x1xf32>
  %rows = tile.dim %y, 0 : !out
  %tiles = arith.ceildivsi %rows, %c128 : index
  tile.for_tiles (%i) to (%tiles) {
    %first = arith.muli %i, %c128 : index
    %u = tile.load %q[%first, %c0] fill %zero : !in -> tensor<128x128xf8E4M3FN>
    %result:2 = scf.for %j = %c0 to %blocks step %c1 iter_args(%top = %least, %sum = %sums) -> (tensor<128x1xf32>, tensor<128x256xf32>) {
      %row = arith.muli %j, %c128 : index
      %kj = tile.load %k[%row, %c0] fill %zero : !in -> tensor<128x128xf8E4M3FN>
      %kt = tile.permute %kj [1, 0] : tensor<128x128xf8E4M3FN> -> tensor<128x128xf8E4M3FN>
      %s = tile.dot %u, %kt, %zeros : tensor<128x128xf8E4M3FN>, tensor<128x128xf8E4M3FN>, tensor<128x128xf32>
      %m = tile.reduce max %s axis 1 : tensor<128x128xf32> -> tensor<128x1xf32>
      %new = arith.maximumf %top, %m : tensor<128x1xf32>
      %wide = tile.broadcast %new : tensor<128x1xf32> -> tensor<128x128xf32>
      %d = arith.subf %s, %wide : tensor<128x128xf32>
      %p = arith.truncf %d : tensor<128x128xf32> to tensor<128x128xf8E4M3FN>
      %all = tile.broadcast %new : tensor<128x1xf32> -> tensor<128x256xf32>
      %x = arith.mulf %sum, %all : tensor<128x256xf32>
      %vj = tile.load %v[%c0, %row] fill %zero : !in -> tensor<256x128xf8E4M3FN>
      %vt = tile.permute %vj [1, 0] : tensor<256x128xf8E4M3FN> -> tensor<128x256xf8E4M3FN>
      %o = tile.dot %p, %vt, %x : tensor<128x128xf8E4M3FN>, tensor<128x256xf8E4M3FN>, tensor<128x256xf32>
      scf.yield %new, %o : tensor<128x1xf32>, tensor<128x256xf32>
    }
    %narrow = arith.truncf %result#1 : tensor<128x256xf32> to tensor<128x256xbf16>
    tile.store %narrow, %y[%first, %c0] : tensor<128x256xbf16>, !out
  }
  tile.return
}
