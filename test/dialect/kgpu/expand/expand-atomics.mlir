// Tests that old values of updates reach all threads that hold the element, if the first one is not alone.
// RUN: kpkg-opt --kgpu-expand-cvt %s | FileCheck %s
// RUN: kpkg-opt --kgpu-expand-cvt --kgpu-alloc-smem --kgpu-insert-barriers --lower-nvvm %s | FileCheck %s --check-prefix=LLVM

#all = #kgpu.layout<"lane 0:1-16 warp 0:32 rep 1">
#some = #kgpu.layout<"lane 0:1-16 warp * rep 1">
!in = !tile.view<1xi32, unit = 0>
!out = !tile.view<1xi32, mut, unit = 0>

// CHECK-LABEL: tile.kernel @alone
// CHECK: %[[OLD:.*]] = tile.atomic add
// CHECK-NOT: kgpu.alloc
// CHECK: tile.store %[[OLD]]
tile.kernel @alone(%x: !in, %y: !out, %z: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %i = tile.iota : tensor<64xindex, #all>
  %v = tile.load %x[%c0] fill %zero : !in -> tensor<64xi32, #all>
  %old = tile.atomic add %v, %y[%i] : tensor<64xi32, #all>, !out, tensor<64xindex, #all> -> tensor<64xi32, #all>
  tile.store %old, %z[%c0] : tensor<64xi32, #all>, !out
  tile.return
}

// CHECK-LABEL: tile.kernel @shared
// CHECK: %[[OLD:.*]] = tile.atomic add
// CHECK: %[[MEMORY:.*]] = kgpu.alloc : !kgpu.smem<32xi32>
// CHECK: kgpu.local_store %[[OLD]], %[[MEMORY]]
// CHECK: %[[SHARED:.*]] = kgpu.local_load %[[MEMORY]]
// CHECK: tile.store %[[SHARED]]
// An unused old value moves nowhere.
// CHECK: tile.atomic
// CHECK-NOT: kgpu.alloc
// LLVM-LABEL: llvm.func @shared
// LLVM: llvm.atomicrmw add
// LLVM: llvm.store {{.*}} !llvm.ptr<3>
// LLVM: nvvm.barrier
// LLVM: llvm.load {{.*}} !llvm.ptr<3>
tile.kernel @shared(%x: !in, %y: !out, %z: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %i = tile.iota : tensor<32xindex, #some>
  %v = tile.load %x[%c0] fill %zero : !in -> tensor<32xi32, #some>
  %old = tile.atomic add %v, %y[%i] : tensor<32xi32, #some>, !out, tensor<32xindex, #some> -> tensor<32xi32, #some>
  tile.store %old, %z[%c0] : tensor<32xi32, #some>, !out
  %unused = tile.atomic add %v, %y[%i] : tensor<32xi32, #some>, !out, tensor<32xindex, #some> -> tensor<32xi32, #some>
  tile.return
}
