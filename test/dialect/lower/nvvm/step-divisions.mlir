// Tests divisions in the steps of the producer warp: a loop-invariant divisor becomes a multiplication and a shift. A
// divisor of 0 or less still divides.
// RUN: kpkg-opt --lower-nvvm %s | FileCheck %s

#acc = #kgpu.layout<"reg 1:1 0:8 1:8-64 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">
!lefts = !kgpu.smem<8x64x64xbf16, "2B 1:144,288,576,1024,2048,4096 2:2,4,8,16,32,64 rep 8x1x1 stride 8192,0,0">
!left = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!barriers = !kgpu.smem<2x8xi64>

// CHECK-LABEL: llvm.func @steps
// CHECK: llvm.udiv {{.*}} : i64
// CHECK-NOT: llvm.udiv
// CHECK: llvm.mul {{.*}} : i64
// CHECK: llvm.lshr {{.*}} : i64
// CHECK: llvm.sdiv {{.*}} : i32
// CHECK: llvm.mul {{.*}} : i64
// CHECK: llvm.lshr {{.*}} : i64
// CHECK: llvm.sdiv {{.*}} : i32
// CHECK: mbarrier.try_wait.parity.shared::cta.b64
// A divisor that changes from step to step still divides.
// CHECK-LABEL: llvm.func @changing
// CHECK-NOT: llvm.udiv
// CHECK: llvm.sdiv {{.*}} : i32
tile.kernel @steps(%x: !in, %count: index, %width: index) attributes {kgpu.launch = #kgpu.launch<threads = 256, shared = 213120, consumers = 1>, kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [64, 64], swizzle = 128>]} {
  %c0_i32 = arith.constant 0 : i32
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c1_i32 = arith.constant 1 : i32
  %c8_i32 = arith.constant 8 : i32
  %lefts = kgpu.alloc offset 131072 : !lefts
  %b = kgpu.alloc offset 212992 : !barriers
  %ring = kgpu.ring %b : !barriers -> !kgpu.ring<8>
  kgpu.roles producer_warp {
    %width32 = arith.index_cast %width : index to i32
    %end = scf.for %i = %c0 to %count step %c1 iter_args(%n = %c0_i32) -> (i32) {
      %row = arith.floordivsi %n, %width32 : i32
      %image = arith.floordivsi %row, %width32 : i32
      %r = arith.index_cast %row : i32 to index
      %c = arith.index_cast %image : i32 to index
      kgpu.acquire %ring[%n] bytes 8192 : !kgpu.ring<8>
      %s = arith.remui %n, %c8_i32 : i32
      %at = arith.index_castui %s : i32 to index
      %slot = kgpu.slot %lefts[%at] : !lefts -> !left
      kgpu.tensor_load %x[%r, %c] map 0 to %slot plus 0 signals %ring[%n] : !in, !left, !kgpu.ring<8>
      %next = arith.addi %n, %c1_i32 : i32
      scf.yield %next : i32
    }
  } consumers {
    %end = scf.for %i = %c0 to %count step %c1 iter_args(%n = %c0_i32) -> (i32) {
      kgpu.await %ring[%n] : !kgpu.ring<8>
      kgpu.release %ring[%n] : !kgpu.ring<8>
      %next = arith.addi %n, %c1_i32 : i32
      scf.yield %next : i32
    }
  }
  tile.return
}

tile.kernel @changing(%x: !in, %count: index) attributes {kgpu.launch = #kgpu.launch<threads = 256, shared = 213120, consumers = 1>, kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [64, 64], swizzle = 128>]} {
  %c0_i32 = arith.constant 0 : i32
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c1_i32 = arith.constant 1 : i32
  %c8_i32 = arith.constant 8 : i32
  %lefts = kgpu.alloc offset 131072 : !lefts
  %b = kgpu.alloc offset 212992 : !barriers
  %ring = kgpu.ring %b : !barriers -> !kgpu.ring<8>
  kgpu.roles producer_warp {
    %end = scf.for %i = %c0 to %count step %c1 iter_args(%n = %c0_i32) -> (i32) {
      %width32 = arith.addi %n, %c1_i32 : i32
      %row = arith.floordivsi %n, %width32 : i32
      %r = arith.index_cast %row : i32 to index
      kgpu.acquire %ring[%n] bytes 8192 : !kgpu.ring<8>
      %s = arith.remui %n, %c8_i32 : i32
      %at = arith.index_castui %s : i32 to index
      %slot = kgpu.slot %lefts[%at] : !lefts -> !left
      kgpu.tensor_load %x[%r, %c0] map 0 to %slot plus 0 signals %ring[%n] : !in, !left, !kgpu.ring<8>
      %next = arith.addi %n, %c1_i32 : i32
      scf.yield %next : i32
    }
  } consumers {
    %end = scf.for %i = %c0 to %count step %c1 iter_args(%n = %c0_i32) -> (i32) {
      kgpu.await %ring[%n] : !kgpu.ring<8>
      kgpu.release %ring[%n] : !kgpu.ring<8>
      %next = arith.addi %n, %c1_i32 : i32
      scf.yield %next : i32
    }
  }
  tile.return
}
