// Tests errors of the verifiers of extract and join.
// RUN: kpkg-opt %s --split-input-file --verify-diagnostics

tile.kernel @rank(%v: f32) {
  %a = tile.splat %v : f32 -> tensor<4x8xf32>
  // expected-error @+1 {{needs an offset and a step for each of the 2 dimensions, which the result keeps}}
  %t = tile.extract %a [0] step [1] : tensor<4x8xf32> -> tensor<4x8xf32>
  tile.return
}

// -----

tile.kernel @outside(%v: f32) {
  %a = tile.splat %v : f32 -> tensor<4x8xf32>
  // expected-error @+1 {{takes elements 2 to 8 by steps of 2 in dimension 1, which has extent 8}}
  %t = tile.extract %a [0, 2] step [1, 2] : tensor<4x8xf32> -> tensor<4x4xf32>
  tile.return
}

// -----

tile.kernel @backwards(%v: f32) {
  %a = tile.splat %v : f32 -> tensor<4x8xf32>
  // expected-error @+1 {{takes elements 2 to -1 by steps of -1 in dimension 1, which has extent 8}}
  %t = tile.extract %a [0, 2] step [1, -1] : tensor<4x8xf32> -> tensor<4x4xf32>
  tile.return
}

// -----

tile.kernel @still(%v: f32) {
  %a = tile.splat %v : f32 -> tensor<4x8xf32>
  // expected-error @+1 {{takes elements 2 to 2 by steps of 0}}
  %t = tile.extract %a [0, 2] step [1, 0] : tensor<4x8xf32> -> tensor<4x4xf32>
  tile.return
}

// -----

tile.kernel @axis(%v: f32) {
  %a = tile.splat %v : f32 -> tensor<4x8xf32>
  // expected-error @+1 {{needs a tile, and an axis below 2}}
  %t = tile.join %a, %a axis 2 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x16xf32>
  tile.return
}

// -----

tile.kernel @others(%v: f32) {
  %a = tile.splat %v : f32 -> tensor<4x8xf32>
  %b = tile.splat %v : f32 -> tensor<2x8xf32>
  // expected-error @+1 {{keeps the extents outside of axis 1, but joins 'tensor<2x8xf32>' to 'tensor<4x16xf32>'}}
  %t = tile.join %a, %b axis 1 : tensor<4x8xf32>, tensor<2x8xf32> -> tensor<4x16xf32>
  tile.return
}

// -----

tile.kernel @sum(%v: f32) {
  %a = tile.splat %v : f32 -> tensor<4x8xf32>
  // expected-error @+1 {{has 16 elements along axis 1, not 15}}
  %t = tile.join %a, %a axis 1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x15xf32>
  tile.return
}

// -----

tile.kernel @ranks(%v: f32) {
  %a = tile.splat %v : f32 -> tensor<4x8xf32>
  %b = tile.splat %v : f32 -> tensor<8xf32>
  // expected-error @+1 {{joins tiles of one rank, not 'tensor<8xf32>' to 'tensor<4x16xf32>'}}
  %t = tile.join %a, %b axis 1 : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x16xf32>
  tile.return
}
