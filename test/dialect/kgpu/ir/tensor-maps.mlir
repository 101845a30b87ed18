// Checks that tensor maps are attributes of a kernel.
// RUN: kpkg-opt --verify-roundtrip %s | FileCheck %s

// CHECK: #kgpu.tensor_map<arg = 0, box = [1, 128, 64], swizzle = 128>
// CHECK-SAME: #kgpu.tensor_map<arg = 1, box = [16, 256], swizzle = 0>
tile.kernel @maps(%a: !tile.view<3xbf16, unit = 2, align = 16, divisible = 8, index = 32>,
                  %b: !tile.view<2xf8E4M3FN, mut, unit = 0, align = 16, divisible = 16>)
    attributes {kgpu.target = #kgpu.target<"sm_90a">,
                kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [1, 128, 64], swizzle = 128>,
                                    #kgpu.tensor_map<arg = 1, box = [16, 256], swizzle = 0>]} {
  tile.return
}

// Windows of three taps over images, described by arguments.
// CHECK: #kgpu.tensor_map<arg = 0, box = [128, 1, 1, 64], swizzle = 128, window = #kgpu.window<counts = [2, 3], strides = [4, 4], starts = [5, 5], steps = [6, 6], taps = [1, 0, 1, 1]>>
tile.kernel @windows(%x: !tile.view<4xbf16, unit = 3, align = 16, divisible = 8, index = 32>, %w: !tile.view<4xbf16>, %h: index, %width: index,
                     %stride: index, %start: index, %step: index)
    attributes {kgpu.target = #kgpu.target<"sm_90a">,
                kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [128, 1, 1, 64], swizzle = 128, window = #kgpu.window<counts = [2, 3], strides = [4, 4], starts = [5, 5], steps = [6, 6], taps = [1, 0, 1, 1]>>]} {
  tile.return
}
