// Tests the same kernels for instruction sets other than the machine's own.
// RUN: kpkg-opt %s --lower-cpu=isa=x86-64-v4 | mlir-translate --mlir-to-llvmir | opt -O2 -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4 | llc -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4 -mattr=-prefer-256-bit | FileCheck %s --check-prefix=AVX512
// RUN: kpkg-opt %s --lower-cpu=isa=aarch64 | mlir-translate --mlir-to-llvmir | opt -O2 -mtriple=aarch64-linux-gnu | llc -mtriple=aarch64-linux-gnu | FileCheck %s --check-prefix=NEON

// AVX512-LABEL: softmax:
// AVX512-NOT: {{[[:space:]]call}}
// AVX512: vfmadd{{.*}}zmm
// AVX512-NOT: {{[[:space:]]call}}
// AVX512-LABEL: narrow:
// AVX512-NOT: {{[[:space:]]call}}
// AVX512: vcvtph2ps {{.*}}zmm
// AVX512-NOT: {{[[:space:]]call}}
// NEON-LABEL: softmax:
// NEON-NOT: {{[[:space:]]bl[[:space:]]}}
// NEON: fmla v{{[0-9]+}}.4s
// NEON-NOT: {{[[:space:]]bl[[:space:]]}}
// NEON-LABEL: narrow:
// NEON-NOT: {{[[:space:]]bl[[:space:]]}}
// NEON: fcvtl v{{[0-9]+}}.4s
// NEON-NOT: {{[[:space:]]bl[[:space:]]}}
tile.kernel @softmax(%x: !tile.view<2xf32, unit = 1>, %y: !tile.view<2xf32, mut, unit = 1>) {
  %inf = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %v = tile.load %x[%row, %c0] fill %inf : !tile.view<2xf32, unit = 1> -> tensor<1x64xf32>
  %m = tile.reduce max %v axis 1 : tensor<1x64xf32> -> tensor<1x1xf32>
  %mb = tile.broadcast %m : tensor<1x1xf32> -> tensor<1x64xf32>
  %d = arith.subf %v, %mb : tensor<1x64xf32>
  %e = math.exp %d : tensor<1x64xf32>
  %s = tile.reduce sum %e axis 1 : tensor<1x64xf32> -> tensor<1x1xf32>
  %sb = tile.broadcast %s : tensor<1x1xf32> -> tensor<1x64xf32>
  %r = arith.divf %e, %sb : tensor<1x64xf32>
  tile.store %r, %y[%row, %c0] : tensor<1x64xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}

tile.kernel @narrow(%x: !tile.view<1xf16, unit = 0>, %y: !tile.view<1xbf16, mut, unit = 0>) {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0] fill %zero : !tile.view<1xf16, unit = 0> -> tensor<64xf16>
  %s = arith.mulf %v, %v : tensor<64xf16>
  %w = arith.extf %s : tensor<64xf16> to tensor<64xf32>
  %r = arith.truncf %w : tensor<64xf32> to tensor<64xbf16>
  tile.store %r, %y[%c0] : tensor<64xbf16>, !tile.view<1xbf16, mut, unit = 0>
  tile.return
}
