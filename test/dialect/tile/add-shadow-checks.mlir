// Tests checks by shadow memory: the shadow arguments, the elements of an argument that an access meets, the messages.
// RUN: kpkg-opt --tile-add-shadow-checks=uninit --split-input-file %s | FileCheck --check-prefix=UNINIT %s
// RUN: kpkg-opt --tile-add-shadow-checks=race --split-input-file %s | FileCheck --check-prefix=RACE %s
// RUN: kpkg-opt --tile-add-shadow-checks="uninit race" --split-input-file %s | FileCheck --check-prefix=BOTH %s

// A part of a view has elements of its argument. Only tensors that the kernel writes have shadows that it marks.
// UNINIT-LABEL: tile.kernel @copied
// UNINIT-SAME: (%[[X:.*]]: !tile.view<2xf32>, %{{.*}}: !tile.view<1xf32, mut>, %[[ROW:.*]]: index, %[[SX:.*]]: !tile.view<2xi32>, %[[SY:.*]]: !tile.view<1xi32, mut>)
// UNINIT: %[[PART:.*]] = tile.drop %[[X]] [0] at(%[[ROW]])
// UNINIT: %[[AT:.*]] = arith.addi %{{.*}} : tensor<8xindex>
// UNINIT: %[[INSIDE:.*]] = arith.cmpi ult, %[[AT]]
// UNINIT: %[[ROWS:.*]] = tile.splat %[[ROW]] : index -> tensor<8xindex>
// UNINIT: %[[WAS:.*]] = tile.gather %[[SX]][%[[ROWS]], %[[AT]]] fill %c1_i32 mask %[[INSIDE]]
// UNINIT: %[[HOLDS:.*]] = arith.cmpi ne, %[[WAS]], %{{.*}} : tensor<8xi32>
// UNINIT: tile.print "{}shadows.k:7: in `copied`: element [{}, {}] of argument 0 is read but was never written, in block [{}, {}, {}]"(%[[HOLDS]], %[[ROWS]], %[[AT]], %{{.*}}) {{.*}} {tile.check = "shadows.k:7: in `copied`: an element of argument 0 is read that was never written"}
// UNINIT: tile.load
// UNINIT: tile.scatter %{{.*}}, %[[SY]][%{{.*}}] : tensor<8xi32>
// UNINIT-NEXT: tile.store

// A read leaves its block in a cell that was empty. One of another block makes it a cell of many.
// RACE-LABEL: tile.kernel @copied
// RACE-SAME: %[[CX:[^ ]*]]: !tile.view<2xi32, mut>, %[[CY:[^ ]*]]: !tile.view<1xi32, mut>)
// RACE: %[[OLD:.*]] = tile.atomic compare_exchange %{{.*}}, %[[CX]][%{{.*}}, %{{.*}}] mask %{{.*}} expected
// RACE: tile.atomic exchange %{{.*}}, %[[CX]]
// RACE: tile.print "{}shadows.k:7: in `copied`: element [{}, {}] of argument 0, which block [{}, {}, {}] writes, is read, in block [{}, {}, {}]"
// RACE: tile.load
// RACE: tile.atomic exchange %{{.*}}, %[[CY]]
// RACE: tile.print "{}shadows.k:8: in `copied`: element [{}] of argument 1, which block [{}, {}, {}] reads or writes, is written, in block [{}, {}, {}]"
// RACE-NEXT: tile.store

// BOTH-LABEL: tile.kernel @copied
// BOTH-SAME: index, %{{.*}}: !tile.view<2xi32>, %{{.*}}: !tile.view<2xi32, mut>, %{{.*}}: !tile.view<1xi32, mut>, %{{.*}}: !tile.view<1xi32, mut>)
tile.kernel @copied(%x: !tile.view<2xf32>, %y: !tile.view<1xf32, mut>, %row: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %part = tile.drop %x [0] at (%row) : !tile.view<2xf32> -> !tile.view<1xf32>
  %v = tile.load %part[%c0] fill %zero : !tile.view<1xf32> -> tensor<8xf32> loc("shadows.k":7:3)
  tile.store %v, %y[%c0] : tensor<8xf32>, !tile.view<1xf32, mut> loc("shadows.k":8:3)
  tile.return
}

// -----

// Coordinates of a slice count from its begin, which is not negative. A scalar is an access of one element.
// UNINIT-LABEL: tile.kernel @sliced
// UNINIT: %[[BEGIN:.*]] = arith.maxsi %arg2
// UNINIT: %[[FROM:.*]] = tile.splat %[[BEGIN]] : index -> tensor<1xindex>
// UNINIT: %[[AT:.*]] = arith.addi %{{.*}}, %[[FROM]] : tensor<1xindex>
// UNINIT: tile.gather %{{.*}}[%[[AT]]] fill %{{.*}} mask %{{.*}} : !tile.view<1xi32>, tensor<1xindex> -> tensor<1xi32>
tile.kernel @sliced(%x: !tile.view<1xf32>, %y: !tile.view<1xf32, mut>, %begin: index, %end: index, %i: index) {
  %zero = arith.constant 0.0 : f32
  %part = tile.slice %x, 0 from %begin to %end : !tile.view<1xf32> -> !tile.view<1xf32>
  %one = tile.drop %part [0] at (%i) : !tile.view<1xf32> -> !tile.view<0xf32>
  %v = tile.load %one[] fill %zero : !tile.view<0xf32> -> f32
  %to = tile.drop %y [0] at (%i) : !tile.view<1xf32, mut> -> !tile.view<0xf32, mut>
  tile.store %v, %to[] : f32, !tile.view<0xf32, mut>
  tile.return
}

// -----

// Atomic updates read and write. Those of several blocks do not interfere.
// UNINIT-LABEL: tile.kernel @added
// UNINIT: tile.gather
// UNINIT: tile.print
// UNINIT: tile.scatter
// UNINIT: tile.atomic add
// RACE-LABEL: tile.kernel @added
// RACE: tile.atomic compare_exchange
// RACE: tile.atomic exchange
// RACE: tile.print "{}shadows.k:9: in `added`: element [{}] of argument 0, which block [{}, {}, {}] reads or writes, is updated, in block [{}, {}, {}]"
// RACE-NEXT: tile.atomic add
tile.kernel @added(%y: !tile.view<1xf32, mut>, %v: f32, %i: index) {
  %at = tile.splat %i : index -> tensor<4xindex>
  %all = tile.splat %v : f32 -> tensor<4xf32>
  tile.atomic add %all, %y[%at] : tensor<4xf32>, !tile.view<1xf32, mut>, tensor<4xindex> loc("shadows.k":9:3)
  tile.return
}

// -----

// Blocks of a persistent kernel are its output tiles. Code outside of the loop may run in any number of blocks.
// RACE-LABEL: tile.kernel @persistent
// RACE-NOT: tile.atomic
// RACE: tile.for_tiles
// RACE: tile.print "{}shadows.k:9: in `persistent`: element [{}] of argument 1, which tile [{}, {}] reads or writes, is written, in tile [{}, {}]"
tile.kernel @persistent(%x: !tile.view<1xf32>, %y: !tile.view<1xf32, mut>, %n: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %v = tile.load %x[%c0] fill %zero : !tile.view<1xf32> -> tensor<8xf32>
  tile.for_tiles (%i, %j) to (%n, %n) {
    tile.store %v, %y[%i] : tensor<8xf32>, !tile.view<1xf32, mut> loc("shadows.k":9:3)
  }
  tile.return
}

// -----

// Kernels at thread level have scalars. An element outside of the tensor has no cell.
// UNINIT-LABEL: tile.kernel @threads
// UNINIT: %[[ONE:.*]] = tile.drop %arg2 [0] at(%arg1) : !tile.view<1xi32, mut> -> !tile.view<0xi32, mut>
// UNINIT: tile.load %[[ONE]][] fill %c1_i32
// RACE-LABEL: tile.kernel @threads
// RACE: %[[CELL:.*]] = tile.drop %arg2 [0] at(%arg1)
// RACE: tile.atomic_element compare_exchange %{{.*}}, %[[CELL]] expected
// RACE: %[[NOWHERE:.*]] = arith.constant -1 : index
// RACE: arith.select %{{.*}}, %arg1, %[[NOWHERE]] : index
// RACE: tile.atomic_element exchange
tile.kernel @threads(%x: !tile.view<1xf32, mut>, %i: index) attributes {tile.threads = array<i64: 32, 1, 1>} {
  %zero = arith.constant 0.0 : f32
  %one = tile.drop %x [0] at (%i) : !tile.view<1xf32, mut> -> !tile.view<0xf32, mut>
  %v = tile.load %one[] fill %zero : !tile.view<0xf32, mut> -> f32
  tile.store %v, %one[] : f32, !tile.view<0xf32, mut>
  tile.return
}

// -----

// The memory of a block has no shadow.
// BOTH-LABEL: tile.kernel @own
// BOTH-NOT: tile.print
tile.kernel @own(%v: f32) {
  %c0 = arith.constant 0 : index
  %memory = tile.scratch [8] : !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 8, index = 32>
  %all = tile.splat %v : f32 -> tensor<8xf32>
  tile.store %all, %memory[%c0] : tensor<8xf32>, !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 8, index = 32>
  tile.return
}

// -----

// Shared memory of threads has shadows of its own, which the block clears. A barrier counts, for the cells after it.
// RACE-LABEL: tile.kernel @shared
// RACE: %[[COUNTS:.*]] = tile.scratch [3] : !tile.view<1xi64
// RACE: scf.for
// RACE: tile.barrier block
// RACE: %[[OWN:.*]] = tile.scratch [64] : !tile.view<1xf32
// RACE: %[[CELLS:.*]] = tile.scratch [64] : !tile.view<1xi64
// RACE: scf.for
// RACE: tile.barrier block
// RACE: %[[CELL:.*]] = tile.drop %[[CELLS]] [0] at(%{{.*}})
// RACE: tile.atomic_element exchange %{{.*}}, %[[CELL]] : i64
// RACE: tile.print "{}shadows.k:5: in `shared`: element [{}] of shared memory, which thread {} reads or writes, is written by thread {} without a barrier between, in block [{}, {}, {}]"
// RACE: tile.barrier block
// RACE: scf.if
// RACE: tile.drop %[[COUNTS]]
// RACE: tile.barrier block
// BOTH-LABEL: tile.kernel @shared
// BOTH: tile.print
// UNINIT-LABEL: tile.kernel @shared
// UNINIT: %[[WRITTEN:.*]] = tile.scratch [64] : !tile.view<1xi32
// UNINIT: %[[MARK:.*]] = tile.drop %[[WRITTEN]]
// UNINIT: tile.store %{{.*}}, %[[MARK]][] : i32
tile.kernel @shared(%v: f32) attributes {tile.threads = array<i64: 64, 1, 1>} {
  %memory = tile.scratch [64] : !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 16, index = 32>
  %i = tile.thread_id
  %one = tile.drop %memory [0] at (%i) : !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 16, index = 32> -> !tile.view<0xf32, mut, index = 32>
  tile.store %v, %one[] : f32, !tile.view<0xf32, mut, index = 32> loc("shadows.k":5:3)
  tile.barrier block
  tile.return
}
