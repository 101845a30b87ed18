// Checks the diagnostics of kgpu-verify.
// RUN: kpkg-opt --kgpu-verify --split-input-file --verify-diagnostics %s

#wide = #kgpu.layout<"lane 0:1-16 warp 0:32 rep 1">
tile.kernel @warps() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  // expected-error @+1 {{has the layout lane 0:1-16 warp 0:32 rep 1, but a kernel block has 32 lanes, 1 warps and 1 CTAs}}
  %t = arith.constant dense<0.0> : tensor<64xf32, #wide>
  tile.return
}

// -----

tile.kernel @layoutless() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  // expected-error @+1 {{has a tile without a layout: 'tensor<64xf32>'}}
  %t = arith.constant dense<0.0> : tensor<64xf32>
  tile.return
}

// -----

#row = #kgpu.layout<"lane 1:1-16 rep 1x1">
#column = #kgpu.layout<"lane 1:1 *4 rep 1x1">
tile.kernel @reduction() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %t = arith.constant dense<0.0> : tensor<1x32xf32, #row>
  // expected-error @+1 {{has the layout lane 1:1 *4 rep 1x1 where lane *5 rep 1x1 follows from its other tile}}
  %s = tile.reduce sum %t axis 1 : tensor<1x32xf32, #row> -> tensor<1x1xf32, #column>
  tile.return
}

// -----

// expected-error @+1 {{has clusters of 8 CTAs, sm_80 runs at most 1}}
tile.kernel @clusters() attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 32, cluster = 8>} {
  tile.return
}

// -----

tile.kernel @outside() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32, shared = 128>} {
  // expected-error @+1 {{lies at byte 128 of 128 and takes 16, aligned to 128}}
  %b = kgpu.alloc offset 128 : !kgpu.smem<4xf32>
  tile.return
}

// -----

tile.kernel @packed() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128, blocks = 8>} {
  // expected-error @+1 {{cannot be in a kernel whose blocks are packed into CTAs}}
  kgpu.barrier
  tile.return
}

// -----

tile.kernel @misplaced() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, consumers = 1>} {
  %barriers = kgpu.alloc : !kgpu.smem<2x4xi64>
  %ring = kgpu.ring %barriers : !kgpu.smem<2x4xi64> -> !kgpu.ring<4>
  %use = arith.constant 0 : i32
  kgpu.roles producer_warp {
    // expected-error @+1 {{belongs to the role that computes}}
    kgpu.await %ring[%use] : !kgpu.ring<4>
  } consumers {
    kgpu.release %ring[%use] : !kgpu.ring<4>
  }
  tile.return
}

// -----

#flat = #kgpu.layout<"reg 1:1-4 lane 0:1-16 warp 0:32 * rep 1x1">
!a = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
!b = !kgpu.smem<64x8xbf16, "2B 0:2,4,8,16,32,64 1:144,288,576 rep 1x1">
tile.kernel @accumulator() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, consumers = 1>} {
  %adds = arith.constant true
  %zeros = arith.constant dense<0.0> : tensor<64x8xf32, #flat>
  %x = kgpu.alloc : !a
  %y = kgpu.alloc : !b
  kgpu.roles producer_warp {
    %none = arith.constant 0 : i32
  } consumers {
    // expected-error @+1 {{accumulates in the layout reg 1:1-4}}
    %d = kgpu.wgmma %x, %y, %zeros adds %adds : !a, !b, tensor<64x8xf32, #flat>
    %e = kgpu.wgmma_wait 0 %d : tensor<64x8xf32, #flat> -> tensor<64x8xf32, #flat>
  }
  tile.return
}

// -----

#part = #kgpu.layout<"lane *5 warp 1:1-2 block 1:4 rep 1x1">
tile.kernel @once(%rows: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128, cluster = 2>} {
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %part = arith.constant dense<1.0> : tensor<1x8xf32, #part>
  %barriers = kgpu.alloc : !kgpu.smem<1xi64>
  %all = kgpu.alloc : !kgpu.smem<1x1x8xf32>
  kgpu.exchange_init %barriers : !kgpu.smem<1xi64>
  scf.for %i = %c0 to %rows step %c1 iter_args(%use = %none) -> (i32) {
    %slot = kgpu.slot %all[%c0] : !kgpu.smem<1x1x8xf32> -> !kgpu.smem<1x8xf32>
    // expected-error @+1 {{fills its only slot again while others may read it}}
    kgpu.exchange %part to %slot signals %barriers[%use] : tensor<1x8xf32, #part> to !kgpu.smem<1x8xf32> signals !kgpu.smem<1xi64>
    %next = arith.addi %use, %one : i32
    scf.yield %next : i32
  }
  tile.return
}

// -----

#part = #kgpu.layout<"lane *5 warp 1:1-2 block 1:4 rep 1x1">
tile.kernel @once(%rows: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128, cluster = 2>} {
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %part = arith.constant dense<1.0> : tensor<1x8xf32, #part>
  %barriers = kgpu.alloc : !kgpu.smem<1xi64>
  %all = kgpu.alloc : !kgpu.smem<1x1x8xf32>
  scf.for %i = %c0 to %rows step %c1 iter_args(%use = %none) -> (i32) {
    %slot = kgpu.slot %all[%c0] : !kgpu.smem<1x1x8xf32> -> !kgpu.smem<1x8xf32>
    // expected-error @+1 {{has barriers that nobody has prepared}}
    kgpu.exchange %part to %slot signals %barriers[%use] : tensor<1x8xf32, #part> to !kgpu.smem<1x8xf32> signals !kgpu.smem<1xi64>
    %next = arith.addi %use, %one : i32
    scf.yield %next : i32
  }
  tile.return
}

// -----

#part = #kgpu.layout<"lane *5 warp 1:1-2 block 1:4 rep 1x1">
tile.kernel @once(%rows: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128, cluster = 2>} {
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %part = arith.constant dense<1.0> : tensor<1x8xf32, #part>
  %barriers = kgpu.alloc : !kgpu.smem<1xi64>
  %all = kgpu.alloc : !kgpu.smem<1x1x8xf32>
  kgpu.exchange_init %barriers : !kgpu.smem<1xi64>
  %cta = kgpu.cta_id
  scf.for %i = %cta to %rows step %c1 iter_args(%use = %none) -> (i32) {
    %slot = kgpu.slot %all[%c0] : !kgpu.smem<1x1x8xf32> -> !kgpu.smem<1x8xf32>
    // expected-error @+1 {{is in a loop of which CTAs of a cluster may run other iterations}}
    kgpu.exchange %part to %slot signals %barriers[%use] : tensor<1x8xf32, #part> to !kgpu.smem<1x8xf32> signals !kgpu.smem<1xi64>
    %next = arith.addi %use, %one : i32
    scf.yield %next : i32
  }
  tile.return
}

// -----

#part = #kgpu.layout<"lane *5 warp 1:1-2 block 1:4 rep 1x1">
tile.kernel @once(%rows: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128, cluster = 2>} {
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %part = arith.constant dense<1.0> : tensor<1x8xf32, #part>
  %barriers = kgpu.alloc : !kgpu.smem<1xi64>
  %all = kgpu.alloc : !kgpu.smem<1x1x8xf32>
  kgpu.exchange_init %barriers : !kgpu.smem<1xi64>
  %cta = kgpu.cta_id
  %flag = arith.cmpi sgt, %rows, %c1 : index
  %begin = scf.if %flag -> index {
    %other = arith.addi %cta, %c1 : index
    scf.yield %other : index
  } else {
    scf.yield %c0 : index
  }
  scf.for %i = %begin to %rows step %c1 iter_args(%use = %none) -> (i32) {
    %slot = kgpu.slot %all[%c0] : !kgpu.smem<1x1x8xf32> -> !kgpu.smem<1x8xf32>
    // expected-error @+1 {{is in a loop of which CTAs of a cluster may run other iterations}}
    kgpu.exchange %part to %slot signals %barriers[%use] : tensor<1x8xf32, #part> to !kgpu.smem<1x8xf32> signals !kgpu.smem<1xi64>
    %next = arith.addi %use, %one : i32
    scf.yield %next : i32
  }
  tile.return
}

// -----

#part = #kgpu.layout<"lane *5 warp 1:1-2 block 1:4 rep 1x1">
tile.kernel @once(%rows: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128, cluster = 2>} {
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %part = arith.constant dense<1.0> : tensor<1x8xf32, #part>
  %barriers = kgpu.alloc : !kgpu.smem<1xi64>
  %all = kgpu.alloc : !kgpu.smem<1x1x8xf32>
  kgpu.exchange_init %barriers : !kgpu.smem<1xi64>
  %cta = kgpu.cta_id
  %flag = arith.cmpi sgt, %rows, %c1 : index
  %begin = scf.if %flag -> index {
    %rank = kgpu.cluster_rank
    scf.yield %rank : index
  } else {
    scf.yield %c0 : index
  }
  scf.for %i = %begin to %rows step %c1 iter_args(%use = %none) -> (i32) {
    %slot = kgpu.slot %all[%c0] : !kgpu.smem<1x1x8xf32> -> !kgpu.smem<1x8xf32>
    // expected-error @+1 {{is in a loop of which CTAs of a cluster may run other iterations}}
    kgpu.exchange %part to %slot signals %barriers[%use] : tensor<1x8xf32, #part> to !kgpu.smem<1x8xf32> signals !kgpu.smem<1xi64>
    %next = arith.addi %use, %one : i32
    scf.yield %next : i32
  }
  tile.return
}

// -----

#part = #kgpu.layout<"lane *5 warp 1:1-2 block 1:4 rep 1x1">
tile.kernel @once(%rows: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128, cluster = 2>} {
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %part = arith.constant dense<1.0> : tensor<1x8xf32, #part>
  %barriers = kgpu.alloc : !kgpu.smem<1xi64>
  %all = kgpu.alloc : !kgpu.smem<1x1x8xf32>
  kgpu.exchange_init %barriers : !kgpu.smem<1xi64>
  scf.for %i = %c0 to %rows step %c1 iter_args(%use = %none) -> (i32) {
    %slot = kgpu.slot %all[%c0] : !kgpu.smem<1x1x8xf32> -> !kgpu.smem<1x8xf32>
    // expected-error @+1 {{does not count its uses 0, 1, 2, ...}}
    kgpu.exchange %part to %slot signals %barriers[%use] : tensor<1x8xf32, #part> to !kgpu.smem<1x8xf32> signals !kgpu.smem<1xi64>
    %next = arith.addi %one, %one : i32
    scf.yield %next : i32
  }
  tile.return
}

// -----

#part = #kgpu.layout<"lane *5 warp 1:1-2 block 1:4 rep 1x1">
tile.kernel @once(%rows: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128, cluster = 2>} {
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %part = arith.constant dense<1.0> : tensor<1x8xf32, #part>
  %barriers = kgpu.alloc : !kgpu.smem<2xi64>
  %all = kgpu.alloc : !kgpu.smem<2x1x8xf32>
  kgpu.exchange_init %barriers : !kgpu.smem<2xi64>
  scf.for %i = %c0 to %rows step %c1 iter_args(%use = %none) -> (i32) {
    %slot = kgpu.slot %all[%c0] : !kgpu.smem<2x1x8xf32> -> !kgpu.smem<1x8xf32>
    // expected-error @+1 {{fills a buffer that is not slot number `use` of 2}}
    kgpu.exchange %part to %slot signals %barriers[%use] : tensor<1x8xf32, #part> to !kgpu.smem<1x8xf32> signals !kgpu.smem<2xi64>
    %next = arith.addi %use, %one : i32
    scf.yield %next : i32
  }
  tile.return
}

// -----

#part = #kgpu.layout<"lane *5 warp 1:1-2 block 1:4 rep 1x1">
tile.kernel @once(%rows: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128, cluster = 2>} {
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %part = arith.constant dense<1.0> : tensor<1x8xf32, #part>
  %barriers = kgpu.alloc : !kgpu.smem<1xi64>
  %all = kgpu.alloc : !kgpu.smem<1x1x8xf32>
  kgpu.exchange_init %barriers : !kgpu.smem<1xi64>
  %some = arith.cmpi eq, %rows, %c1 : index
  scf.if %some {
    %slot = kgpu.slot %all[%c0] : !kgpu.smem<1x1x8xf32> -> !kgpu.smem<1x8xf32>
    // expected-error @+1 {{stands where not all threads of the cluster may come}}
    kgpu.exchange %part to %slot signals %barriers[%none] : tensor<1x8xf32, #part> to !kgpu.smem<1x8xf32> signals !kgpu.smem<1xi64>
  }
  tile.return
}

// -----

#part = #kgpu.layout<"lane *5 warp 1:1-2 block 1:4 rep 1x1">
tile.kernel @once(%rows: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128, cluster = 2>} {
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %part = arith.constant dense<1.0> : tensor<1x8xf32, #part>
  %barriers = kgpu.alloc : !kgpu.smem<1xi64>
  %all = kgpu.alloc : !kgpu.smem<1x1x8xf32>
  kgpu.exchange_init %barriers : !kgpu.smem<1xi64>
  %slot = kgpu.slot %all[%c0] : !kgpu.smem<1x1x8xf32> -> !kgpu.smem<1x8xf32>
  kgpu.local_store %part, %slot : tensor<1x8xf32, #part>, !kgpu.smem<1x8xf32>
  // expected-error @+1 {{has a buffer that is not read behind it, and nothing else}}
  kgpu.exchange %part to %slot signals %barriers[%none] : tensor<1x8xf32, #part> to !kgpu.smem<1x8xf32> signals !kgpu.smem<1xi64>
  tile.return
}

// -----

#part = #kgpu.layout<"lane *5 warp 1:1-2 block 1:4 rep 1x1">
tile.kernel @once(%rows: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128, cluster = 2, shared = 128>} {
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %part = arith.constant dense<1.0> : tensor<1x8xf32, #part>
  %barriers = kgpu.alloc offset 0 : !kgpu.smem<1xi64>
  %all = kgpu.alloc : !kgpu.smem<1x1x8xf32>
  kgpu.exchange_init %barriers : !kgpu.smem<1xi64>
  %slot = kgpu.slot %all[%c0] : !kgpu.smem<1x1x8xf32> -> !kgpu.smem<1x8xf32>
  // expected-error @+1 {{may come before other CTAs have prepared their barriers}}
  kgpu.exchange %part to %slot signals %barriers[%none] : tensor<1x8xf32, #part> to !kgpu.smem<1x8xf32> signals !kgpu.smem<1xi64>
  tile.return
}

// -----

// Three warpgroups: elements of the missing fourth one must lie outside of the tile.
#half = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-128 rep 1x1">
tile.kernel @held() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 512, consumers = 3>} {
  %fits = arith.constant dense<1.0> : tensor<192x64xf32, #half>
  // expected-error @+1 {{but a kernel block has only 12 warps, and the others would hold elements}}
  %more = arith.constant dense<1.0> : tensor<256x64xf32, #half>
  tile.return
}
