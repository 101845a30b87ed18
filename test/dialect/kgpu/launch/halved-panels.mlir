// Checks that two warpgroups share the 64 columns of a product only if each finds its own in the right operand. They
// must not begin in the middle of a panel of 64 columns.
// RUN: kpkg-opt --kgpu-configure="chip=sm_90a" %s | FileCheck %s
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 8, index = 32>

// Rows of the operand are keys.
// CHECK: tile.kernel @by_rows
// CHECK-SAME: #kgpu.launch<{{[^>]*}}consumers = 2
// CHECK: tile.return
tile.kernel @by_rows(%q: !in, %k: !in, %v: !in, %y: !out) {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %zeros = arith.constant dense<0.0> : tensor<64x512xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %keys = tile.dim %v, 0 : !in
  %tn = arith.ceildivsi %keys, %c64 : index
  tile.for_tiles (%i) to (%c1) {
    %x = tile.load %q[%i, %c0] fill %zero : !in -> tensor<64x64xbf16>
    %sum = scf.for %j = %c0 to %tn step %c1 iter_args(%acc = %zeros) -> tensor<64x512xf32> {
      %n = arith.muli %j, %c64 : index
      %c = tile.load %k[%n, %c0] fill %zero : !in -> tensor<64x64xbf16>
      %ct = tile.permute %c [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
      %s = tile.dot %x, %ct, %none : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
      %w = tile.load %v[%n, %c0] fill %zero : !in -> tensor<64x512xbf16>
      %o = tile.dot %p, %w, %acc : tensor<64x64xbf16>, tensor<64x512xbf16>, tensor<64x512xf32>
      scf.yield %o : tensor<64x512xf32>
    }
    tile.store %sum, %y[%i, %c0] : tensor<64x512xf32>, !out
  }
  tile.return
}

// Columns of the operand are keys.
// CHECK: tile.kernel @by_columns
// CHECK-NOT: consumers
// CHECK: tile.return
tile.kernel @by_columns(%q: !in, %k: !in, %v: !in, %y: !out) {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %zeros = arith.constant dense<0.0> : tensor<64x512xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %keys = tile.dim %v, 0 : !in
  %tn = arith.ceildivsi %keys, %c64 : index
  tile.for_tiles (%i) to (%c1) {
    %x = tile.load %q[%i, %c0] fill %zero : !in -> tensor<64x64xbf16>
    %sum = scf.for %j = %c0 to %tn step %c1 iter_args(%acc = %zeros) -> tensor<64x512xf32> {
      %n = arith.muli %j, %c64 : index
      %ct = tile.load %k[%c0, %n] fill %zero : !in -> tensor<64x64xbf16>
      %s = tile.dot %x, %ct, %none : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
      %w = tile.load %v[%n, %c0] fill %zero : !in -> tensor<64x512xbf16>
      %o = tile.dot %p, %w, %acc : tensor<64x64xbf16>, tensor<64x512xbf16>, tensor<64x512xf32>
      scf.yield %o : tensor<64x512xf32>
    }
    tile.store %sum, %y[%i, %c0] : tensor<64x512xf32>, !out
  }
  tile.return
}
