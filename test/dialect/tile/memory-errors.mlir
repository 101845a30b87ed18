// Tests errors of the verifiers of view queries, loads and stores.
// RUN: kpkg-opt %s --split-input-file --verify-diagnostics

tile.kernel @dim(%x: !tile.view<2xf32>) {
  // expected-error @+1 {{asks for dimension 2 of a view of rank 2}}
  %d = tile.dim %x, 2 : !tile.view<2xf32>
  tile.return
}

// -----

tile.kernel @scratch_type() {
  // expected-error @+1 {{provides '!tile.view<1xf32, mut, unit = 0, align = 16, divisible = 2, index = 32>', not '!tile.view<1xf32, mut, divisible = 4>'}}
  %m = tile.scratch [6] : !tile.view<1xf32, mut, divisible = 4>
  tile.return
}

// -----

tile.kernel @scratch_extents() {
  // expected-error @+1 {{has the extents of no tile: [2048, 2048]}}
  %m = tile.scratch [2048, 2048] : !tile.view<2xf32, mut>
  tile.return
}

// -----

tile.kernel @drop_count(%x: !tile.view<2xf32>, %i: index) {
  // expected-error @+1 {{drops 2 dimensions with 1 indices}}
  %d = tile.drop %x [0, 1] at (%i) : !tile.view<2xf32> -> !tile.view<0xf32>
  tile.return
}

// -----

tile.kernel @drop_order(%x: !tile.view<3xf32>, %i: index) {
  // expected-error @+1 {{dimensions must be ascending and below rank 3}}
  %d = tile.drop %x [1, 0] at (%i, %i) : !tile.view<3xf32> -> !tile.view<1xf32>
  tile.return
}

// -----

tile.kernel @drop_type(%x: !tile.view<3xf32>, %i: index) {
  // expected-error @+1 {{gives '!tile.view<2xf32>', not '!tile.view<2xf32, mut>'}}
  %d = tile.drop %x [1] at (%i) : !tile.view<3xf32> -> !tile.view<2xf32, mut>
  tile.return
}

// -----

tile.kernel @drop_unit(%x: !tile.view<3xf32, unit = 1>, %i: index) {
  // expected-error @+1 {{gives '!tile.view<2xf32>', not '!tile.view<2xf32, unit = 1>'}}
  %d = tile.drop %x [1] at (%i) : !tile.view<3xf32, unit = 1> -> !tile.view<2xf32, unit = 1>
  tile.return
}

// -----

tile.kernel @slice_dimension(%x: !tile.view<2xf32>, %i: index) {
  // expected-error @+1 {{slices dimension 2 of a view of rank 2}}
  %d = tile.slice %x, 2 from %i to %i : !tile.view<2xf32> -> !tile.view<2xf32>
  tile.return
}

// -----

tile.kernel @slice_facts(%x: !tile.view<2xf32, unit = 1, align = 16, divisible = 4>, %i: index) {
  // expected-error @+1 {{gives '!tile.view<2xf32, unit = 1, align = 4>', not}}
  %d = tile.slice %x, 1 from %i to %i : !tile.view<2xf32, unit = 1, align = 16, divisible = 4> -> !tile.view<2xf32, unit = 1, align = 16>
  tile.return
}

// -----

tile.kernel @atomic_of_halves(%v: !tile.view<1xf16>, %y: !tile.view<1xf16, mut>, %f: f16, %c: index) {
  %t = tile.load %v[%c] fill %f : !tile.view<1xf16> -> tensor<4xf16>
  %i = tile.iota : tensor<4xindex>
  // expected-error @+1 {{updates elements of f32, f64, i32, i64 or index, not 'f16'}}
  tile.atomic max %t, %y[%i] : tensor<4xf16>, !tile.view<1xf16, mut>, tensor<4xindex>
  tile.return
}

// -----

tile.kernel @atomic_of_what_is_read(%x: !tile.view<1xf32>, %f: f32, %c: index) {
  %t = tile.load %x[%c] fill %f : !tile.view<1xf32> -> tensor<4xf32>
  %i = tile.iota : tensor<4xindex>
  // expected-error @+1 {{writes to a view that is not `mut`}}
  tile.atomic max %t, %x[%i] : tensor<4xf32>, !tile.view<1xf32>, tensor<4xindex>
  tile.return
}

// -----

tile.kernel @add_bytes(%v: !tile.view<1xi8>, %y: !tile.view<1xi8, mut>, %f: i8, %c: index) {
  %t = tile.load %v[%c] fill %f : !tile.view<1xi8> -> tensor<4xi8>
  // expected-error @+1 {{adds to elements of f16, bf16, f32, f64, i32, i64 or index, not 'i8'}}
  tile.add_store %t, %y[%c] : tensor<4xi8>, !tile.view<1xi8, mut>
  tile.return
}

// -----

tile.kernel @exchange_of_what_is_expected(%v: !tile.view<1xf32>, %y: !tile.view<1xf32, mut>, %f: f32, %c: index) {
  %t = tile.load %v[%c] fill %f : !tile.view<1xf32> -> tensor<4xf32>
  %i = tile.iota : tensor<4xindex>
  // expected-error @+1 {{has `expected` if and only if it is a compare_exchange}}
  tile.atomic exchange %t, %y[%i] expected %t : tensor<4xf32>, !tile.view<1xf32, mut>, tensor<4xindex>
  tile.return
}

// -----

tile.kernel @old_of_another_type(%v: !tile.view<1xf32>, %y: !tile.view<1xf32, mut>, %f: f32, %c: index) {
  %t = tile.load %v[%c] fill %f : !tile.view<1xf32> -> tensor<4xf32>
  %i = tile.iota : tensor<4xindex>
  // expected-error @+1 {{exchanges 'tensor<4xf32>' for 'tensor<4xi32>'}}
  %old = tile.atomic add %t, %y[%i] : tensor<4xf32>, !tile.view<1xf32, mut>, tensor<4xindex> -> tensor<4xi32>
  tile.return
}

// -----

tile.kernel @add_to_what_is_read(%x: !tile.view<1xf32>, %f: f32, %c: index) {
  %t = tile.load %x[%c] fill %f : !tile.view<1xf32> -> tensor<4xf32>
  // expected-error @+1 {{writes to a view that is not `mut`}}
  tile.add_store %t, %x[%c] : tensor<4xf32>, !tile.view<1xf32>
  tile.return
}

// -----

tile.kernel @load_offsets(%x: !tile.view<2xf32>, %i: index, %f: f32) {
  // expected-error @+1 {{has 1 offsets for a view of rank 2}}
  %t = tile.load %x[%i] fill %f : !tile.view<2xf32> -> tensor<4x8xf32>
  tile.return
}

// -----

tile.kernel @load_element(%x: !tile.view<1xf32>, %i: index, %f: f32) {
  // expected-error @+1 {{moves 'tensor<4xf16>' but the view holds 'f32'}}
  %t = tile.load %x[%i] fill %f : !tile.view<1xf32> -> tensor<4xf16>
  tile.return
}

// -----

tile.kernel @load_rank(%x: !tile.view<2xf32>, %i: index, %f: f32) {
  // expected-error @+1 {{moves 'tensor<4xf32>', whose rank is not the view's (2)}}
  %t = tile.load %x[%i, %i] fill %f : !tile.view<2xf32> -> tensor<4xf32>
  tile.return
}

// -----

tile.kernel @load_scalar(%x: !tile.view<1xf32>, %i: index, %f: f32) {
  // expected-error @+1 {{moves 'f32', whose rank is not the view's (1)}}
  %t = tile.load %x[%i] fill %f : !tile.view<1xf32> -> f32
  tile.return
}

// -----

tile.kernel @load_dynamic(%x: !tile.view<1xf32>, %i: index, %f: f32) {
  // expected-error @+1 {{result #0 must be tile or scalar}}
  %t = tile.load %x[%i] fill %f : !tile.view<1xf32> -> tensor<?xf32>
  tile.return
}

// -----

tile.kernel @load_too_big(%x: !tile.view<2xf32>, %i: index, %f: f32) {
  // expected-error @+1 {{result #0 must be tile or scalar}}
  %t = tile.load %x[%i, %i] fill %f : !tile.view<2xf32> -> tensor<1024x2048xf32>
  tile.return
}

// -----

tile.kernel @store_read_only(%x: !tile.view<1xf32>, %i: index, %t: f32) {
  %v = tile.splat %t : f32 -> tensor<4xf32>
  // expected-error @+1 {{writes to a view that is not `mut`: '!tile.view<1xf32>'}}
  tile.store %v, %x[%i] : tensor<4xf32>, !tile.view<1xf32>
  tile.return
}

// -----

tile.kernel @gather_count(%x: !tile.view<2xf32>, %f: f32) {
  %i = tile.iota : tensor<4xindex>
  // expected-error @+1 {{has 1 index tiles for a view of rank 2}}
  %t = tile.gather %x[%i] fill %f : !tile.view<2xf32>, tensor<4xindex> -> tensor<4xf32>
  tile.return
}

// -----

tile.kernel @gather_shape(%x: !tile.view<1xf32>, %f: f32) {
  %i = tile.iota : tensor<4xindex>
  // expected-error @+1 {{index tile 'tensor<4xindex>' has not the shape of 'tensor<5xf32>'}}
  %t = tile.gather %x[%i] fill %f : !tile.view<1xf32>, tensor<4xindex> -> tensor<5xf32>
  tile.return
}

// -----

tile.kernel @scatter_read_only(%x: !tile.view<1xf32>, %f: f32) {
  %i = tile.iota : tensor<4xindex>
  %v = tile.splat %f : f32 -> tensor<4xf32>
  // expected-error @+1 {{writes to a view that is not `mut`}}
  tile.scatter %v, %x[%i] : tensor<4xf32>, !tile.view<1xf32>, tensor<4xindex>
  tile.return
}

// -----

tile.kernel @scatter_element(%x: !tile.view<1xf64, mut>, %f: f32) {
  %i = tile.iota : tensor<4xindex>
  %v = tile.splat %f : f32 -> tensor<4xf32>
  // expected-error @+1 {{moves 'tensor<4xf32>' but the view holds 'f64'}}
  tile.scatter %v, %x[%i] : tensor<4xf32>, !tile.view<1xf64, mut>, tensor<4xindex>
  tile.return
}
