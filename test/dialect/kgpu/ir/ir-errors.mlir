// Checks that invalid kgpu IR is rejected with a reason.
// RUN: kpkg-opt --split-input-file --verify-diagnostics %s

// expected-error @+1 {{unknown chip 'sm_35', known are sm_80 sm_86 sm_89 sm_90a sm_100a sm_120}}
tile.kernel @chip() attributes {kgpu.target = #kgpu.target<"sm_35">} {
  tile.return
}

// -----

tile.kernel @covers() attributes {kgpu.target = #kgpu.target<"sm_90a">} {
  // expected-error @+1 {{layout reg 0:1-2 lane 0:4-64 rep 1 does not cover the shape [256]}}
  %t = arith.constant dense<0.0> : tensor<256xf32, #kgpu.layout<"reg 0:1-2 lane 0:4-64 rep 1">>
  tile.return
}

// -----

// expected-error @+1 {{packs 4 blocks into 512 threads; each must get a power of two of lanes of one warp}}
tile.kernel @packed() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 512, blocks = 4>} {
  tile.return
}

// -----

// expected-error @+1 {{has 96 threads, which is no power of two up to 1024}}
tile.kernel @threads() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 96>} {
  tile.return
}

// -----

#layout = #kgpu.layout<"lane 0:1-16 rep 1">
// expected-error @+2 {{has a layout in a kernel without a 'kgpu.target' attribute}}
tile.kernel @untargeted() {
  %t = arith.constant dense<0.0> : tensor<32xf32, #layout>
  tile.return
}

// -----

#layout = #kgpu.layout<"lane 0:1-16 warp 0:32 rep 1">
#wrong = #kgpu.layout<"lane 0:1 *4 warp * rep 1">
tile.kernel @partial() attributes {kgpu.target = #kgpu.target<"sm_90a">} {
  %t = arith.constant dense<0.0> : tensor<64xf32, #layout>
  // expected-error @+1 {{gives 'tensor<2xf32, #kgpu.layout<"lane *5 warp 0:1 rep 1">>', not}}
  %p = kgpu.partial_reduce sum %t axis 0 : tensor<64xf32, #layout> -> tensor<2xf32, #wrong>
  tile.return
}

// -----

tile.kernel @layoutless() attributes {kgpu.target = #kgpu.target<"sm_90a">} {
  %b = kgpu.alloc : !kgpu.smem<32xf32>
  // expected-error @+1 {{needs a layout on 'tensor<32xf32>'}}
  %t = kgpu.local_load %b : !kgpu.smem<32xf32> -> tensor<32xf32>
  tile.return
}

// -----

// expected-error @+1 {{swizzle of a tensor map is 0, 32, 64 or 128 bytes, not 48}}
tile.kernel @map_swizzle(%a: !tile.view<3xbf16, unit = 2, align = 16, divisible = 8, index = 32>) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [1, 64, 64], swizzle = 48>]} {
  tile.return
}

// -----

// expected-error @+1 {{box of a tensor map has extent 512, which is not in 1 to 256}}
tile.kernel @map_extent(%a: !tile.view<3xbf16, unit = 2, align = 16, divisible = 8, index = 32>) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [1, 512, 64], swizzle = 128>]} {
  tile.return
}

// -----

// expected-error @+1 {{a tensor map has 1 to 5 dimensions, not 6}}
tile.kernel @map_dims(%a: !tile.view<3xbf16, unit = 2, align = 16, divisible = 8, index = 32>) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [1, 1, 1, 1, 1, 8], swizzle = 0>]} {
  tile.return
}

// -----

// expected-error @+1 {{attribute 'kgpu.tensor_maps' must be an array of #kgpu.tensor_map}}
tile.kernel @map_list(%a: !tile.view<3xbf16, unit = 2, align = 16, divisible = 8, index = 32>) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [1 : i32]} {
  tile.return
}

// -----

// expected-error @+1 {{has a tensor map of argument 1, which is no view}}
tile.kernel @map_argument(%a: !tile.view<3xbf16, unit = 2, align = 16, divisible = 8, index = 32>) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 1, box = [1, 64, 64], swizzle = 128>]} {
  tile.return
}

// -----

// expected-error @+1 {{has a tensor map with a box of 2 dimensions for argument 0 of type}}
tile.kernel @map_rank(%a: !tile.view<3xbf16, unit = 2, align = 16, divisible = 8, index = 32>) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [64, 64], swizzle = 128>]} {
  tile.return
}

// -----

// expected-error @+1 {{has a tensor map of elements that the TMA does not copy: 'i1'}}
tile.kernel @map_element(%a: !tile.view<3xi1, unit = 2, align = 16, divisible = 16, index = 32>) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [1, 64, 64], swizzle = 128>]} {
  tile.return
}

// -----

// expected-error @+1 {{of which address and strides are not known to be multiples of 16 bytes}}
tile.kernel @map_facts(%a: !tile.view<3xbf16, unit = 2, align = 16, index = 32>) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [1, 64, 64], swizzle = 128>]} {
  tile.return
}

// -----

// expected-error @+1 {{has a tensor map whose boxes have rows of 24 bytes, which is no multiple of 16}}
tile.kernel @map_row(%a: !tile.view<3xbf16, unit = 2, align = 16, divisible = 8, index = 32>) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [1, 64, 12], swizzle = 128>]} {
  tile.return
}

// -----

// expected-error @+1 {{has a tensor map whose boxes have rows of 256 bytes, which is more than is swizzled: 128}}
tile.kernel @map_span(%a: !tile.view<3xbf16, unit = 2, align = 16, divisible = 8, index = 32>) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [1, 64, 128], swizzle = 128>]} {
  tile.return
}

// -----

// expected-error @+1 {{has tensor maps, of which sm_80 knows nothing}}
tile.kernel @map_chip(%a: !tile.view<3xbf16, unit = 2, align = 16, divisible = 8, index = 32>) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [1, 64, 64], swizzle = 128>]} {
  tile.return
}

// -----

#half = #kgpu.layout<"lane *4 warp 1:1 block 1:2 rep 1x1">
tile.kernel @half_warp() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %none = arith.constant 0 : i32
  %part = arith.constant dense<1.0> : tensor<1x4xf32, #half>
  %slot = kgpu.alloc : !kgpu.smem<1x4xf32>
  %barriers = kgpu.alloc : !kgpu.smem<1xi64>
  // expected-error @+1 {{is not held once by all warps of the cluster, in all lanes}}
  kgpu.exchange %part to %slot signals %barriers[%none] : tensor<1x4xf32, #half> to !kgpu.smem<1x4xf32> signals !kgpu.smem<1xi64>
  tile.return
}

// -----

#part = #kgpu.layout<"lane *5 warp 1:1 block 1:2 rep 1x1">
tile.kernel @exchange_without_threads() attributes {kgpu.target = #kgpu.target<"sm_90a">} {
  %none = arith.constant 0 : i32
  %part = arith.constant dense<1.0> : tensor<1x4xf32, #part>
  %slot = kgpu.alloc : !kgpu.smem<1x4xf32>
  %barriers = kgpu.alloc : !kgpu.smem<1xi64>
  // expected-error @+1 {{is not held once by all warps of the cluster, in all lanes}}
  kgpu.exchange %part to %slot signals %barriers[%none] : tensor<1x4xf32, #part> to !kgpu.smem<1x4xf32> signals !kgpu.smem<1xi64>
  tile.return
}

// -----

#part = #kgpu.layout<"lane *5 warp 1:1 block 1:2 rep 1x1">
tile.kernel @other_place() attributes {kgpu.launch = #kgpu.launch<threads = 64, cluster = 2>, kgpu.target = #kgpu.target<"sm_90a">} {
  %none = arith.constant 0 : i32
  %part = arith.constant dense<1.0> : tensor<1x4xf32, #part>
  %slot = kgpu.alloc : !kgpu.smem<1x8xf32>
  %barriers = kgpu.alloc : !kgpu.smem<1xi64>
  // expected-error @+1 {{which is not the tile of '!kgpu.smem<1x8xf32>'}}
  kgpu.exchange %part to %slot signals %barriers[%none] : tensor<1x4xf32, #part> to !kgpu.smem<1x8xf32> signals !kgpu.smem<1xi64>
  tile.return
}

// -----

tile.kernel @no_barriers() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %words = kgpu.alloc : !kgpu.smem<2xi32>
  // expected-error @+1 {{'!kgpu.smem<2xi32>' is no place for barriers}}
  kgpu.exchange_init %words : !kgpu.smem<2xi32>
  tile.return
}

// -----

#wide = #kgpu.layout<"reg 1:1-2 lane 1:4-64 warp 1:128 rep 1x1">
tile.kernel @fetch_too_much(%x: !tile.view<2xf32>, %c: index, %inside: i1) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %buffer = kgpu.alloc : !kgpu.smem<512xi8>
  // expected-error @+1 {{needs 1024 bytes, not '!kgpu.smem<512xi8>'}}
  kgpu.fetch %x[%c, %c] of tensor<1x256xf32, #wide> if %inside to %buffer : !tile.view<2xf32>, !kgpu.smem<512xi8>
  tile.return
}

// -----

// expected-error @+2 {{failed to parse Kgpu_TensorMapAttr parameter 'window'}}
// expected-error @+1 {{a window has counts, strides, starts, steps and taps for 1 to 3 extents}}
tile.kernel @window_lists(%x: !tile.view<4xbf16, unit = 3, align = 16, divisible = 8, index = 32>, %w: !tile.view<2xbf16>, %n: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [128, 1, 1, 64], swizzle = 128, window = #kgpu.window<counts = [2, 2], strides = [2], starts = [2, 2], steps = [2, 2], taps = [1, 0, 1, 1]>>]} {
  tile.return
}

// -----

// expected-error @+1 {{a tensor map of a window has a box of pixels and channels with 1 for each of 2 extents}}
tile.kernel @window_box(%x: !tile.view<4xbf16, unit = 3, align = 16, divisible = 8, index = 32>, %w: !tile.view<2xbf16>, %n: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [64, 2, 1, 64], swizzle = 128, window = #kgpu.window<counts = [2, 2], strides = [2, 2], starts = [2, 2], steps = [2, 2], taps = [1, 0, 1, 1]>>]} {
  tile.return
}

// -----

// expected-error @+1 {{has a window that counts by argument 1, which is no index}}
tile.kernel @window_number(%x: !tile.view<4xbf16, unit = 3, align = 16, divisible = 8, index = 32>, %w: !tile.view<2xbf16>, %n: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [128, 1, 1, 64], swizzle = 128, window = #kgpu.window<counts = [2, 2], strides = [2, 2], starts = [2, 2], steps = [2, 1], taps = [1, 0, 1, 1]>>]} {
  tile.return
}

// -----

// expected-error @+1 {{has a window with taps of argument 1, which has no such dimension}}
tile.kernel @window_taps(%x: !tile.view<4xbf16, unit = 3, align = 16, divisible = 8, index = 32>, %w: !tile.view<2xbf16>, %n: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [128, 1, 1, 64], swizzle = 128, window = #kgpu.window<counts = [2, 2], strides = [2, 2], starts = [2, 2], steps = [2, 2], taps = [1, 0, 1, 2]>>]} {
  tile.return
}

// -----

// expected-error @+1 {{which is not of images with 2 extents and channels last}}
tile.kernel @window_view(%x: !tile.view<4xbf16, unit = 2, align = 16, divisible = 8, index = 32>, %w: !tile.view<2xbf16>, %n: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [128, 1, 1, 64], swizzle = 128, window = #kgpu.window<counts = [2, 2], strides = [2, 2], starts = [2, 2], steps = [2, 2], taps = [1, 0, 1, 1]>>]} {
  tile.return
}

// -----

#half = #kgpu.layout<"reg 1:1 lane 1:4-64 warp 1:2 rep 1x1">
#wide = #kgpu.layout<"reg 1:1-2 lane 1:4-64 warp 1:128 rep 1x1">
tile.kernel @columns(%p: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %whole = arith.constant dense<1.0> : tensor<1x256xf32, #wide>
  // expected-error @+1 {{cannot take columns from 200}}
  %t = kgpu.columns %whole from 200 : tensor<1x256xf32, #wide> -> tensor<1x128xf32, #half>
  tile.return
}

// -----

#half = #kgpu.layout<"reg 1:1 lane 1:4-64 warp 1:2 rep 1x1">
#wide = #kgpu.layout<"reg 1:1-2 lane 1:4-64 warp 1:128 rep 1x1">
tile.kernel @join_columns(%p: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %part = arith.constant dense<1.0> : tensor<1x128xf32, #half>
  // expected-error @+1 {{needs parts that side by side are}}
  %t = kgpu.join_columns %part, %part, %part : tensor<1x128xf32, #half>, tensor<1x128xf32, #half>, tensor<1x128xf32, #half> -> tensor<1x256xf32, #wide>
  tile.return
}

// -----

#acc = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">
!left = !kgpu.smem<64x32xbf16, "2B 0:64,144,288,512,1024,2048 1:2,4,8,16,32 rep 1x1">
!right = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
tile.kernel @part_of_depth(%some: i1) attributes {kgpu.launch = #kgpu.launch<threads = 256, consumers = 1>, kgpu.target = #kgpu.target<"sm_90a">} {
  %a = kgpu.alloc : !left
  %b = kgpu.alloc : !right
  %c = arith.constant dense<1.0> : tensor<64x64xf32, #acc>
  // expected-error @+1 {{cannot multiply 64, 32 by 64, 64 from row 48 into 64, 64}}
  %t = kgpu.wgmma %a, %b from 48, %c adds %some : !left, !right, tensor<64x64xf32, #acc>
  tile.return
}

// -----

#wide = #kgpu.layout<"reg 1:1-2 lane 1:4-64 warp 1:128 rep 1x1">
#part = #kgpu.layout<"lane *5 warp 1:1 rep 1x1">
#one = #kgpu.layout<"lane *5 warp * rep 1x1">
tile.kernel @own_part(%p: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %whole = arith.constant dense<1.0> : tensor<1x1xf32, #one>
  // expected-error @+1 {{takes 'tensor<1x2xf32, #kgpu.layout<"lane *5 warp 1:1 rep 1x1">>', not 'tensor<1x1xf32,}}
  %t = kgpu.own_part %whole axis 1 : tensor<1x1xf32, #one> -> tensor<1x256xf32, #wide>
  tile.return
}

// -----

#part = #kgpu.layout<"lane *5 warp 1:1 rep 1x1">
tile.kernel @share_parts(%p: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %part = arith.constant dense<1.0> : tensor<1x2xf32, #part>
  // expected-error @+1 {{leaves the parts in several warps}}
  %t = kgpu.share_parts %part axis 1 : tensor<1x2xf32, #part> -> tensor<1x2xf32, #part>
  tile.return
}

// -----

#part = #kgpu.layout<"lane *5 warp 1:1 rep 1x1">
#all = #kgpu.layout<"lane 1:1 *4 warp * rep 1x1">
tile.kernel @share_other_parts(%p: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %part = arith.constant dense<1.0> : tensor<1x2xf32, #part>
  // expected-error @+1 {{changes only layouts}}
  %t = kgpu.share_parts %part axis 1 : tensor<1x2xf32, #part> -> tensor<1x2xf64, #all>
  tile.return
}

// -----

#part = #kgpu.layout<"lane *5 warp 1:1 rep 1x1">
#all = #kgpu.layout<"lane 1:1 *4 warp * rep 1x1">
tile.kernel @share_two_layouts(%p: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %part = arith.constant dense<1.0> : tensor<1x2xf32, #part>
  %whole = arith.constant dense<1.0> : tensor<1x2xf32, #all>
  // expected-error @+1 {{parts have one layout}}
  %t:2 = kgpu.share_parts %part, %whole axis 1 : tensor<1x2xf32, #part>, tensor<1x2xf32, #all> -> tensor<1x2xf32, #all>, tensor<1x2xf32, #all>
  tile.return
}

// -----

#rows = #kgpu.layout<"reg 1:1-4 lane 1:8 0:1-8 rep 1x1">
!table = !tile.view<2xf16, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @gather_too_few(%x: !table) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %at = arith.constant dense<3> : tensor<16x16xindex, #rows>
  %buffer = kgpu.alloc : !kgpu.smem<16x16xf16>
  // expected-error @+1 {{cannot copy from}}
  kgpu.async_gather %x[%at] to %buffer : !table[tensor<16x16xindex, #rows>], !kgpu.smem<16x16xf16>
  tile.return
}

// -----

#rows = #kgpu.layout<"reg 1:1-4 lane 1:8 0:1-8 rep 1x1">
!table = !tile.view<2xf16, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @gather_other_shape(%x: !table) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %at = arith.constant dense<3> : tensor<16x16xindex, #rows>
  %buffer = kgpu.alloc : !kgpu.smem<16x32xf16>
  // expected-error @+1 {{needs indices of one layout in the shape of '!kgpu.smem<16x32xf16>'}}
  kgpu.async_gather %x[%at, %at] to %buffer : !table[tensor<16x16xindex, #rows>, tensor<16x16xindex, #rows>], !kgpu.smem<16x32xf16>
  tile.return
}

// -----

// expected-error @+1 {{a launch has 44 registers for a thread that copies, which takes multiples of 8 from 24 to 240}}
tile.kernel @odd_registers() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 384, consumers = 2, load_registers = 44>} {
  tile.return
}

// -----

tile.kernel @two_kinds() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 384, consumers = 2>} {
  %place = kgpu.alloc : !kgpu.smem<2x4xi64>
  // expected-error @+1 {{expected SSA operand}}
  %ring = kgpu.ring shared cluster %place : !kgpu.smem<2x4xi64> -> !kgpu.ring<4>
  tile.return
}

// -----

tile.kernel @channel_without_slots() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 384, consumers = 2>} {
  %place = kgpu.alloc : !kgpu.smem<2x4xi64>
  // expected-error @+1 {{is no place for the barriers of}}
  %ring = kgpu.ring channel %place : !kgpu.smem<2x4xi64> -> !kgpu.ring<4>
  tile.return
}
