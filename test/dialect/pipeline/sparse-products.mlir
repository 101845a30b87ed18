// Checks products whose left operand has 2:4 sparsity. Warpgroups take its positions from registers, and store the
// transpose of their accumulators.
// RUN: kpkg-opt --gpu-pipeline=chip=sm_90a %s | FileCheck %s
// RUN: kpkg-opt --gpu-pipeline=chip=sm_90a --lower-nvvm %s | FileCheck %s --check-prefix=CODE
// RUN: kpkg-opt --gpu-pipeline=chip=sm_80 %s | FileCheck %s --check-prefix=DENSE
// RUN: kpkg-opt --gpu-pipeline=chip=sm_90a '--remarks-filter=kgpu-configure' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] 2:4-sparse product | Category:kgpu-configure | Function=sparse | Remark="tensor cores skip the zeros"

// Words of two rows, then of 64 columns; lanes: 16 and 32 columns, rows.
// CHECK: #[[AT:.*]] = #kgpu.layout<"reg 0:8 1:4 lane 1:1-2 0:1-4 warp 0:16-64 rep 1x1">
// CHECK-LABEL: tile.kernel @sparse
// Positions are loaded in vectors: a thread's positions are contiguous in memory.
// CHECK-NOT: kgpu.cvt_layout
// CHECK: tile.load {{.*}} -> tensor<2x1x512xi16, {{.*}}>
// CHECK: kgpu.wgmma {{.*}} at %{{.*}} : {{.*}}, tensor<128x8xi16, #[[AT]]>
// CHECK: kgpu.tensor_store
// CHECK-NOT: tile.store

// CODE: nvvm.wgmma.fence.aligned
// CODE: wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.bf16.bf16 {{.*}}, $64, $65, $66, 0, $67, 1, 1, 0, 0;
// CODE: wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.bf16.bf16 {{.*}}, $64, $65, $66, 1, 1, 1, 1, 0, 0;
// CODE: wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.bf16.bf16 {{.*}}, $64, $65, $66, 0, 1, 1, 1, 0, 0;
// CODE: wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.bf16.bf16 {{.*}}, $64, $65, $66, 1, 1, 1, 1, 0, 0;
// CODE: nvvm.wgmma.commit.group
// CODE-COUNT-4: nvvm.stmatrix {{.*}}<col>
// CODE-NOT: stmatrix
// CODE: nvvm.cp.async.bulk.tensor.global.shared.cta

// DENSE-LABEL: tile.kernel @sparse
// DENSE: tensor<128x32x4x2xbf16
// DENSE: kgpu.mma
// DENSE-NOT: tile.dot
!w = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!p = !tile.view<3xi16, unit = 2, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @sparse(%w: !w, %p: !p, %x: !w, %y: !out) attributes {schedule = #tile.schedule<stages = 2>} {
  %zero = arith.constant 0.0 : bf16
  %nought = arith.constant 0 : i16
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %w, 0 : !w
  %lines = tile.dim %x, 0 : !w
  %depth = tile.dim %x, 1 : !w
  %tn = arith.ceildivsi %rows, %c128 : index
  %tm = arith.ceildivsi %lines, %c64 : index
  %tk = arith.ceildivsi %depth, %c128 : index
  tile.for_tiles (%i, %j) to (%tn, %tm) {
    %n = arith.muli %i, %c128 : index
    %b = arith.muli %i, %c2 : index
    %m = arith.muli %j, %c64 : index
    %sum = scf.for %k = %c0 to %tk step %c1 iter_args(%s = %zeros) -> tensor<128x64xf32> {
      %k0 = arith.muli %k, %c64 : index
      %k1 = arith.muli %k, %c128 : index
      %words = tile.load %p[%b, %k, %c0] fill %nought : !p -> tensor<2x1x512xi16>
      %split = tile.reshape %words : tensor<2x1x512xi16> -> tensor<2x4x8x4x2x2xi16>
      %turned = tile.permute %split [0, 1, 5, 2, 4, 3] : tensor<2x4x8x4x2x2xi16> -> tensor<2x4x2x8x2x4xi16>
      %at = tile.reshape %turned : tensor<2x4x2x8x2x4xi16> -> tensor<128x8xi16>
      %a = tile.load %w[%n, %k0] fill %zero : !w -> tensor<128x64xbf16>
      %r = tile.load %x[%m, %k1] fill %zero : !w -> tensor<64x128xbf16>
      %t = tile.permute %r [1, 0] : tensor<64x128xbf16> -> tensor<128x64xbf16>
      %next = tile.dot %a, %t, %s at %at : tensor<128x64xbf16>, tensor<128x64xbf16>, tensor<128x64xf32>, tensor<128x8xi16>
      scf.yield %next : tensor<128x64xf32>
    }
    %narrow = arith.truncf %sum : tensor<128x64xf32> to tensor<128x64xbf16>
    %back = tile.permute %narrow [1, 0] : tensor<128x64xbf16> -> tensor<64x128xbf16>
    tile.store %back, %y[%m, %n] : tensor<64x128xbf16>, !out
  }
  tile.return
}
