// Tests errors of the verifiers of reductions, scans and dots.
// RUN: kpkg-opt %s --split-input-file --verify-diagnostics

tile.kernel @axis(%a: f32) {
  %t = tile.splat %a : f32 -> tensor<4x3xf32>
  // expected-error @+1 {{axis 2 is not a dimension of 'tensor<4x3xf32>'}}
  %r = tile.reduce sum %t axis 2 : tensor<4x3xf32> -> tensor<4x3xf32>
  tile.return
}

// -----

tile.kernel @result(%a: f32) {
  %t = tile.splat %a : f32 -> tensor<4x3xf32>
  // expected-error @+1 {{gives 'tensor<4x1xf32>', not 'tensor<4xf32>'}}
  %r = tile.reduce sum %t axis 1 : tensor<4x3xf32> -> tensor<4xf32>
  tile.return
}

// -----

tile.kernel @float_and(%a: f32) {
  %t = tile.splat %a : f32 -> tensor<4x3xf32>
  // expected-error @+1 {{`and` is not defined for 'f32'}}
  %r = tile.reduce and %t axis 1 : tensor<4x3xf32> -> tensor<4x1xf32>
  tile.return
}

// -----

tile.kernel @bool_sum(%a: i1) {
  %t = tile.splat %a : i1 -> tensor<4x3xi1>
  // expected-error @+1 {{`sum` is not defined for 'i1'}}
  %r = tile.reduce sum %t axis 1 : tensor<4x3xi1> -> tensor<4x1xi1>
  tile.return
}

// -----

tile.kernel @unsigned_float(%a: f32) {
  %t = tile.splat %a : f32 -> tensor<4x3xf32>
  // expected-error @+1 {{`umax` is not defined for 'f32'}}
  %r = tile.arg_reduce umax %t axis 1 : tensor<4x3xf32> -> tensor<4x1xindex>
  tile.return
}

// -----

tile.kernel @combine_body(%a: f32) {
  %t = tile.splat %a : f32 -> tensor<4x3xf32>
  // expected-error @+1 {{body takes ('f32', 'f32')}}
  %r = tile.combine (%t : tensor<4x3xf32>) axis 1 init (%a : f32) -> tensor<4x1xf32> {
  ^bb0(%l: f32):
    tile.yield %l : f32
  }
  tile.return
}

// -----

tile.kernel @combine_yield(%a: f32) {
  %t = tile.splat %a : f32 -> tensor<4x3xf32>
  // expected-error @+1 {{body yields ('f32')}}
  %r = tile.combine (%t : tensor<4x3xf32>) axis 1 init (%a : f32) -> tensor<4x1xf32> {
  ^bb0(%l: f32, %r: f32):
    tile.yield
  }
  tile.return
}

// -----

tile.kernel @combine_init(%a: f32, %b: f64) {
  %t = tile.splat %a : f32 -> tensor<4x3xf32>
  // expected-error @+1 {{init 'f64' is not an element of 'tensor<4x3xf32>'}}
  %r = tile.combine (%t : tensor<4x3xf32>) axis 1 init (%b : f64) -> tensor<4x1xf32> {
  ^bb0(%l: f32, %r: f32):
    tile.yield %l : f32
  }
  tile.return
}

// -----

tile.kernel @combine_effects(%a: f32) {
  %t = tile.splat %a : f32 -> tensor<4x3xf32>
  %r = tile.combine (%t : tensor<4x3xf32>) axis 1 init (%a : f32) -> tensor<4x1xf32> {
  ^bb0(%l: f32, %r: f32):
    // expected-error @+1 {{has effects, which the body of `tile.combine` cannot have}}
    tile.print "{}" (%l) : f32
    tile.yield %l : f32
  }
  tile.return
}

// -----

tile.kernel @scan_shapes(%a: f32) {
  %t = tile.splat %a : f32 -> tensor<4x3xf32>
  %u = tile.splat %a : f32 -> tensor<3x4xf32>
  // expected-error @+1 {{inputs have one shape, but 'tensor<3x4xf32>' differs from 'tensor<4x3xf32>'}}
  %r:2 = tile.scan (%t, %u : tensor<4x3xf32>, tensor<3x4xf32>) axis 1 {
  ^bb0(%l: f32, %m: f32, %r: f32, %s: f32):
    tile.yield %l, %m : f32, f32
  }
  tile.return
}

// -----

tile.kernel @dot_elements(%a: f16, %b: bf16, %c: f32) {
  %s = tile.splat %a : f16 -> tensor<4x4xf16>
  %t = tile.splat %b : bf16 -> tensor<4x4xbf16>
  %u = tile.splat %c : f32 -> tensor<4x4xf32>
  // expected-error @+1 {{operands have one element type, not 'f16' and 'bf16'}}
  %r = tile.dot %s, %t, %u : tensor<4x4xf16>, tensor<4x4xbf16>, tensor<4x4xf32>
  tile.return
}

// -----

tile.kernel @dot_accumulator(%a: f16) {
  %s = tile.splat %a : f16 -> tensor<4x4xf16>
  // expected-error @+1 {{of 'f16' accumulates in 'f32', not 'f16'}}
  %r = tile.dot %s, %s, %s : tensor<4x4xf16>, tensor<4x4xf16>, tensor<4x4xf16>
  tile.return
}

// -----

tile.kernel @dot_integers(%a: i32) {
  %s = tile.splat %a : i32 -> tensor<4x4xi32>
  // expected-error @+1 {{is not defined for operands of 'i32'}}
  %r = tile.dot %s, %s, %s : tensor<4x4xi32>, tensor<4x4xi32>, tensor<4x4xi32>
  tile.return
}

// -----

tile.kernel @dot_tf32(%a: f64) {
  %s = tile.splat %a : f64 -> tensor<4x4xf64>
  // expected-error @+1 {{precision tf32 is for f32 operands, not 'f64'}}
  %r = tile.dot %s, %s, %s precision tf32 : tensor<4x4xf64>, tensor<4x4xf64>, tensor<4x4xf64>
  tile.return
}

// -----

tile.kernel @dot_shapes(%a: f32) {
  %s = tile.splat %a : f32 -> tensor<4x8xf32>
  // expected-error @+1 {{shapes do not agree: 'tensor<4x8xf32>' @ 'tensor<4x8xf32>' + 'tensor<4x8xf32>'}}
  %r = tile.dot %s, %s, %s : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
  tile.return
}

// -----

tile.kernel @dot_rank(%a: f32) {
  %s = tile.splat %a : f32 -> tensor<4xf32>
  // expected-error @+1 {{takes three tiles of rank 2, or of rank 3 with a batch}}
  %r = tile.dot %s, %s, %s : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  tile.return
}

// -----

tile.kernel @dot_positions(%a: f16, %p: i16, %c: f32) {
  %v = tile.splat %a : f16 -> tensor<4x16xf16>
  %b = tile.splat %a : f16 -> tensor<32x8xf16>
  %at = tile.splat %p : i16 -> tensor<4x4xi16>
  %sum = tile.splat %c : f32 -> tensor<4x8xf32>
  // expected-error @+1 {{takes positions i16 of 4 x 32 / 16, not 'tensor<4x4xi16>'}}
  %r = tile.dot %v, %b, %sum at %at : tensor<4x16xf16>, tensor<32x8xf16>, tensor<4x8xf32>, tensor<4x4xi16>
  tile.return
}

// -----

tile.kernel @dot_positions_of_batches(%a: f16, %p: i16, %c: f32) {
  %v = tile.splat %a : f16 -> tensor<2x4x16xf16>
  %b = tile.splat %a : f16 -> tensor<2x32x8xf16>
  %at = tile.splat %p : i16 -> tensor<4x2xi16>
  %sum = tile.splat %c : f32 -> tensor<2x4x8xf32>
  // expected-error @+1 {{with positions is for floats of rank 2}}
  %r = tile.dot %v, %b, %sum at %at : tensor<2x4x16xf16>, tensor<2x32x8xf16>, tensor<2x4x8xf32>, tensor<4x2xi16>
  tile.return
}
