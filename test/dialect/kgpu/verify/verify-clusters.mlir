// Checks the multicast of operands in a cluster: copies are complete, and no CTA waits forever.
// RUN: kpkg-opt --kgpu-verify-schedule --split-input-file --verify-diagnostics %s

// Two CTAs copy half of the bytes that both await.
#launch = #kgpu.target<"sm_90a">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!slots = !kgpu.smem<4x64x64xbf16, "2B 1:144,288,576,1024,2048,4096 2:2,4,8,16,32,64 rep 4x1x1 stride 8192,0,0">
!slot = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
tile.kernel @agree(%x: !in, %m: index, %n: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 256, cluster = 2, consumers = 1>, kgpu.target = #launch, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [32, 64], swizzle = 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %four = arith.constant 4 : i32
  %memory = kgpu.alloc : !slots
  %barriers = kgpu.alloc : !kgpu.smem<2x4xi64>
  %ring = kgpu.ring cluster %barriers : !kgpu.smem<2x4xi64> -> !kgpu.ring<4>
  kgpu.roles producer_warp {
    %uses = scf.for %i = %c0 to %n step %c1 iter_args(%use = %none) -> (i32) {
      kgpu.acquire %ring[%use] bytes 8192 : !kgpu.ring<4>
      %rest = arith.remui %use, %four : i32
      %number = arith.index_castui %rest : i32 to index
      %slot = kgpu.slot %memory[%number] : !slots -> !slot
      kgpu.tensor_load %x[%m, %c0] map 0 to %slot plus 0 signals %ring[%use] multicast 0 : !in, !slot, !kgpu.ring<4>
      %next = arith.addi %use, %one : i32
      scf.yield %next : i32
    }
  } consumers {
    %uses = scf.for %i = %c0 to %n step %c1 iter_args(%use = %none) -> (i32) {
      kgpu.await %ring[%use] : !kgpu.ring<4>
      kgpu.release %ring[%use] : !kgpu.ring<4>
      %next = arith.addi %use, %one : i32
      scf.yield %next : i32
    }
  }
  tile.return
}

// -----

// Warpgroups of the other CTA may still read the overwritten slot.
#launch = #kgpu.target<"sm_90a">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!slots = !kgpu.smem<4x64x64xbf16, "2B 1:144,288,576,1024,2048,4096 2:2,4,8,16,32,64 rep 4x1x1 stride 8192,0,0">
!slot = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
tile.kernel @alone(%x: !in, %m: index, %n: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 256, cluster = 2, consumers = 1>, kgpu.target = #launch, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [32, 64], swizzle = 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %four = arith.constant 4 : i32
  %memory = kgpu.alloc : !slots
  %barriers = kgpu.alloc : !kgpu.smem<2x4xi64>
  %ring = kgpu.ring %barriers : !kgpu.smem<2x4xi64> -> !kgpu.ring<4>
  kgpu.roles producer_warp {
    %uses = scf.for %i = %c0 to %n step %c1 iter_args(%use = %none) -> (i32) {
      kgpu.acquire %ring[%use] bytes 8192 : !kgpu.ring<4>
      %rest = arith.remui %use, %four : i32
      %number = arith.index_castui %rest : i32 to index
      %slot = kgpu.slot %memory[%number] : !slots -> !slot
      // expected-error @+1 {{fills slots of other CTAs, whose warpgroups do not release them for this one}}
      kgpu.tensor_load %x[%m, %c0] map 0 to %slot plus 0 signals %ring[%use] multicast 0 : !in, !slot, !kgpu.ring<4>
      %next = arith.addi %use, %one : i32
      scf.yield %next : i32
    }
  } consumers {
    %uses = scf.for %i = %c0 to %n step %c1 iter_args(%use = %none) -> (i32) {
      kgpu.await %ring[%use] : !kgpu.ring<4>
      kgpu.release %ring[%use] : !kgpu.ring<4>
      %next = arith.addi %use, %one : i32
      scf.yield %next : i32
    }
  }
  tile.return
}

// -----

// One CTA would wait for a half that nobody copies.
#launch = #kgpu.target<"sm_90a">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!slots = !kgpu.smem<4x64x64xbf16, "2B 1:144,288,576,1024,2048,4096 2:2,4,8,16,32,64 rep 4x1x1 stride 8192,0,0">
!slot = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
tile.kernel @uneven(%x: !in, %m: index, %n: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 256, cluster = 2, consumers = 1>, kgpu.target = #launch, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [32, 64], swizzle = 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %four = arith.constant 4 : i32
  %rank = kgpu.cluster_rank
  %more = arith.addi %n, %rank : index
  %memory = kgpu.alloc : !slots
  %barriers = kgpu.alloc : !kgpu.smem<2x4xi64>
  %ring = kgpu.ring cluster %barriers : !kgpu.smem<2x4xi64> -> !kgpu.ring<4>
  kgpu.roles producer_warp {
    // expected-error @+1 {{may run more often in one CTA of a cluster than in another, with copies for both}}
    %uses = scf.for %i = %c0 to %more step %c1 iter_args(%use = %none) -> (i32) {
      kgpu.acquire %ring[%use] bytes 8192 : !kgpu.ring<4>
      %rest = arith.remui %use, %four : i32
      %number = arith.index_castui %rest : i32 to index
      %slot = kgpu.slot %memory[%number] : !slots -> !slot
      kgpu.tensor_load %x[%m, %c0] map 0 to %slot plus 0 signals %ring[%use] multicast 0 : !in, !slot, !kgpu.ring<4>
      %next = arith.addi %use, %one : i32
      scf.yield %next : i32
    }
  } consumers {
    %uses = scf.for %i = %c0 to %more step %c1 iter_args(%use = %none) -> (i32) {
      kgpu.await %ring[%use] : !kgpu.ring<4>
      kgpu.release %ring[%use] : !kgpu.ring<4>
      %next = arith.addi %use, %one : i32
      scf.yield %next : i32
    }
  }
  tile.return
}

// -----

// The halves come from different positions.
#launch = #kgpu.target<"sm_90a">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!slots = !kgpu.smem<4x64x64xbf16, "2B 1:144,288,576,1024,2048,4096 2:2,4,8,16,32,64 rep 4x1x1 stride 8192,0,0">
!slot = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
tile.kernel @elsewhere(%x: !in, %m: index, %n: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 256, cluster = 2, consumers = 1>, kgpu.target = #launch, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [32, 64], swizzle = 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %four = arith.constant 4 : i32
  %rank = kgpu.cluster_rank
  %row = arith.addi %m, %rank : index
  %memory = kgpu.alloc : !slots
  %barriers = kgpu.alloc : !kgpu.smem<2x4xi64>
  %ring = kgpu.ring cluster %barriers : !kgpu.smem<2x4xi64> -> !kgpu.ring<4>
  kgpu.roles producer_warp {
    %uses = scf.for %i = %c0 to %n step %c1 iter_args(%use = %none) -> (i32) {
      kgpu.acquire %ring[%use] bytes 8192 : !kgpu.ring<4>
      %rest = arith.remui %use, %four : i32
      %number = arith.index_castui %rest : i32 to index
      %slot = kgpu.slot %memory[%number] : !slots -> !slot
      // expected-error @+1 {{brings a part of something else than other CTAs of the cluster}}
      kgpu.tensor_load %x[%row, %c0] map 0 to %slot plus 0 signals %ring[%use] multicast 0 : !in, !slot, !kgpu.ring<4>
      %next = arith.addi %use, %one : i32
      scf.yield %next : i32
    }
  } consumers {
    %uses = scf.for %i = %c0 to %n step %c1 iter_args(%use = %none) -> (i32) {
      kgpu.await %ring[%use] : !kgpu.ring<4>
      kgpu.release %ring[%use] : !kgpu.ring<4>
      %next = arith.addi %use, %one : i32
      scf.yield %next : i32
    }
  }
  tile.return
}

// -----

// The halves have rows at which the swizzle pattern does not repeat.
#launch = #kgpu.target<"sm_90a">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!slots = !kgpu.smem<4x64x64xbf16, "2B 1:144,288,576,1024,2048,4096 2:2,4,8,16,32,64 rep 4x1x1 stride 8192,0,0">
!slot = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
tile.kernel @swizzled(%x: !in, %m: index, %n: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 256, cluster = 2, consumers = 1>, kgpu.target = #launch, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [4, 64], swizzle = 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %four = arith.constant 4 : i32
  %memory = kgpu.alloc : !slots
  %barriers = kgpu.alloc : !kgpu.smem<2x4xi64>
  %ring = kgpu.ring cluster %barriers : !kgpu.smem<2x4xi64> -> !kgpu.ring<4>
  kgpu.roles producer_warp {
    %uses = scf.for %i = %c0 to %n step %c1 iter_args(%use = %none) -> (i32) {
      kgpu.acquire %ring[%use] bytes 1024 : !kgpu.ring<4>
      %rest = arith.remui %use, %four : i32
      %number = arith.index_castui %rest : i32 to index
      %slot = kgpu.slot %memory[%number] : !slots -> !slot
      // expected-error @+1 {{brings parts along dimension 0 that do not lie behind each other}}
      kgpu.tensor_load %x[%m, %c0] map 0 to %slot plus 0 signals %ring[%use] multicast 0 : !in, !slot, !kgpu.ring<4>
      %next = arith.addi %use, %one : i32
      scf.yield %next : i32
    }
  } consumers {
    %uses = scf.for %i = %c0 to %n step %c1 iter_args(%use = %none) -> (i32) {
      kgpu.await %ring[%use] : !kgpu.ring<4>
      kgpu.release %ring[%use] : !kgpu.ring<4>
      %next = arith.addi %use, %one : i32
      scf.yield %next : i32
    }
  }
  tile.return
}

// -----

// Each CTA must announce the bytes that both copy.
#launch = #kgpu.target<"sm_90a">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!slots = !kgpu.smem<4x64x64xbf16, "2B 1:144,288,576,1024,2048,4096 2:2,4,8,16,32,64 rep 4x1x1 stride 8192,0,0">
!slot = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
tile.kernel @half(%x: !in, %m: index, %n: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 256, cluster = 2, consumers = 1>, kgpu.target = #launch, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [32, 64], swizzle = 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %four = arith.constant 4 : i32
  %memory = kgpu.alloc : !slots
  %barriers = kgpu.alloc : !kgpu.smem<2x4xi64>
  %ring = kgpu.ring cluster %barriers : !kgpu.smem<2x4xi64> -> !kgpu.ring<4>
  kgpu.roles producer_warp {
    %uses = scf.for %i = %c0 to %n step %c1 iter_args(%use = %none) -> (i32) {
      kgpu.acquire %ring[%use] bytes 4096 : !kgpu.ring<4>
      %rest = arith.remui %use, %four : i32
      %number = arith.index_castui %rest : i32 to index
      %slot = kgpu.slot %memory[%number] : !slots -> !slot
      // expected-error @+1 {{brings 4096 bytes more than announced}}
      kgpu.tensor_load %x[%m, %c0] map 0 to %slot plus 0 signals %ring[%use] multicast 0 : !in, !slot, !kgpu.ring<4>
      %next = arith.addi %use, %one : i32
      scf.yield %next : i32
    }
  } consumers {
    %uses = scf.for %i = %c0 to %n step %c1 iter_args(%use = %none) -> (i32) {
      kgpu.await %ring[%use] : !kgpu.ring<4>
      kgpu.release %ring[%use] : !kgpu.ring<4>
      %next = arith.addi %use, %one : i32
      scf.yield %next : i32
    }
  }
  tile.return
}

// -----

// The kernel has no clusters.
#launch = #kgpu.target<"sm_90a">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!slots = !kgpu.smem<4x64x64xbf16, "2B 1:144,288,576,1024,2048,4096 2:2,4,8,16,32,64 rep 4x1x1 stride 8192,0,0">
!slot = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
tile.kernel @single(%x: !in, %m: index, %n: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 256, consumers = 1>, kgpu.target = #launch, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [32, 64], swizzle = 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %four = arith.constant 4 : i32
  %memory = kgpu.alloc : !slots
  %barriers = kgpu.alloc : !kgpu.smem<2x4xi64>
  %ring = kgpu.ring cluster %barriers : !kgpu.smem<2x4xi64> -> !kgpu.ring<4>
  // expected-error @+1 {{has rings of a cluster, which the kernel has not}}
  kgpu.roles producer_warp {
    %uses = scf.for %i = %c0 to %n step %c1 iter_args(%use = %none) -> (i32) {
      kgpu.acquire %ring[%use] bytes 8192 : !kgpu.ring<4>
      %rest = arith.remui %use, %four : i32
      %number = arith.index_castui %rest : i32 to index
      %slot = kgpu.slot %memory[%number] : !slots -> !slot
      kgpu.tensor_load %x[%m, %c0] map 0 to %slot plus 0 signals %ring[%use] multicast 0 : !in, !slot, !kgpu.ring<4>
      %next = arith.addi %use, %one : i32
      scf.yield %next : i32
    }
  } consumers {
    %uses = scf.for %i = %c0 to %n step %c1 iter_args(%use = %none) -> (i32) {
      kgpu.await %ring[%use] : !kgpu.ring<4>
      kgpu.release %ring[%use] : !kgpu.ring<4>
      %next = arith.addi %use, %one : i32
      scf.yield %next : i32
    }
  }
  tile.return
}

// -----

// Elements of a row are not contiguous.
#launch = #kgpu.target<"sm_90a">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!slots = !kgpu.smem<4x64x64xbf16, "2B 1:144,288,576,1024,2048,4096 2:2,4,8,16,32,64 rep 4x1x1 stride 8192,0,0">
!slot = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
tile.kernel @columns(%x: !in, %m: index, %n: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 256, cluster = 2, consumers = 1>, kgpu.target = #launch, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [32, 64], swizzle = 128>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %four = arith.constant 4 : i32
  %memory = kgpu.alloc : !slots
  %barriers = kgpu.alloc : !kgpu.smem<2x4xi64>
  %ring = kgpu.ring cluster %barriers : !kgpu.smem<2x4xi64> -> !kgpu.ring<4>
  kgpu.roles producer_warp {
    %uses = scf.for %i = %c0 to %n step %c1 iter_args(%use = %none) -> (i32) {
      kgpu.acquire %ring[%use] bytes 8192 : !kgpu.ring<4>
      %rest = arith.remui %use, %four : i32
      %number = arith.index_castui %rest : i32 to index
      %slot = kgpu.slot %memory[%number] : !slots -> !slot
      // expected-error @+1 {{cannot be shared out along dimension 1}}
      kgpu.tensor_load %x[%m, %c0] map 0 to %slot plus 0 signals %ring[%use] multicast 1 : !in, !slot, !kgpu.ring<4>
      %next = arith.addi %use, %one : i32
      scf.yield %next : i32
    }
  } consumers {
    %uses = scf.for %i = %c0 to %n step %c1 iter_args(%use = %none) -> (i32) {
      kgpu.await %ring[%use] : !kgpu.ring<4>
      kgpu.release %ring[%use] : !kgpu.ring<4>
      %next = arith.addi %use, %one : i32
      scf.yield %next : i32
    }
  }
  tile.return
}
