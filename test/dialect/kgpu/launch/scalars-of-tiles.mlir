// Checks that no pass assumes that numbers do not depend on tiles: tile.scalar stays where its tile is.
// RUN: kpkg-opt --kgpu-hoist-loads %s | FileCheck %s --check-prefix=HOIST
// RUN: kpkg-opt --kgpu-prefetch-loads %s | FileCheck %s --check-prefix=AHEAD
// RUN: kpkg-opt --kgpu-make-persistent %s | FileCheck %s --check-prefix=PERSISTENT
// RUN: kpkg-opt --kgpu-configure --split-input-file %S/inputs/scalar-products.mlir | FileCheck %s --check-prefix=ROLES

!row = !tile.view<2xf32>
!place = !tile.view<1xindex>
!out = !tile.view<2xf32, mut>
#target = #kgpu.target<"sm_90a">

// The second row is known only when the first tile has been read.
// HOIST-LABEL: tile.kernel @chosen_row
// HOIST: tile.load %arg1
// HOIST-NEXT: tile.reduce
// HOIST-NEXT: tile.scalar
// HOIST-NEXT: tile.load %arg0
tile.kernel @chosen_row(%x: !row, %places: !place, %y: !out)
    attributes {kgpu.launch = #kgpu.launch<threads = 64, early_loads>, kgpu.target = #target} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %places[%c0] fill %c0 : !place -> tensor<64xindex>
  %m = tile.reduce max %v axis 0 : tensor<64xindex> -> tensor<1xindex>
  %s = tile.scalar %m : tensor<1xindex> -> index
  %w = tile.load %x[%s, %c0] fill %zero : !row -> tensor<1x256xf32>
  tile.store %w, %y[%c0, %c0] : tensor<1x256xf32>, !out
  tile.return
}

// The loop's next row depends on this iteration's tile.
// AHEAD-LABEL: tile.kernel @chain
// AHEAD: scf.for
// AHEAD-NEXT: tile.scalar
// AHEAD-NEXT: arith.addi
// AHEAD-NEXT: tile.load %arg0
tile.kernel @chain(%x: !row, %places: !place, %y: !out, %n: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 64, prefetch>, kgpu.target = #target} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %first = tile.load %places[%c0] fill %c0 : !place -> tensor<1xindex>
  scf.for %i = %c0 to %n step %c1 {
    %s = tile.scalar %first : tensor<1xindex> -> index
    %r = arith.addi %s, %i : index
    %w = tile.load %x[%r, %c0] fill %zero : !row -> tensor<1x256xf32>
    tile.store %w, %y[%i, %c0] : tensor<1x256xf32>, !out
  }
  tile.return
}

// A tile that is the same for all kernel blocks is loaded once. Its number is read in each of them.
// PERSISTENT-LABEL: tile.kernel @weights
// PERSISTENT: %[[W:.*]] = tile.load %arg1
// PERSISTENT: scf.for
// PERSISTENT: %[[HELD:.*]] = kgpu.hold %[[W]]
// PERSISTENT: tile.scalar %[[HELD]]
tile.kernel @weights(%x: !row, %places: !place, %y: !out)
    attributes {kgpu.launch = #kgpu.launch<threads = 64, persistent, early_loads>, kgpu.target = #target} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %first = tile.load %places[%c0] fill %c0 : !place -> tensor<1xindex>
  %s = tile.scalar %first : tensor<1xindex> -> index
  %v = tile.load %x[%row, %s] fill %zero : !row -> tensor<1x256xf32>
  tile.store %v, %y[%row, %c0] : tensor<1x256xf32>, !out
  tile.return
}

// Warpgroups multiply with a bound from memory. With one from a tile, the producer warp would need the tile.
// ROLES-LABEL: tile.kernel @from_memory
// ROLES-SAME: consumers = 1
// ROLES-LABEL: tile.kernel @from_tile
// ROLES-NOT: consumers
