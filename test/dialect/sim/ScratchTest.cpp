// Tests scratch memory in shared memory, by the simulator, which finds missing barriers by the layouts of tiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SimulatedTest.h"

using namespace kpkg;
using namespace mlir;

namespace {

/// Cumulative sums of %x [1000] by steps in a loop, then the elements in reverse order. Updates count the places with
/// each remainder of 24.
constexpr const char *source = R"(
!in = !tile.view<1xf32, unit = 0, align = 16, divisible = 4, index = 32>
!out = !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 4, index = 32>
!row = !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 8, index = 32>
!counts = !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 8, index = 32>
tile.kernel @steps(%x: !in, %y: !out, %reversed: !out, %counted: !out) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %last = arith.constant dense<999> : tensor<1000xindex>
  %divisor = arith.constant dense<24> : tensor<1000xindex>
  %ones = arith.constant dense<1.0> : tensor<1000xf32>
  %none = arith.constant dense<0.0> : tensor<24xf32>
  %i = tile.iota : tensor<1000xindex>
  %v = tile.load %x[%c0] fill %zero : !in -> tensor<1000xf32>
  %row = tile.scratch [1000] : !row
  %sums, %end = scf.for %k = %c0 to %c10 step %c1 iter_args(%sum = %v, %step = %c1) -> (tensor<1000xf32>, index) {
    tile.store %sum, %row[%c0] : tensor<1000xf32>, !row
    %distance = tile.splat %step : index -> tensor<1000xindex>
    %place = arith.subi %i, %distance : tensor<1000xindex>
    %other = tile.gather %row[%place] fill %zero : !row, tensor<1000xindex> -> tensor<1000xf32>
    %next = arith.addf %sum, %other : tensor<1000xf32>
    %twice = arith.addi %step, %step : index
    scf.yield %next, %twice : tensor<1000xf32>, index
  }
  tile.store %sums, %y[%c0] : tensor<1000xf32>, !out
  %back = arith.subi %last, %i : tensor<1000xindex>
  %again = tile.scratch [1000] : !row
  tile.scatter %v, %again[%back] : tensor<1000xf32>, !row, tensor<1000xindex>
  %mirrored = tile.load %again[%c0] fill %zero : !row -> tensor<1000xf32>
  tile.store %mirrored, %reversed[%c0] : tensor<1000xf32>, !out
  %counts = tile.scratch [24] : !counts
  tile.store %none, %counts[%c0] : tensor<24xf32>, !counts
  %rest = arith.remsi %i, %divisor : tensor<1000xindex>
  tile.atomic add %ones, %counts[%rest] : tensor<1000xf32>, !counts, tensor<1000xindex>
  tile.atomic add %ones, %counts[%rest] : tensor<1000xf32>, !counts, tensor<1000xindex>
  %total = tile.load %counts[%c0] fill %zero : !counts -> tensor<24xf32>
  tile.store %total, %counted[%c0] : tensor<24xf32>, !out
  tile.return
}
)";

struct Scratch : ComparedTest {
  void SetUp() override {
    std::vector<float> values;
    for (int i = 0; i < 1000; ++i)
      values.push_back(float(i * 7 % 13 - 6));
    reads(values, {1000});
    for (int64_t extent : {1000, 1000, 24})
      writes({extent}, 0.f);
    prepare(source);
  }

  size_t barriers() {
    size_t count = 0;
    module->walk([&](kgpu::BarrierOp) { ++count; });
    return count;
  }
};

TEST_F(Scratch, ThreadsExchangeElements) { expectRight(/*runs=*/1, {1}); }

TEST_F(Scratch, EachBarrierIsNeeded) {
  size_t count = barriers();
  EXPECT_GE(count, 6u); // two in the loop, and four behind it
  for (size_t number = 0; number < count; ++number) {
    OwningOpRef<ModuleOp> copy = module->clone();
    SmallVector<kgpu::BarrierOp> all;
    copy->walk([&](kgpu::BarrierOp barrier) { all.push_back(barrier); });
    all[number].erase();
    std::string found = outcome(*copy, /*seed=*/0, /*ctas=*/1);
    EXPECT_NE(found.find("no barrier separates this access"), std::string::npos)
        << "barrier " << number << ": " << found;
  }
}

} // namespace
