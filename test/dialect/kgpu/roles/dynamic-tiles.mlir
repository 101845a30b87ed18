// Checks that loops with a static schedule of tiles become loops of a dynamic tile scheduler.
// RUN: kpkg-opt --kgpu-dynamic-tiles %s --split-input-file --verify-diagnostics | FileCheck %s

!barriers = !kgpu.smem<2x4xi64>

// CHECK-LABEL: tile.kernel @taken
// CHECK-SAME: %[[COUNT:.*]]: index
// CHECK-DAG: %[[NONE:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[ID:.*]] = kgpu.cta_id
// CHECK: %[[RING:.*]] = kgpu.ring %
// CHECK: %[[PLACE:.*]] = kgpu.alloc : !kgpu.smem<3x4xi64>
// CHECK: %[[CHANNEL:.*]] = kgpu.ring channel %[[PLACE]]
// CHECK: kgpu.roles producer_warp
// CHECK: scf.while (%[[T:.*]] = %[[ID]], %[[USE:.*]] = %{{.*}}, %[[N:.*]] = %{{.*}}) : (index, i32, i32) -> (index, i32, i32)
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[T]], %[[COUNT]] : index
// CHECK: scf.condition(%[[MORE]]) %[[T]], %[[USE]], %[[N]]
// CHECK: ^bb0(%[[TILE:.*]]: index, %[[FILLS:.*]]: i32, %[[SENDS:.*]]: i32)
// CHECK: arith.maxsi %[[TILE]]
// CHECK: kgpu.acquire %[[RING]][%[[FILLS]]]
// CHECK: %[[NEXT:.*]] = kgpu.next_tile of %[[COUNT]]
// CHECK: kgpu.publish_index %[[NEXT]] to %[[CHANNEL]][%[[SENDS]]]
// CHECK: %[[SENT:.*]] = arith.addi %[[SENDS]]
// CHECK: scf.yield %[[NEXT]], %{{.*}}, %[[SENT]]
// CHECK: consumers
// CHECK: scf.while
// CHECK: ^bb0(%{{.*}}: index, %[[READS:.*]]: i32, %[[RECEIVES:.*]]: i32)
// CHECK: kgpu.await %[[RING]][%[[READS]]]
// CHECK: kgpu.release %[[RING]][%[[READS]]]
// CHECK: %[[RECEIVED:.*]] = kgpu.consume_index %[[CHANNEL]][%[[RECEIVES]]]
// CHECK: scf.yield %[[RECEIVED]]
tile.kernel @taken(%count: index)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, dynamic, consumers = 1>} {
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %id = kgpu.cta_id
  %ctas = kgpu.cta_count
  %place = kgpu.alloc : !barriers
  %ring = kgpu.ring %place : !barriers -> !kgpu.ring<4>
  kgpu.roles producer_warp {
    %uses = scf.for %t = %id to %count step %ctas iter_args(%use = %none) -> (i32) {
      kgpu.acquire %ring[%use] bytes 8192 : !kgpu.ring<4>
      %next = arith.addi %use, %one : i32
      scf.yield %next : i32
    }
  } consumers {
    %uses = scf.for %t = %id to %count step %ctas iter_args(%use = %none) -> (i32) {
      kgpu.await %ring[%use] : !kgpu.ring<4>
      kgpu.release %ring[%use] : !kgpu.ring<4>
      %next = arith.addi %use, %one : i32
      scf.yield %next : i32
    }
  }
  tile.return
}

// -----

// expected-error@+1 {{takes tiles from a counter, but has no loop of its own over the tiles of an output in each role}}
tile.kernel @none(%count: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, dynamic, consumers = 1>} {
  %id = kgpu.cta_id
  %ctas = kgpu.cta_count
  kgpu.roles producer_warp {
    scf.for %t = %id to %count step %ctas {
    }
  } consumers {
    %other = kgpu.cta_id
  }
  tile.return
}
