// Tests errors of the verifiers of kernels, the persistent loop, print and the view type.
// RUN: kpkg-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{argument 0 must be a view or a scalar, not 'tensor<4xf32>'}}
tile.kernel @tensor_argument(%x: tensor<4xf32>) { tile.return }

// -----

// expected-error @+1 {{cannot return values}}
tile.kernel @result() -> f32 { tile.return }

// -----

// expected-error @+1 {{must have one block}}
tile.kernel @blocks() {
  cf.br ^next
^next:
  tile.return
}

// -----

tile.kernel @view_from_select(%a: !tile.view<1xf32>, %b: !tile.view<1xf32>, %c: i1) {
  // expected-error @+1 {{cannot make a view; only kernel arguments, `tile.drop`, `tile.slice` and `tile.scratch` do}}
  %v = arith.select %c, %a, %b : !tile.view<1xf32>
  tile.return
}

// -----

tile.kernel @view_in_loop(%a: !tile.view<1xf32>, %n: index) {
  // expected-error @+1 {{cannot make a view}}
  %v = scf.for %i = %n to %n step %n iter_args(%x = %a) -> (!tile.view<1xf32>) {
    scf.yield %x : !tile.view<1xf32>
  }
  tile.return
}

// -----

// expected-error @+1 {{a view cannot hold 'i7'}}
tile.kernel @element(%a: !tile.view<1xi7>) { tile.return }

// -----

// expected-error @+1 {{unit dimension 2 is not a dimension of a view of rank 2}}
tile.kernel @unit(%a: !tile.view<2xf32, unit = 2>) { tile.return }

// -----

// expected-error @+1 {{1 outer dimensions are not left out of the offsets of a view of rank 2 with indices of 64 bits}}
tile.kernel @outer(%a: !tile.view<2xf32, outer = 1>) { tile.return }

// -----

// expected-error @+1 {{expected the rank of the view}}
tile.kernel @rank(%a: !tile.view<2x4xf32>) { tile.return }

// -----

// expected-error @+1 {{a view has rank 0 to 16, not 17}}
tile.kernel @rank(%a: !tile.view<17xf32>) { tile.return }

// -----

tile.kernel @loop_arguments(%n: index) {
  // expected-error @+1 {{has 2 counts, so its body takes as many arguments}}
  tile.for_tiles (%i) to (%n, %n) {
  }
  tile.return
}

// -----

tile.kernel @no_counts() {
  // expected-error @+1 {{needs at least one count}}
  tile.for_tiles () to () {
  }
  tile.return
}

// -----

tile.kernel @nested(%n: index) {
  tile.for_tiles (%i) to (%n) {
    // expected-error @+1 {{cannot be inside another `tile.for_tiles`}}
    tile.for_tiles (%j) to (%n) {
    }
  }
  tile.return
}

// -----

tile.kernel @loop_yields(%n: index) {
  // expected-error @+1 {{yields no values}}
  tile.for_tiles (%i) to (%n) {
    tile.yield %i : index
  }
  tile.return
}

// -----

tile.kernel @holes(%n: index) {
  // expected-error @+1 {{format has 2 `{}` for 1 values}}
  tile.print "{} {}" (%n) : index
  tile.return
}
