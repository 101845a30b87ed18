// Checks that a kernel takes the pipeline of its kind, with the passes that its launch asks for.
// RUN: kpkg-opt --gpu-pipeline=chip=sm_90a --mlir-disable-threading --mlir-print-ir-after-all %s -o /dev/null 2>&1 | grep "IR Dump After" | FileCheck %s

!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// Rows: no pass for products.
// CHECK: (kgpu-configure)
// CHECK-NEXT: (tile-expand-add-stores)
// CHECK-NEXT: (kgpu-schedule-tiles)
// CHECK-NOT: (kgpu-hoist-loads)
// CHECK-NOT: (kgpu-prefetch-loads)
// CHECK-NOT: (kgpu-ring-loads)
// CHECK-NOT: (kgpu-expand-mma)
// CHECK: (kgpu-insert-barriers)
tile.kernel @rows(%x: !in, %y: !out) attributes {kgpu.launch = #kgpu.launch<threads = 128>} {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %v = tile.load %x[%row, %c0] fill %zero : !in -> tensor<1x1024xbf16>
  tile.store %v, %y[%row, %c0] : tensor<1x1024xbf16>, !out
  tile.return
}

// CHECK: (kgpu-hoist-loads)
// CHECK-NEXT: (kgpu-make-persistent)
// CHECK-NEXT: (kgpu-prefetch-loads)
// CHECK: (kgpu-ring-loads)
// CHECK: (kgpu-insert-barriers)
tile.kernel @persistent_rows(%x: !in, %y: !out)
    attributes {kgpu.launch = #kgpu.launch<threads = 128, persistent, prefetch, early_loads, stages = 2>} {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %v = tile.load %x[%row, %c0] fill %zero : !in -> tensor<1x1024xbf16>
  tile.store %v, %y[%row, %c0] : tensor<1x1024xbf16>, !out
  tile.return
}

// Products by mma.sync: loops are merged for a ring of several slots only.
// CHECK: (kgpu-schedule-tiles)
// CHECK-NOT: (kgpu-merge-loops)
// CHECK: (kgpu-expand-mma)
// CHECK-NOT: (kgpu-ring-copies)
// CHECK: (kgpu-insert-barriers)
tile.kernel @warps(%x: !in, %w: !in, %y: !out, %rows: index) attributes {kgpu.launch = #kgpu.launch<threads = 128>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  tile.for_tiles (%m) to (%rows) {
    %i = arith.muli %m, %c64 : index
    %d = scf.for %k = %c0 to %rows step %c1 iter_args(%sum = %zeros) -> (tensor<64x64xf32>) {
      %j = arith.muli %k, %c64 : index
      %a = tile.load %x[%i, %j] fill %zero : !in -> tensor<64x64xbf16>
      %b = tile.load %w[%j, %c0] fill %zero : !in -> tensor<64x64xbf16>
      %next = tile.dot %a, %b, %sum : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    %r = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xbf16>
    tile.store %r, %y[%i, %c0] : tensor<64x64xbf16>, !out
  }
  tile.return
}

// CHECK: (kgpu-schedule-tiles)
// CHECK-NEXT: (kgpu-merge-loops)
// CHECK: (kgpu-ring-copies)
// CHECK-NEXT: (kgpu-preload-fragments)
// CHECK: (kgpu-insert-barriers)
tile.kernel @warps_with_ring(%x: !in, %w: !in, %y: !out, %rows: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 128, stages = 3>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  tile.for_tiles (%m) to (%rows) {
    %i = arith.muli %m, %c64 : index
    %d = scf.for %k = %c0 to %rows step %c1 iter_args(%sum = %zeros) -> (tensor<64x64xf32>) {
      %j = arith.muli %k, %c64 : index
      %a = tile.load %x[%i, %j] fill %zero : !in -> tensor<64x64xbf16>
      %b = tile.load %w[%j, %c0] fill %zero : !in -> tensor<64x64xbf16>
      %next = tile.dot %a, %b, %sum : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    %r = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xbf16>
    tile.store %r, %y[%i, %c0] : tensor<64x64xbf16>, !out
  }
  tile.return
}

// Products by wgmma: roles, without passes that the launch does not ask for.
// CHECK: (kgpu-im2col-loads)
// CHECK-NOT: (kgpu-peel-loops)
// CHECK: (kgpu-specialise-warps)
// CHECK-NOT: (kgpu-multicast)
// CHECK-NOT: (kgpu-rescale-conditionally)
// CHECK-NOT: (kgpu-dynamic-tiles)
// CHECK: (kgpu-verify-schedule)
// CHECK-NOT: (kgpu-coalesce-stores)
// CHECK: (kgpu-insert-barriers)
tile.kernel @warpgroups(%x: !in, %w: !in, %y: !out, %rows: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 256, consumers = 1>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  tile.for_tiles (%m) to (%rows) {
    %i = arith.muli %m, %c64 : index
    %d = scf.for %k = %c0 to %rows step %c1 iter_args(%sum = %zeros) -> (tensor<64x64xf32>) {
      %j = arith.muli %k, %c64 : index
      %a = tile.load %x[%i, %j] fill %zero : !in -> tensor<64x64xbf16>
      %b = tile.load %w[%j, %c0] fill %zero : !in -> tensor<64x64xbf16>
      %next = tile.dot %a, %b, %sum : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    %r = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xbf16>
    tile.store %r, %y[%i, %c0] : tensor<64x64xbf16>, !out
  }
  tile.return
}

// CHECK: (kgpu-pipeline-products)
// CHECK-NEXT: (kgpu-peel-loops)
// CHECK: (kgpu-dynamic-tiles)
// CHECK: (kgpu-insert-barriers)
tile.kernel @dynamic_and_peeled(%x: !in, %w: !in, %y: !out, %rows: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 256, dynamic, peels, consumers = 1>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  tile.for_tiles (%m) to (%rows) {
    %i = arith.muli %m, %c64 : index
    %d = scf.for %k = %c0 to %rows step %c1 iter_args(%sum = %zeros) -> (tensor<64x64xf32>) {
      %j = arith.muli %k, %c64 : index
      %a = tile.load %x[%i, %j] fill %zero : !in -> tensor<64x64xbf16>
      %b = tile.load %w[%j, %c0] fill %zero : !in -> tensor<64x64xbf16>
      %next = tile.dot %a, %b, %sum : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    %r = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xbf16>
    tile.store %r, %y[%i, %c0] : tensor<64x64xbf16>, !out
  }
  tile.return
}
