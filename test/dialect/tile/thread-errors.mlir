// Tests the verifiers of kernels at thread level and of their ops.
// RUN: kpkg-opt --split-input-file --verify-diagnostics %s

tile.kernel @tiles() {
  // expected-error @+1 {{is in a kernel without 'tile.threads'}}
  tile.barrier block
  tile.return
}

// -----

tile.kernel @threads() attributes {tile.threads = array<i64: 64, 1, 1>} {
  // expected-error @+1 {{makes a tile in a kernel at thread level}}
  %i = tile.iota : tensor<8xindex>
  tile.return
}

// -----

// expected-error @+1 {{needs three positive extents in 'tile.threads'}}
tile.kernel @extents() attributes {tile.threads = array<i64: 64, 0, 1>} {
  tile.return
}

// -----

tile.kernel @vote(%c: i1) attributes {tile.threads = array<i64: 64, 1, 1>} {
  // expected-error @+1 {{returns 'i1'}}
  %all = tile.vote ballot %c : i1
  tile.return
}

// -----

tile.kernel @update(%x: !tile.view<0xf32>, %v: f32) attributes {tile.threads = array<i64: 64, 1, 1>} {
  // expected-error @+1 {{updates an element of a `mut` view of rank 0}}
  tile.atomic_element add %v, %x : f32, !tile.view<0xf32>
  tile.return
}

// -----

tile.kernel @copy(%x: !tile.view<1xf32>, %i: index) attributes {tile.threads = array<i64: 64, 1, 1>} {
  %m = tile.scratch [64] : !tile.view<1xf32, mut>
  // expected-error @+1 {{copies 12 bytes; it needs 4, 8 or 16}}
  tile.copy_async 3 %x[%i], %m[%i] : !tile.view<1xf32>, !tile.view<1xf32, mut>
  tile.return
}

// -----

tile.kernel @product(%v: f32) attributes {tile.threads = array<i64: 64, 1, 1>} {
  // expected-error @+1 {{has 2, 2 and 4 elements, expected 4, 2 and 4}}
  %s:4 = tile.thread_mma %v, %v by %v, %v plus %v, %v, %v, %v : f32
  tile.return
}
