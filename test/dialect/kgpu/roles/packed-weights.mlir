// Checks a product with a packed weight. The producer warp copies words and scales with the other operand, in boxes of
// up to 256 words. Consumers unpack them to the registers from which they multiply.
// RUN: kpkg-opt --canonicalize --cse --gpu-pipeline=chip=sm_90a %s | FileCheck %s
// RUN: kpkg-opt --canonicalize --cse --gpu-pipeline=chip=sm_90a --lower-nvvm %s | FileCheck %s --check-prefix=CODE

!q = !tile.view<2xi32, unit = 1, align = 16, divisible = 8, index = 32>
!words = !tile.view<1xi32, unit = 0, align = 16, divisible = 8, index = 32>
!x = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!scales = !tile.view<1xbf16, unit = 0, align = 16, divisible = 8, index = 32>
!y = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 8, index = 32>

// CHECK-LABEL: tile.kernel @packed
// CHECK: producer_warp {
// CHECK: kgpu.acquire %[[RING:.*]][%{{.*}}] bytes 10368
// CHECK: kgpu.tensor_load %{{.*}} plus 0 signals %[[RING]][{{.*}} !kgpu.smem<64x64xbf16
// CHECK: kgpu.tensor_load %{{.*}} plus 0 signals %[[RING]][{{.*}} !kgpu.smem<64xbf16
// CHECK: kgpu.tensor_load %{{.*}} plus 0 signals %[[RING]][{{.*}} !kgpu.smem<512xi32
// CHECK: kgpu.tensor_load %{{.*}} plus 1024 signals %[[RING]][{{.*}} !kgpu.smem<512xi32
// CHECK: consumers {
// The slot is awaited before the words are read, and released after the product.
// CHECK: kgpu.await %[[RING]]
// CHECK-DAG: kgpu.local_load %{{.*}} -> tensor<64xbf16
// CHECK-DAG: %[[WORDS:.*]] = kgpu.local_load %{{.*}} -> tensor<512xi32
// CHECK: tile.unpack %[[WORDS]] signed bits 4
// CHECK-NOT: kgpu.cvt_layout
// CHECK: kgpu.wgmma %{{.*}} : tensor<64x64xbf16
// CHECK: kgpu.release %[[RING]]

// One access reads the words of a thread, and one op converts two numbers.
// CODE-LABEL: llvm.func @packed
// CODE: llvm.load %{{.*}} : !llvm.ptr<3> -> vector<4xi32>
// CODE: %[[OWN:.*]] = llvm.and %{{.*}}, %{{.*}} : i32
// CODE: %[[BIASED:.*]] = llvm.xor %[[OWN]], %{{.*}} : i32
// CODE: %[[PAIR:.*]] = llvm.bitcast %[[BIASED]] : i32 to vector<2xbf16>
// CODE: llvm.fsub %[[PAIR]], %{{.*}} : vector<2xbf16>
// CODE: llvm.fmul %{{.*}}, %{{.*}} : vector<2xbf16>
// CODE: wgmma
tile.kernel @packed(%q: !q, %x: !x, %s: !x, %y: !y, %steps: index) {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  tile.for_tiles (%n) to (%steps) {
    %sum = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zeros) -> (tensor<64x64xf32>) {
      %own = tile.drop %s [0] at(%k) : !x -> !scales
      %row = arith.muli %n, %c64 : index
      %scale = tile.load %own[%row] fill %zero : !scales -> tensor<64xbf16>
      %column = tile.reshape %scale : tensor<64xbf16> -> tensor<64x1xbf16>
      %line = tile.drop %q [0] at(%k) : !q -> !words
      %first = arith.muli %n, %c512 : index
      %w = tile.load %line[%first] fill %none : !words -> tensor<512xi32>
      %v = tile.unpack %w signed bits 4 : tensor<512xi32> -> tensor<4096xbf16>
      %parts = tile.reshape %v : tensor<4096xbf16> -> tensor<4x8x4x4x2x2x2xbf16>
      %rows = tile.permute %parts [0, 6, 1, 3, 5, 2, 4] : tensor<4x8x4x4x2x2x2xbf16> -> tensor<4x2x8x4x2x4x2xbf16>
      %numbers = tile.reshape %rows : tensor<4x2x8x4x2x4x2xbf16> -> tensor<64x64xbf16>
      %all = tile.broadcast %column : tensor<64x1xbf16> -> tensor<64x64xbf16>
      %a = arith.mulf %numbers, %all : tensor<64x64xbf16>
      %depth = arith.muli %k, %c64 : index
      %t = tile.load %x[%c0, %depth] fill %zero : !x -> tensor<64x64xbf16>
      %b = tile.permute %t [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
      %r = tile.dot %a, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %r : tensor<64x64xf32>
    }
    %at = arith.muli %n, %c64 : index
    tile.store %sum, %y[%at, %c0] : tensor<64x64xf32>, !y
  }
  tile.return
}
