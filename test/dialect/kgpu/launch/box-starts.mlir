// Checks that the TMA copies only boxes that begin at multiples of 16 bytes along the dimension of stride 1. Elsewhere
// the copy is an illegal instruction, so products of such operands use mma.sync.
// RUN: kpkg-opt --kgpu-configure=chip=sm_90a %s | FileCheck %s
// RUN: kpkg-opt --kgpu-configure=chip=sm_90a '--remarks-filter=kgpu-configure' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] product by warpgroups | Category:kgpu-configure | Function=fours | Remark="by 1 warpgroup, while another warp copies operands ahead"
// REMARK-DAG: [Missed] operands shared by a cluster | Category:kgpu-configure | Function=fours | Reason="`@schedule(cluster=2)` would ask for it"
// REMARK-DAG: [Missed] dynamic tile scheduler | Category:kgpu-configure | Function=fours | Reason="`@schedule(dynamic=1)` would ask for it"
// REMARK-DAG: [Passed] overlap with the kernel before | Category:kgpu-configure | Function=fours | Remark="blocks start before the kernel before has ended, and wait for it"
// REMARK-DAG: [Passed] product by warpgroups | Category:kgpu-configure | Function=pages | Remark="by 1 warpgroup, while another warp copies operands ahead"
// REMARK-DAG: [Missed] operands shared by a cluster | Category:kgpu-configure | Function=pages | Reason="`@schedule(cluster=2)` would ask for it"
// REMARK-DAG: [Missed] dynamic tile scheduler | Category:kgpu-configure | Function=pages | Reason="`@schedule(dynamic=1)` would ask for it"
// REMARK-DAG: [Passed] overlap with the kernel before | Category:kgpu-configure | Function=pages | Remark="blocks start before the kernel before has ended, and wait for it"
// REMARK-DAG: [Missed] product by warpgroups | Category:kgpu-configure | Function=anywhere | Reason="the left operand cannot be copied ahead: the tile is not known to begin at a multiple of 16 bytes in its row"
// REMARK-DAG: [Passed] product by tensor cores | Category:kgpu-configure | Function=anywhere | Remark="each warp multiplies operands in its registers (mma.sync)"
// REMARK-DAG: [Passed] overlap with the kernel before | Category:kgpu-configure | Function=anywhere | Remark="blocks start before the kernel before has ended, and wait for it"

!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// CHECK-LABEL: tile.kernel @fours
// CHECK-SAME: #kgpu.launch<{{[^>]*}}consumers
tile.kernel @fours(%x: !in, %w: !in, %y: !out, %count: index, %move: index) {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %moved = arith.muli %move, %c4 : index
  %sum = scf.for %k = %c0 to %count step %c1 iter_args(%s = %zeros) -> tensor<64x64xf32> {
    %at = arith.muli %k, %c32 : index
    %first = arith.addi %at, %moved : index
    %u = tile.load %x[%c0, %first] fill %zero : !in -> tensor<64x32xf32>
    %v = tile.load %w[%c0, %at] fill %zero : !in -> tensor<64x32xf32>
    %t = tile.permute %v [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
    %d = tile.dot %u, %t, %s precision tf32 : tensor<64x32xf32>, tensor<32x64xf32>, tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %y[%c0, %c0] : tensor<64x64xf32>, !out
  tile.return
}

// A row within a page: the remainder of a multiple of 16 bytes, divided by a multiple of 16 bytes, is one too.
// CHECK-LABEL: tile.kernel @pages
// CHECK-SAME: #kgpu.launch<{{[^>]*}}consumers
tile.kernel @pages(%x: !in, %w: !in, %y: !out, %count: index, %paged: i1) {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %size = tile.dim %x, 1 : !in
  %sum = scf.for %k = %c0 to %count step %c1 iter_args(%s = %zeros) -> tensor<64x64xf32> {
    %at = arith.muli %k, %c32 : index
    %first = scf.if %paged -> index {
      %row = arith.remsi %at, %size : index
      scf.yield %row : index
    } else {
      scf.yield %at : index
    }
    %u = tile.load %x[%c0, %first] fill %zero : !in -> tensor<64x32xf32>
    %v = tile.load %w[%c0, %at] fill %zero : !in -> tensor<64x32xf32>
    %t = tile.permute %v [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
    %d = tile.dot %u, %t, %s precision tf32 : tensor<64x32xf32>, tensor<32x64xf32>, tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %y[%c0, %c0] : tensor<64x64xf32>, !out
  tile.return
}

// CHECK-LABEL: tile.kernel @anywhere
// CHECK-NOT: consumers
// CHECK: tile.return
tile.kernel @anywhere(%x: !in, %w: !in, %y: !out, %count: index, %move: index) {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %sum = scf.for %k = %c0 to %count step %c1 iter_args(%s = %zeros) -> tensor<64x64xf32> {
    %at = arith.muli %k, %c32 : index
    %first = arith.addi %at, %move : index
    %u = tile.load %x[%c0, %first] fill %zero : !in -> tensor<64x32xf32>
    %v = tile.load %w[%c0, %at] fill %zero : !in -> tensor<64x32xf32>
    %t = tile.permute %v [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
    %d = tile.dot %u, %t, %s precision tf32 : tensor<64x32xf32>, tensor<32x64xf32>, tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %y[%c0, %c0] : tensor<64x64xf32>, !out
  tile.return
}
