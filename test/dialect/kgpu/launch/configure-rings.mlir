// Checks rings for loops over rows whose author chooses the CTAs per SM. Rings are as deep as loads must be ahead. The
// same launch without rings is the next candidate.
// RUN: kpkg-opt --kgpu-configure="chip=sm_90a" %s | FileCheck %s
// RUN: kpkg-opt --kgpu-configure="chip=sm_90a candidate=2" %s | FileCheck %s --check-prefix=WITHOUT

!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!odd = !tile.view<2xbf16, unit = 1, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// A row takes 16 KB.
// CHECK-LABEL: tile.kernel @rows
// CHECK-SAME: #kgpu.launch<threads = 512{{[^>]*}}stages = 3
// WITHOUT-LABEL: tile.kernel @rows
// WITHOUT-SAME: #kgpu.launch<threads = 512, min_ctas = 1, prefetch, overlaps>
tile.kernel @rows(%x: !in, %y: !out, %rows: index) attributes {schedule = #tile.schedule<warps = 16, occupancy = 1>} {
  %fill = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %b = tile.block_id x
  %step = tile.grid_dim x
  scf.for %i = %b to %rows step %step {
    %v = tile.load %x[%i, %c0] fill %fill : !in -> tensor<1x8192xbf16>
    %s = tile.reduce max %v axis 1 : tensor<1x8192xbf16> -> tensor<1x1xbf16>
    %w = tile.broadcast %s : tensor<1x1xbf16> -> tensor<1x8192xbf16>
    %d = arith.subf %v, %w : tensor<1x8192xbf16>
    tile.store %d, %y[%i, %c0] : tensor<1x8192xbf16>, !out
  }
  tile.return
}

// Elements that cannot be fetched in vectors are loaded to registers.
// CHECK-LABEL: tile.kernel @odd
// CHECK-NOT: stages
// CHECK: tile.return
tile.kernel @odd(%x: !odd, %y: !out, %rows: index) attributes {schedule = #tile.schedule<warps = 16, occupancy = 1>} {
  %fill = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %b = tile.block_id x
  %step = tile.grid_dim x
  scf.for %i = %b to %rows step %step {
    %v = tile.load %x[%i, %c0] fill %fill : !odd -> tensor<1x8192xbf16>
    %s = tile.reduce max %v axis 1 : tensor<1x8192xbf16> -> tensor<1x1xbf16>
    %w = tile.broadcast %s : tensor<1x1xbf16> -> tensor<1x8192xbf16>
    %d = arith.subf %v, %w : tensor<1x8192xbf16>
    tile.store %d, %y[%i, %c0] : tensor<1x8192xbf16>, !out
  }
  tile.return
}
