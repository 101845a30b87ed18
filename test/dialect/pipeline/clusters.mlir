// Checks a row that is too long for one CTA: a cluster shares it, and exchanges partial sums by distributed shared
// memory.
// RUN: kpkg-opt --gpu-pipeline=chip=sm_90a %s | FileCheck %s
// RUN: kpkg-opt --gpu-pipeline=chip=sm_80 %s | FileCheck %s --check-prefix=ALONE
// RUN: kpkg-opt --gpu-pipeline=chip=sm_90a --lower-nvvm %s | FileCheck %s --check-prefix=CODE
// RUN: kpkg-opt --gpu-pipeline=chip=sm_90a '--remarks-filter=kgpu-ring-loads|kgpu-configure' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] persistent blocks | Category:kgpu-configure | Function=long_rows | Remark="as many blocks as fit the chip, and each takes a tile after another"
// REMARK-DAG: [Passed] overlap with the kernel before | Category:kgpu-configure | Function=long_rows | Remark="blocks start before the kernel before has ended, and wait for it"
// REMARK-DAG: [Passed] loads of later iterations in flight | Category:kgpu-ring-loads | Function=long_rows | Remark="through shared memory, 1 iteration ahead"
// REMARK-DAG: [Missed] persistent blocks | Category:kgpu-configure | Function=rows | Reason="several blocks with rows of 65536 bytes on a multiprocessor hide each other's loads"
// REMARK-DAG: [Passed] overlap with the kernel before | Category:kgpu-configure | Function=rows | Remark="blocks start before the kernel before has ended, and wait for it"

// Two CTAs on an SM hold too little of such rows to hide their exchanges. So clusters are persistent, with the next row
// in flight. Each CTA waits for the others to run before it writes to them, with its loads in flight. Then it waits
// only for the partial sums that they send.
// CHECK-LABEL: tile.kernel @long_rows
// CHECK-SAME: #kgpu.launch<threads = 512{{[^>]*}}cluster = 8{{[^>]*}}min_ctas = 2{{[^>]*}}persistent{{[^>]*}}stages = 1
// CHECK: %[[BARRIERS:.*]] = kgpu.alloc
// CHECK: kgpu.exchange_init %[[BARRIERS]]
// CHECK: kgpu.fetch
// CHECK-NEXT: kgpu.async_commit
// CHECK-NEXT: kgpu.cluster_barrier relaxed
// CHECK: scf.for
// CHECK: kgpu.fetched
// CHECK: %[[PART:.*]] = kgpu.partial_reduce sum %{{.*}} -> tensor<1x128xf32, #{{.*}}>
// CHECK: kgpu.exchange %[[PART]] to %[[BUFFER:.*]] signals %[[BARRIERS]][
// CHECK-NEXT: kgpu.local_load %[[BUFFER]]
// CHECK-NOT: kgpu.{{.*}}barrier

// ALONE-LABEL: tile.kernel @long_rows
// ALONE-NOT: cluster
// ALONE: #kgpu.launch<threads = 1024

// CODE-LABEL: llvm.func @long_rows
// CODE-DAG: %[[BYTES:.*]] = llvm.mlir.constant(512 : i32) : i32
// CODE: nvvm.cluster.arrive.relaxed
// CODE: nvvm.cluster.wait
// CODE: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %[[BYTES]]
// CODE: nvvm.mapa
// CODE: st.async.shared::cluster.mbarrier::complete_tx::bytes.b32
// CODE: mbarrier.try_wait.parity
// CODE-NOT: nvvm.cluster
// CODE-LABEL: llvm.func @rows
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @long_rows(%x: !in, %y: !out) {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %n = tile.load %x[%row, %c0] fill %zero : !in -> tensor<1x131072xbf16>
  %v = arith.extf %n : tensor<1x131072xbf16> to tensor<1x131072xf32>
  %q = arith.mulf %v, %v : tensor<1x131072xf32>
  %m = tile.reduce sum %q axis 1 : tensor<1x131072xf32> -> tensor<1x1xf32>
  %r = math.rsqrt %m : tensor<1x1xf32>
  %b = tile.broadcast %r : tensor<1x1xf32> -> tensor<1x131072xf32>
  %s = arith.mulf %v, %b : tensor<1x131072xf32>
  %t = arith.truncf %s : tensor<1x131072xf32> to tensor<1x131072xbf16>
  tile.store %t, %y[%row, %c0] : tensor<1x131072xbf16>, !out
  tile.return
}

// Parts of four rows fit an SM, so CTAs are not persistent: some load and store while others exchange.
// CHECK-LABEL: tile.kernel @rows
// CHECK-SAME: #kgpu.launch<threads = 256{{[^>]*}}cluster = 4{{[^>]*}}min_ctas = 4
// CHECK: tile.load
// CHECK-NEXT: kgpu.cluster_barrier relaxed
// CHECK: kgpu.exchange %
// CODE: st.async
tile.kernel @rows(%x: !in, %y: !out) {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %n = tile.load %x[%row, %c0] fill %zero : !in -> tensor<1x32768xbf16>
  %v = arith.extf %n : tensor<1x32768xbf16> to tensor<1x32768xf32>
  %q = arith.mulf %v, %v : tensor<1x32768xf32>
  %m = tile.reduce sum %q axis 1 : tensor<1x32768xf32> -> tensor<1x1xf32>
  %r = math.rsqrt %m : tensor<1x1xf32>
  %b = tile.broadcast %r : tensor<1x1xf32> -> tensor<1x32768xf32>
  %s = arith.mulf %v, %b : tensor<1x32768xf32>
  %t = arith.truncf %s : tensor<1x32768xf32> to tensor<1x32768xbf16>
  tile.store %t, %y[%row, %c0] : tensor<1x32768xbf16>, !out
  tile.return
}
