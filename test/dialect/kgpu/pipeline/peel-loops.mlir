// Checks that loops are split where a branch may begin or cease to be taken.
// RUN: kpkg-opt --kgpu-peel-loops --canonicalize --cse %s | FileCheck %s
// RUN: kpkg-opt --kgpu-peel-loops --canonicalize --cse '--remarks-filter=kgpu-peel-loops' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] a loop of its own for iterations without a mask | Category:kgpu-peel-loops | Function=both_sides | Remark="iterations that never take the branch do not test it"
// REMARK-DAG: [Passed] a loop of its own for iterations without a mask | Category:kgpu-peel-loops | Function=one_side | Remark="iterations that never take the branch do not test it"
// REMARK-DAG: [Missed] a loop of its own for iterations without a mask | Category:kgpu-peel-loops | Function=whole | Reason="a product adds to a value that begins at zero, or that the iteration computes"
// REMARK-DAG: [Missed] a loop of its own for iterations without a mask | Category:kgpu-peel-loops | Function=whole | Reason="the condition of its `if` is no comparison of integers, or several with `or`, that change once as the loop counts"

#acc = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-64 rep 1x1">
#any = #kgpu.layout<"reg 1:1-32 lane 0:1-16 warp 0:32-64 * rep 1x1">
#turned = #kgpu.layout<"reg 0:1-32 lane 1:1-16 warp 1:32 *2 rep 1x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xf32, mut, unit = 1>

// 64 n + 64 > end holds from floor((end - 64) / 64) + 1 on, and 64 n < begin holds below ceil(begin / 64). The loop
// between both does not compare.
// CHECK-LABEL: tile.kernel @both_sides
// CHECK: %[[REST:.*]] = arith.subi %arg5, %c64
// CHECK: %[[LAST:.*]] = arith.floordivsi %[[REST]], %c64
// CHECK: %[[BEHIND:.*]] = arith.addi %[[LAST]], %c1
// CHECK: %[[BEFORE:.*]] = arith.ceildivsi %arg4, %c64
// CHECK: %[[LEAST:.*]] = arith.maxsi %[[BEFORE]], %c0
// CHECK: %[[FIRST:.*]] = arith.minsi %[[LEAST]], %arg3
// CHECK: %[[MOST:.*]] = arith.minsi %[[BEHIND]], %arg3
// CHECK: %[[SECOND:.*]] = arith.maxsi %[[MOST]], %[[FIRST]]
// CHECK: %[[A:.*]] = scf.for %{{.*}} = %c0 to %[[FIRST]] step %c1 iter_args(%{{.*}} = %{{.*}})
// CHECK: scf.if
// CHECK: %[[B:.*]] = scf.for %{{.*}} = %[[FIRST]] to %[[SECOND]] step %c1 iter_args(%{{.*}} = %[[A]])
// CHECK-NOT: cmpi
// CHECK-NOT: scf.if
// CHECK: %[[C:.*]] = scf.for %{{.*}} = %[[SECOND]] to %arg3 step %c1 iter_args(%{{.*}} = %[[B]])
// CHECK: scf.if
// CHECK: tile.store %[[C]]
tile.kernel @both_sides(%q: !in, %k: !in, %y: !out, %blocks: index, %begin: index, %end: index)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 384, peels, consumers = 2>} {
  %zero = arith.constant 0.0 : bf16
  %start = arith.constant dense<1.0> : tensor<128x64xf32, #acc>
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32, #acc>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %u = tile.load %q[%c0, %c0] fill %zero : !in -> tensor<128x64xbf16, #any>
  %sum = scf.for %n = %c0 to %blocks step %c1 iter_args(%x = %start) -> (tensor<128x64xf32, #acc>) {
    %key = arith.muli %n, %c64 : index
    %kn = tile.load %k[%key, %c0] fill %zero : !in -> tensor<64x64xbf16, #turned>
    %s = tile.dot %u, %kn, %zeros : tensor<128x64xbf16, #any>, tensor<64x64xbf16, #turned>, tensor<128x64xf32, #acc>
    %ends = arith.addi %key, %c64 : index
    %behind = arith.cmpi sgt, %ends, %end : index
    %masked = scf.if %behind -> (i1) {
      scf.yield %true : i1
    } else {
      %before = arith.cmpi slt, %key, %begin : index
      scf.yield %before : i1
    }
    %t = scf.if %masked -> (tensor<128x64xf32, #acc>) {
      %m = arith.negf %s : tensor<128x64xf32, #acc>
      scf.yield %m : tensor<128x64xf32, #acc>
    } else {
      scf.yield %s : tensor<128x64xf32, #acc>
    }
    %next = arith.addf %x, %t : tensor<128x64xf32, #acc>
    scf.yield %next : tensor<128x64xf32, #acc>
  }
  tile.store %sum, %y[%c0, %c0] : tensor<128x64xf32, #acc>, !out
  tile.return
}

// One comparison, whose right side decreases with the counter: 100 >= limit - 8 n holds from ceil((limit - 100) / 8)
// on.
// CHECK-LABEL: tile.kernel @one_side
// CHECK: %[[REST:.*]] = arith.subi %arg4, %c100
// CHECK: %[[FROM:.*]] = arith.ceildivsi %[[REST]], %c8
// CHECK: %[[MOST:.*]] = arith.minsi %[[FROM]], %arg3
// CHECK: %[[SECOND:.*]] = arith.maxsi %[[MOST]], %c0
// CHECK: scf.for %{{.*}} = %c0 to %[[SECOND]]
// CHECK-NOT: scf.if
// CHECK: scf.for %{{.*}} = %[[SECOND]] to %arg3
// CHECK: scf.if
// CHECK-NOT: scf.for
tile.kernel @one_side(%q: !in, %k: !in, %y: !out, %blocks: index, %limit: index)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 384, peels, consumers = 2>} {
  %zero = arith.constant 0.0 : bf16
  %start = arith.constant dense<1.0> : tensor<128x64xf32, #acc>
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32, #acc>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %c100 = arith.constant 100 : index
  %u = tile.load %q[%c0, %c0] fill %zero : !in -> tensor<128x64xbf16, #any>
  %sum = scf.for %n = %c0 to %blocks step %c1 iter_args(%x = %start) -> (tensor<128x64xf32, #acc>) {
    %key = arith.muli %n, %c64 : index
    %kn = tile.load %k[%key, %c0] fill %zero : !in -> tensor<64x64xbf16, #turned>
    %s = tile.dot %u, %kn, %zeros : tensor<128x64xbf16, #any>, tensor<64x64xbf16, #turned>, tensor<128x64xf32, #acc>
    %eights = arith.muli %n, %c8 : index
    %rest = arith.subi %limit, %eights : index
    %few = arith.cmpi sge, %c100, %rest : index
    %t = scf.if %few -> (tensor<128x64xf32, #acc>) {
      %m = arith.negf %s : tensor<128x64xf32, #acc>
      scf.yield %m : tensor<128x64xf32, #acc>
    } else {
      scf.yield %s : tensor<128x64xf32, #acc>
    }
    %next = arith.addf %x, %t : tensor<128x64xf32, #acc>
    scf.yield %next : tensor<128x64xf32, #acc>
  }
  tile.store %sum, %y[%c0, %c0] : tensor<128x64xf32, #acc>, !out
  tile.return
}

// Not split: a loop whose sum begins at zero, since its first product differs, and a condition that is not linear. The
// launch then shows that nothing was split.
// CHECK-LABEL: tile.kernel @whole
// CHECK-NOT: peels
// CHECK: scf.for
// CHECK: scf.if
// CHECK: scf.for
// CHECK: scf.if
// CHECK-NOT: scf.for
tile.kernel @whole(%q: !in, %k: !in, %y: !out, %blocks: index, %end: index)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 384, peels, consumers = 2>} {
  %zero = arith.constant 0.0 : bf16
  %start = arith.constant dense<1.0> : tensor<128x64xf32, #acc>
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32, #acc>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %u = tile.load %q[%c0, %c0] fill %zero : !in -> tensor<128x64xbf16, #any>
  %sum = scf.for %n = %c0 to %blocks step %c1 iter_args(%x = %zeros) -> (tensor<128x64xf32, #acc>) {
    %key = arith.muli %n, %c64 : index
    %kn = tile.load %k[%key, %c0] fill %zero : !in -> tensor<64x64xbf16, #turned>
    %s = tile.dot %u, %kn, %x : tensor<128x64xbf16, #any>, tensor<64x64xbf16, #turned>, tensor<128x64xf32, #acc>
    %behind = arith.cmpi sgt, %key, %end : index
    %t = scf.if %behind -> (tensor<128x64xf32, #acc>) {
      %m = arith.negf %s : tensor<128x64xf32, #acc>
      scf.yield %m : tensor<128x64xf32, #acc>
    } else {
      scf.yield %s : tensor<128x64xf32, #acc>
    }
    scf.yield %t : tensor<128x64xf32, #acc>
  }
  %more = scf.for %n = %c0 to %blocks step %c1 iter_args(%x = %start) -> (tensor<128x64xf32, #acc>) {
    %key = arith.muli %n, %c64 : index
    %kn = tile.load %k[%key, %c0] fill %zero : !in -> tensor<64x64xbf16, #turned>
    %s = tile.dot %u, %kn, %zeros : tensor<128x64xbf16, #any>, tensor<64x64xbf16, #turned>, tensor<128x64xf32, #acc>
    %square = arith.muli %key, %n : index
    %behind = arith.cmpi sgt, %square, %end : index
    %t = scf.if %behind -> (tensor<128x64xf32, #acc>) {
      %m = arith.negf %s : tensor<128x64xf32, #acc>
      scf.yield %m : tensor<128x64xf32, #acc>
    } else {
      scf.yield %s : tensor<128x64xf32, #acc>
    }
    %next = arith.addf %x, %t : tensor<128x64xf32, #acc>
    scf.yield %next : tensor<128x64xf32, #acc>
  }
  %both = arith.addf %sum, %more : tensor<128x64xf32, #acc>
  tile.store %both, %y[%c0, %c0] : tensor<128x64xf32, #acc>, !out
  tile.return
}
