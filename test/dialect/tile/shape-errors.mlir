// Tests errors of the verifiers of splat, iota, broadcast, reshape and permute.
// RUN: kpkg-opt %s --split-input-file --verify-diagnostics

tile.kernel @splat(%a: f32) {
  // expected-error @+1 {{value has the tile's element type}}
  %t = "tile.splat"(%a) : (f32) -> tensor<4xf64>
  tile.return
}

// -----

tile.kernel @rank0(%a: f32) {
  // expected-error @+1 {{result #0 must be tile of static shape}}
  %t = tile.splat %a : f32 -> tensor<f32>
  tile.return
}

// -----

tile.kernel @extent0(%a: f32) {
  // expected-error @+1 {{result #0 must be tile of static shape}}
  %t = tile.splat %a : f32 -> tensor<4x0xf32>
  tile.return
}

// -----

tile.kernel @iota() {
  // expected-error @+1 {{gives a tile of rank 1, not 'tensor<4x4xindex>'}}
  %t = tile.iota : tensor<4x4xindex>
  tile.return
}

// -----

tile.kernel @broadcast_rank(%a: f32) {
  %t = tile.splat %a : f32 -> tensor<4xf32>
  // expected-error @+1 {{keeps the rank, but goes from rank 1 to 2}}
  %b = tile.broadcast %t : tensor<4xf32> -> tensor<4x4xf32>
  tile.return
}

// -----

tile.kernel @broadcast_extent(%a: f32) {
  %t = tile.splat %a : f32 -> tensor<4x1xf32>
  // expected-error @+1 {{cannot repeat extent 4 of dimension 0 to 8; only extent 1 is repeated}}
  %b = tile.broadcast %t : tensor<4x1xf32> -> tensor<8x1xf32>
  tile.return
}

// -----

tile.kernel @reshape(%a: f32) {
  %t = tile.splat %a : f32 -> tensor<4x3xf32>
  // expected-error @+1 {{keeps the elements, but goes from 12 to 8}}
  %b = tile.reshape %t : tensor<4x3xf32> -> tensor<8xf32>
  tile.return
}

// -----

tile.kernel @permute_repeat(%a: f32) {
  %t = tile.splat %a : f32 -> tensor<4x3xf32>
  // expected-error @+1 {{[0, 0] is not a permutation of the 2 dimensions}}
  %b = tile.permute %t [0, 0] : tensor<4x3xf32> -> tensor<4x4xf32>
  tile.return
}

// -----

tile.kernel @permute_short(%a: f32) {
  %t = tile.splat %a : f32 -> tensor<4x3xf32>
  // expected-error @+1 {{[0] is not a permutation of the 2 dimensions}}
  %b = tile.permute %t [0] : tensor<4x3xf32> -> tensor<4xf32>
  tile.return
}

// -----

tile.kernel @permute_type(%a: f32) {
  %t = tile.splat %a : f32 -> tensor<4x3xf32>
  // expected-error @+1 {{dimension 0 of the result is dimension 1 of the operand, with extent 3, not 4}}
  %b = tile.permute %t [1, 0] : tensor<4x3xf32> -> tensor<4x3xf32>
  tile.return
}

// -----

tile.kernel @scalar(%a: f32) {
  %t = tile.splat %a : f32 -> tensor<1x2xf32>
  // expected-error @+1 {{reads a tile of one element, not of 2}}
  %s = tile.scalar %t : tensor<1x2xf32> -> f32
  tile.return
}

// -----

tile.kernel @scalar_type(%a: f32) {
  %t = tile.splat %a : f32 -> tensor<1xf32>
  // expected-error @+1 {{result has the tile's element type}}
  %s = "tile.scalar"(%t) : (tensor<1xf32>) -> f64
  tile.return
}
