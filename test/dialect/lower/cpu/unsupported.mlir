// Tests that the CPU lowering reports unsupported ops at their location.
// RUN: kpkg-opt %s --split-input-file --verify-diagnostics --lower-cpu-emit

tile.kernel @store_beside_tiles(%y: !tile.view<1xf32, mut>, %n: index) {
  %c0 = arith.constant 0 : index
  %z = arith.constant dense<0.0> : tensor<4xf32>
  tile.for_tiles (%i) to (%n) {
    tile.store %z, %y[%i] : tensor<4xf32>, !tile.view<1xf32, mut>
  }
  // expected-error @below {{a loop over output tiles must be all that a kernel does}}
  tile.store %z, %y[%c0] : tensor<4xf32>, !tile.view<1xf32, mut>
  tile.return
}

// -----

tile.kernel @loaded_count(%x: !tile.view<0xindex>, %y: !tile.view<1xf32, mut>) {
  %c0 = arith.constant 0 : index
  %n = tile.load %x[] fill %c0 : !tile.view<0xindex> -> index
  %z = arith.constant dense<0.0> : tensor<4xf32>
  // expected-error @below {{the number of output tiles must follow from shapes and scalar arguments}}
  tile.for_tiles (%i) to (%n) {
    tile.store %z, %y[%i] : tensor<4xf32>, !tile.view<1xf32, mut>
  }
  tile.return
}

// -----

tile.kernel @sliced_count(%x: !tile.view<0xindex>, %y: !tile.view<1xf32, mut>) {
  %c0 = arith.constant 0 : index
  %n = tile.load %x[] fill %c0 : !tile.view<0xindex> -> index
  %m = arith.addi %n, %n : index
  %part = tile.slice %y, 0 from %c0 to %m : !tile.view<1xf32, mut> -> !tile.view<1xf32, mut>
  %d = tile.dim %part, 0 : !tile.view<1xf32, mut>
  %z = arith.constant dense<0.0> : tensor<4xf32>
  // expected-error @below {{the number of output tiles must follow from shapes and scalar arguments}}
  tile.for_tiles (%i) to (%d) {
    tile.store %z, %part[%i] : tensor<4xf32>, !tile.view<1xf32, mut>
  }
  tile.return
}

// -----

tile.kernel @table(%y: !tile.view<1xf32, mut>) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{tile constants with different elements are not supported on the CPU}}
  %z = arith.constant dense<[0.0, 1.0]> : tensor<2xf32>
  tile.store %z, %y[%c0] : tensor<2xf32>, !tile.view<1xf32, mut>
  tile.return
}
