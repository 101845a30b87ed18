// Tests the dynamic tile scheduler: CTAs take tiles from the launch's counter, and the producer warp publishes tile
// numbers to all consumer warps.
// RUN: kpkg-opt --lower-nvvm %s | FileCheck %s

// CHECK: llvm.mlir.global internal @kpkg_counters(dense<0> : tensor<4096xi32>) {addr_space = 1 : i32, alignment = 128 : i64} : !llvm.array<4096 x i32>
// The counter's number is the parameter after the grid.
// CHECK-LABEL: llvm.func @taken
// CHECK-SAME: (%{{.*}}: i64, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %[[NUMBER:.*]]: i32)
// CHECK: %[[ALL:.*]] = llvm.mlir.addressof @kpkg_counters
// CHECK: %[[COUNTER:.*]] = llvm.getelementptr %[[ALL]][%[[NUMBER]]]
// Four slots, each filled by one thread and released by four warps.
// CHECK-COUNT-4: nvvm.mbarrier.init
// One thread increments the counter up to the last tile, waits for an empty slot, and publishes.
// CHECK: llvm.atomicrmw uinc_wrap %[[COUNTER]], %{{.*}} syncscope("device") monotonic
// CHECK: mbarrier.try_wait
// CHECK: llvm.store
// CHECK-NEXT: nvvm.mbarrier.arrive
// Each warp waits and reads. The lane whose number all lanes use releases the slot.
// CHECK: mbarrier.try_wait
// CHECK: ld.shared.b32
// CHECK: nvvm.shfl.sync idx
// CHECK: mbarrier.arrive.shared::cta.b64
tile.kernel @taken(%count: index)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, dynamic, shared = 96, consumers = 1>} {
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %id = kgpu.cta_id
  %place = kgpu.alloc offset 0 : !kgpu.smem<3x4xi64>
  %channel = kgpu.ring channel %place : !kgpu.smem<3x4xi64> -> !kgpu.ring<4>
  kgpu.roles producer_warp {
    %ends:2 = scf.while (%tile = %id, %use = %none) : (index, i32) -> (index, i32) {
      %more = arith.cmpi slt, %tile, %count : index
      scf.condition(%more) %tile, %use : index, i32
    } do {
    ^bb0(%tile: index, %use: i32):
      %next = kgpu.next_tile of %count
      kgpu.publish_index %next to %channel[%use] : !kgpu.ring<4>
      %uses = arith.addi %use, %one : i32
      scf.yield %next, %uses : index, i32
    }
  } consumers {
    %ends:2 = scf.while (%tile = %id, %use = %none) : (index, i32) -> (index, i32) {
      %more = arith.cmpi slt, %tile, %count : index
      scf.condition(%more) %tile, %use : index, i32
    } do {
    ^bb0(%tile: index, %use: i32):
      %next = kgpu.consume_index %channel[%use] : !kgpu.ring<4>
      %uses = arith.addi %use, %one : i32
      scf.yield %next, %uses : index, i32
    }
  }
  tile.return
}
