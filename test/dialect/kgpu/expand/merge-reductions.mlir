// Checks that a sum about the result of another reduction shares its exchange, where that pays.
// RUN: kpkg-opt --kgpu-merge-reductions %s | FileCheck %s
// RUN: kpkg-opt --kgpu-merge-reductions --kgpu-group-reductions --kgpu-expand-reductions --kgpu-alloc-smem --kgpu-insert-barriers --kgpu-verify --lower-nvvm %s | FileCheck %s --check-prefix=LLVM
// RUN: kpkg-opt --kgpu-merge-reductions '--remarks-filter=kgpu-merge-reductions' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] dependent reductions as one | Category:kgpu-merge-reductions | Function=squares | Remark="this reduction and the one that it depends on share an exchange between warps"
// REMARK-DAG: [Passed] dependent reductions as one | Category:kgpu-merge-reductions | Function=exponentials | Remark="this reduction and the one that it depends on share an exchange between warps"
// REMARK-DAG: [Passed] dependent reductions as one | Category:kgpu-merge-reductions | Function=scaled | Remark="this reduction and the one that it depends on share an exchange between warps"
// REMARK-DAG: [Missed] dependent reductions as one | Category:kgpu-merge-reductions | Function=hidden | Reason="the exponentials, which others use too, would be computed twice"
// REMARK-DAG: [Missed] dependent reductions as one | Category:kgpu-merge-reductions | Function=hidden | Reason="elements of 16 bits load too fast to hide sums of each warp"
// REMARK-DAG: [Missed] dependent reductions as one | Category:kgpu-merge-reductions | Function=stays | Reason="one block holds the row, and an exchange within it costs less than sums of each warp"

#row = #kgpu.layout<"reg 1:1-2 lane 1:4-64 warp 1:128-256 block 1:512 rep 1x1">
#all = #kgpu.layout<"lane *5 warp *2 block * rep 1x1">
#cta = #kgpu.layout<"reg 1:1-2 lane 1:4-64 warp 1:128-256 rep 1x1">
#one = #kgpu.layout<"lane *5 warp *2 rep 1x1">
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// CHECK: #[[ROW:.*]] = #kgpu.layout<"reg 1:1-2 lane 1:4-64 warp 1:128-256 block 1:512 rep 1x1">
// CHECK: #[[PART:.*]] = #kgpu.layout<"lane *5 warp 1:1-2 block 1:4 rep 1x1">
// CHECK: #[[GATHER:.*]] = #kgpu.layout<"lane 1:1-4 *2 warp *2 block * rep 1x1">
// CHECK-LABEL: tile.kernel @squares
// CHECK: %[[V:.*]] = tile.load
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt
// CHECK: %[[SUM:.*]] = kgpu.partial_reduce sum %[[V]] axis 1 : tensor<1x1024xf32, #[[ROW]]> -> tensor<1x8xf32, #[[PART]]>
// CHECK: %[[ONES:.*]] = arith.select %[[INSIDE]]
// CHECK: %[[COUNT:.*]] = kgpu.partial_reduce sum %[[ONES]]
// CHECK: %[[CENTRE:.*]] = arith.divf %[[SUM]], %{{.*}} fastmath<afn> : tensor<1x8xf32, #[[PART]]>
// CHECK: %[[OWN:.*]] = kgpu.own_part %[[CENTRE]] axis 1
// CHECK: %[[D:.*]] = arith.subf %[[V]], %[[OWN]]
// CHECK: %[[C:.*]] = arith.select %[[INSIDE]], %[[D]]
// CHECK: %[[Q:.*]] = arith.mulf %[[C]], %[[C]]
// CHECK-DAG: %[[REST:.*]] = kgpu.partial_reduce sum %[[C]]
// CHECK-DAG: %[[SQUARES:.*]] = kgpu.partial_reduce sum %[[Q]]
// CHECK: %[[S:.*]]:4 = kgpu.share_parts %[[SUM]], %[[COUNT]], %[[REST]], %[[SQUARES]] axis 1
// CHECK: tile.reduce sum %[[S]]#0 axis 1 : tensor<1x8xf32, #[[GATHER]]>
// CHECK-NOT: partial_reduce
// CHECK: %[[T:.*]] = arith.addf %[[S]]#3
// CHECK: tile.reduce sum %[[T]] axis 1 : tensor<1x8xf32, #[[GATHER]]>
// CHECK: tile.return
// One exchange of four values.
// LLVM-LABEL: llvm.func @squares
// LLVM-COUNT-1: mbarrier.try_wait
// LLVM-NOT: mbarrier.try_wait
// LLVM-LABEL: llvm.func @exponentials
tile.kernel @squares(%x: !in, %y: !out) attributes {kgpu.launch = #kgpu.launch<threads = 128, cluster = 2>, kgpu.target = #kgpu.target<"sm_90a">} {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : tensor<1x1024xf32, #row>
  %many = arith.constant dense<1000.0> : tensor<1x1xf32, #all>
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<1x1024xf32, #row>
  %s = tile.reduce sum %v axis 1 : tensor<1x1024xf32, #row> -> tensor<1x1xf32, #all>
  %mean = arith.divf %s, %many : tensor<1x1xf32, #all>
  %n = tile.dim %x, 1 : !in
  %i = tile.iota : tensor<1024xindex, #kgpu.layout<"reg 0:1-2 lane 0:4-64 warp 0:128-256 block 0:512 rep 1">>
  %at = tile.reshape %i : tensor<1024xindex, #kgpu.layout<"reg 0:1-2 lane 0:4-64 warp 0:128-256 block 0:512 rep 1">> -> tensor<1x1024xindex, #row>
  %end = tile.splat %n : index -> tensor<1x1024xindex, #row>
  %inside = arith.cmpi slt, %at, %end : tensor<1x1024xindex, #row>
  %b = tile.broadcast %mean : tensor<1x1xf32, #all> -> tensor<1x1024xf32, #row>
  %d = arith.subf %v, %b : tensor<1x1024xf32, #row>
  %c = arith.select %inside, %d, %none : tensor<1x1024xi1, #row>, tensor<1x1024xf32, #row>
  %q = arith.mulf %c, %c : tensor<1x1024xf32, #row>
  %t = tile.reduce sum %q axis 1 : tensor<1x1024xf32, #row> -> tensor<1x1xf32, #all>
  tile.store %t, %y[%c0, %c0] : tensor<1x1xf32, #all>, !out
  tile.return
}

// Exponentials about the maximum: a warp whose elements are all -inf uses 0. They are computed again if they have other
// uses than their sum.
// CHECK-LABEL: tile.kernel @exponentials
// CHECK: %[[V:.*]] = tile.load
// CHECK: %[[TOP:.*]] = kgpu.partial_reduce max %[[V]]
// CHECK: %[[EMPTY:.*]] = arith.cmpf oeq, %[[TOP]]
// CHECK: %[[CENTRE:.*]] = arith.select %[[EMPTY]], %{{.*}}, %[[TOP]]
// CHECK: %[[OWN:.*]] = kgpu.own_part %[[CENTRE]]
// CHECK: %[[D:.*]] = arith.subf %[[V]], %[[OWN]]
// CHECK: %[[E:.*]] = math.exp %[[D]]
// CHECK: %[[P:.*]] = kgpu.partial_reduce sum %[[E]]
// CHECK: %[[S:.*]]:2 = kgpu.share_parts %[[TOP]], %[[P]]
// CHECK: %[[MAX:.*]] = tile.reduce max %[[S]]#0
// CHECK: %[[F:.*]] = math.exp %{{.*}} : tensor<1x8xf32
// CHECK: %[[T:.*]] = arith.mulf %[[S]]#1, %[[F]]
// CHECK: tile.reduce sum %[[T]]
tile.kernel @exponentials(%x: !in, %y: !out) attributes {kgpu.launch = #kgpu.launch<threads = 128, cluster = 2, persistent>, kgpu.target = #kgpu.target<"sm_90a">} {
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %low : !in -> tensor<1x1024xf32, #row>
  %m = tile.reduce max %v axis 1 : tensor<1x1024xf32, #row> -> tensor<1x1xf32, #all>
  %b = tile.broadcast %m : tensor<1x1xf32, #all> -> tensor<1x1024xf32, #row>
  %d = arith.subf %v, %b : tensor<1x1024xf32, #row>
  %e = math.exp %d : tensor<1x1024xf32, #row>
  %t = tile.reduce sum %e axis 1 : tensor<1x1024xf32, #row> -> tensor<1x1xf32, #all>
  %u = tile.broadcast %t : tensor<1x1xf32, #all> -> tensor<1x1024xf32, #row>
  %r = arith.divf %e, %u : tensor<1x1024xf32, #row>
  tile.store %r, %y[%c0, %c0] : tensor<1x1024xf32, #row>, !out
  tile.return
}

// Within a CTA, if only the sum is used; here in the form exp2((v - m) * c).
// CHECK-LABEL: tile.kernel @scaled
// CHECK: %[[OWN:.*]] = kgpu.own_part
// CHECK: %[[D:.*]] = arith.subf %{{.*}}, %[[OWN]]
// CHECK: %[[M:.*]] = arith.mulf %[[D]]
// CHECK: math.exp2 %[[M]]
// CHECK: kgpu.share_parts
// CHECK: math.exp2 %{{.*}} : tensor<1x4xf32
// LLVM-LABEL: llvm.func @scaled
// LLVM-COUNT-1: nvvm.barrier
// LLVM-NOT: nvvm.barrier
// LLVM-LABEL: llvm.func @stays
tile.kernel @scaled(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %wide = arith.constant dense<1.5> : tensor<1x512xf32, #cta>
  %v = tile.load %x[%c0, %c0] fill %low : !in -> tensor<1x512xf32, #cta>
  %m = tile.reduce max %v axis 1 : tensor<1x512xf32, #cta> -> tensor<1x1xf32, #one>
  %b = tile.broadcast %m : tensor<1x1xf32, #one> -> tensor<1x512xf32, #cta>
  %d = arith.subf %v, %b : tensor<1x512xf32, #cta>
  %p = arith.mulf %d, %wide : tensor<1x512xf32, #cta>
  %e = math.exp2 %p : tensor<1x512xf32, #cta>
  %t = tile.reduce sum %e axis 1 : tensor<1x512xf32, #cta> -> tensor<1x1xf32, #one>
  tile.store %t, %y[%c0, %c0] : tensor<1x1xf32, #one>, !out
  tile.return
}

// Not in clusters that are not persistent, where others hide the exchange. Not for squares of 16-bit elements either,
// which take longer than the exchange.
// CHECK-LABEL: tile.kernel @hidden
// CHECK-NOT: share_parts
tile.kernel @hidden(%x: !in, %z: !tile.view<2xbf16, unit = 1, align = 16, divisible = 8>, %y: !out) attributes {kgpu.launch = #kgpu.launch<threads = 128, cluster = 2>, kgpu.target = #kgpu.target<"sm_90a">} {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %low : !in -> tensor<1x1024xf32, #row>
  %m = tile.reduce max %v axis 1 : tensor<1x1024xf32, #row> -> tensor<1x1xf32, #all>
  %b = tile.broadcast %m : tensor<1x1xf32, #all> -> tensor<1x1024xf32, #row>
  %d = arith.subf %v, %b : tensor<1x1024xf32, #row>
  %e = math.exp %d : tensor<1x1024xf32, #row>
  %t = tile.reduce sum %e axis 1 : tensor<1x1024xf32, #row> -> tensor<1x1xf32, #all>
  tile.store %e, %y[%c0, %c0] : tensor<1x1024xf32, #row>, !out
  %narrow = tile.load %z[%c0, %c0] fill %zero : !tile.view<2xbf16, unit = 1, align = 16, divisible = 8> -> tensor<1x1024xbf16, #row>
  %w = arith.extf %narrow : tensor<1x1024xbf16, #row> to tensor<1x1024xf32, #row>
  %s = tile.reduce sum %w axis 1 : tensor<1x1024xf32, #row> -> tensor<1x1xf32, #all>
  %u = tile.broadcast %s : tensor<1x1xf32, #all> -> tensor<1x1024xf32, #row>
  %c = arith.subf %w, %u : tensor<1x1024xf32, #row>
  %q = arith.mulf %c, %c : tensor<1x1024xf32, #row>
  %r = tile.reduce sum %q axis 1 : tensor<1x1024xf32, #row> -> tensor<1x1xf32, #all>
  %a = arith.addf %t, %r : tensor<1x1xf32, #all>
  tile.store %a, %y[%c0, %c0] : tensor<1x1xf32, #all>, !out
  tile.return
}

// Not for squares within a CTA, nor for sums about another value than the maximum, or of other elements.
// CHECK-LABEL: tile.kernel @stays
// CHECK-NOT: share_parts
tile.kernel @stays(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %many = arith.constant dense<512.0> : tensor<1x1xf32, #one>
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<1x512xf32, #cta>
  %s = tile.reduce sum %v axis 1 : tensor<1x512xf32, #cta> -> tensor<1x1xf32, #one>
  %mean = arith.divf %s, %many : tensor<1x1xf32, #one>
  %b = tile.broadcast %mean : tensor<1x1xf32, #one> -> tensor<1x512xf32, #cta>
  %d = arith.subf %v, %b : tensor<1x512xf32, #cta>
  %q = arith.mulf %d, %d : tensor<1x512xf32, #cta>
  %t = tile.reduce sum %q axis 1 : tensor<1x512xf32, #cta> -> tensor<1x1xf32, #one>
  %m = tile.reduce max %q axis 1 : tensor<1x512xf32, #cta> -> tensor<1x1xf32, #one>
  %w = tile.broadcast %m : tensor<1x1xf32, #one> -> tensor<1x512xf32, #cta>
  %o = arith.subf %v, %w : tensor<1x512xf32, #cta>
  %e = math.exp %o : tensor<1x512xf32, #cta>
  %u = tile.reduce sum %e axis 1 : tensor<1x512xf32, #cta> -> tensor<1x1xf32, #one>
  %r = arith.addf %t, %u : tensor<1x1xf32, #one>
  tile.store %r, %y[%c0, %c0] : tensor<1x1xf32, #one>, !out
  tile.return
}
