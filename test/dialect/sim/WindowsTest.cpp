// Tests products over windows on Hopper by the simulator: TMA's im2col mode gives the results of gathers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SimulatedTest.h"

using namespace kpkg;
using namespace mlir;

namespace {

constexpr const char *source = R"(
!in = !tile.view<4xbf16, unit = 3, align = 16, divisible = 8, index = 32>
!tap = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @windows(%x: !in, %w: !in, %y: !out, %height: index, %width: index, %sh: index, %sw: index, %ph: index, %pw: index, %th: index, %tw: index)
    attributes {schedule = #tile.schedule<stages = 2>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %y, 0 : !out
  %columns = tile.dim %y, 1 : !out
  %tm = arith.ceildivsi %rows, %c128 : index
  %tn = arith.ceildivsi %columns, %c64 : index
  %cells = tile.dim %w, 0 : !in
  %taps = tile.dim %w, 1 : !in
  %channels = tile.dim %w, 2 : !in
  %blocks = arith.ceildivsi %channels, %c64 : index
  tile.for_tiles (%i, %j) to (%tm, %tn) {
    %m = arith.muli %i, %c128 : index
    %n = arith.muli %j, %c64 : index
    %m32 = arith.index_cast %m : index to i32
    %iota = tile.iota : tensor<128xindex>
    %iota32 = arith.index_cast %iota : tensor<128xindex> to tensor<128xi32>
    %column = tile.reshape %iota32 : tensor<128xi32> -> tensor<128x1xi32>
    %first = tile.splat %m32 : i32 -> tensor<128x1xi32>
    %pixel = arith.addi %first, %column : tensor<128x1xi32>
    %width32 = arith.index_cast %width : index to i32
    %wide = tile.splat %width32 : i32 -> tensor<128x1xi32>
    %line = arith.floordivsi %pixel, %wide : tensor<128x1xi32>
    %height32 = arith.index_cast %height : index to i32
    %high = tile.splat %height32 : i32 -> tensor<128x1xi32>
    %image = arith.floordivsi %line, %high : tensor<128x1xi32>
    %lines = arith.muli %image, %high : tensor<128x1xi32>
    %oh = arith.subi %line, %lines : tensor<128x1xi32>
    %pixels = arith.muli %line, %wide : tensor<128x1xi32>
    %ow = arith.subi %pixel, %pixels : tensor<128x1xi32>
    %sh32 = arith.index_cast %sh : index to i32
    %sht = tile.splat %sh32 : i32 -> tensor<128x1xi32>
    %hs = arith.muli %oh, %sht : tensor<128x1xi32>
    %ph32 = arith.index_cast %ph : index to i32
    %pht = tile.splat %ph32 : i32 -> tensor<128x1xi32>
    %h0 = arith.addi %hs, %pht : tensor<128x1xi32>
    %sw32 = arith.index_cast %sw : index to i32
    %swt = tile.splat %sw32 : i32 -> tensor<128x1xi32>
    %ws = arith.muli %ow, %swt : tensor<128x1xi32>
    %pw32 = arith.index_cast %pw : index to i32
    %pwt = tile.splat %pw32 : i32 -> tensor<128x1xi32>
    %w0 = arith.addi %ws, %pwt : tensor<128x1xi32>
    %sum = scf.for %a = %c0 to %cells step %c1 iter_args(%s0 = %zeros) -> tensor<128x64xf32> {
      %ha = arith.muli %a, %th : index
      %ha32 = arith.index_cast %ha : index to i32
      %hat = tile.splat %ha32 : i32 -> tensor<128x1xi32>
      %h32 = arith.addi %h0, %hat : tensor<128x1xi32>
      %s1 = scf.for %b = %c0 to %taps step %c1 iter_args(%s2 = %s0) -> tensor<128x64xf32> {
        %wb = arith.muli %b, %tw : index
        %wb32 = arith.index_cast %wb : index to i32
        %wbt = tile.splat %wb32 : i32 -> tensor<128x1xi32>
        %w32 = arith.addi %w0, %wbt : tensor<128x1xi32>
        %s3 = scf.for %c = %c0 to %blocks step %c1 iter_args(%acc = %s2) -> tensor<128x64xf32> {
          %k = arith.muli %c, %c64 : index
          %iotac = tile.iota : tensor<64xindex>
          %rowc = tile.reshape %iotac : tensor<64xindex> -> tensor<1x64xindex>
          %kt = tile.splat %k : index -> tensor<1x64xindex>
          %ct = arith.addi %kt, %rowc : tensor<1x64xindex>
          %ii = arith.index_cast %image : tensor<128x1xi32> to tensor<128x1xindex>
          %hi = arith.index_cast %h32 : tensor<128x1xi32> to tensor<128x1xindex>
          %wi = arith.index_cast %w32 : tensor<128x1xi32> to tensor<128x1xindex>
          %ib = tile.broadcast %ii : tensor<128x1xindex> -> tensor<128x64xindex>
          %hb = tile.broadcast %hi : tensor<128x1xindex> -> tensor<128x64xindex>
          %wbr = tile.broadcast %wi : tensor<128x1xindex> -> tensor<128x64xindex>
          %cb = tile.broadcast %ct : tensor<1x64xindex> -> tensor<128x64xindex>
          %left = tile.gather %x[%ib, %hb, %wbr, %cb] fill %zero : !in, tensor<128x64xindex> -> tensor<128x64xbf16>
          %tap = tile.drop %w [0, 1] at (%a, %b) : !in -> !tap
          %right = tile.load %tap[%k, %n] fill %zero : !tap -> tensor<64x64xbf16>
          %p = tile.dot %left, %right, %acc : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
          scf.yield %p : tensor<128x64xf32>
        }
        scf.yield %s3 : tensor<128x64xf32>
      }
      scf.yield %s1 : tensor<128x64xf32>
    }
    %r = arith.truncf %sum : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %r, %y[%m, %n] : tensor<128x64xbf16>, !out
  }
  tile.return
}
)";

/// Returns the same kernel with results in every other pixel of every other line of an image.
std::string scatteredSource() {
  std::string text = source;
  auto replace = [&](llvm::StringRef from, llvm::StringRef to) { text.replace(text.find(from), from.size(), to); };
  replace("tile.kernel",
          "!image = !tile.view<4xbf16, mut, unit = 3, align = 16, divisible = 8, index = 32>\ntile.kernel");
  replace("%y: !out,", "%y: !out, %z: !image,");
  replace("tile.store %r, %y[%m, %n] : tensor<128x64xbf16>, !out", R"(
    %two = arith.constant dense<2> : tensor<128x1xi32>
    %zh = arith.muli %oh, %two : tensor<128x1xi32>
    %zw = arith.muli %ow, %two : tensor<128x1xi32>
    %zii = arith.index_cast %image : tensor<128x1xi32> to tensor<128x1xindex>
    %zhi = arith.index_cast %zh : tensor<128x1xi32> to tensor<128x1xindex>
    %zwi = arith.index_cast %zw : tensor<128x1xi32> to tensor<128x1xindex>
    %iotan = tile.iota : tensor<64xindex>
    %rown = tile.reshape %iotan : tensor<64xindex> -> tensor<1x64xindex>
    %nt = tile.splat %n : index -> tensor<1x64xindex>
    %zk = arith.addi %nt, %rown : tensor<1x64xindex>
    %zib = tile.broadcast %zii : tensor<128x1xindex> -> tensor<128x64xindex>
    %zhb = tile.broadcast %zhi : tensor<128x1xindex> -> tensor<128x64xindex>
    %zwb = tile.broadcast %zwi : tensor<128x1xindex> -> tensor<128x64xindex>
    %zkb = tile.broadcast %zk : tensor<1x64xindex> -> tensor<128x64xindex>
    tile.scatter %r, %z[%zib, %zhb, %zwb, %zkb] : tensor<128x64xbf16>, !image, tensor<128x64xindex>)");
  return text;
}

/// The images, height and width of x, channels, taps, results, and the stride, start and step of both extents.
struct Case {
  int64_t images, height, width, channels, cells, taps, results, stride, start, step;
};

struct Windows : ComparedTest, testing::WithParamInterface<Case> {
  void areRight(bool isScattered);
};

void Windows::areRight(bool isScattered) {
  const Case &c = GetParam();
  auto count = [&](int64_t extent, int64_t taps) {
    return (extent - 2 * c.start - c.step * (taps - 1) - 1) / c.stride + 1;
  };
  int64_t height = count(c.height, c.cells), width = count(c.width, c.taps), pixels = c.images * height * width;
  ASSERT_GT(pixels, 0);
  reads(wholeNumbers(c.images * c.height * c.width * c.channels, 1), {c.images, c.height, c.width, c.channels});
  reads(wholeNumbers(c.cells * c.taps * c.channels * c.results, 5), {c.cells, c.taps, c.channels, c.results});
  writes({pixels, c.results}); // Unwritten elements stay as they were.
  if (isScattered)
    writes({c.images, 2 * height, 2 * width, c.results});
  for (int64_t number : {height, width, c.stride, c.stride, c.start, c.start, c.step, c.step})
    takes(number);
  prepare(isScattered ? scatteredSource() : source);
  EXPECT_NE(module->walk([](kgpu::TensorLoadOp load) {
    return load.getTaps().empty() ? WalkResult::advance() : WalkResult::interrupt();
  }),
            WalkResult::advance());
  expectRight(2, {2});
}

TEST_P(Windows, AreRightInEveryOrder) { areRight(/*isScattered=*/false); }

TEST_P(Windows, AreWrittenRowByRow) { areRight(/*isScattered=*/true); }

INSTANTIATE_TEST_SUITE_P(Shapes, Windows,
                         testing::Values(Case{2, 9, 7, 8, 3, 3, 16, 1, -1,
                                              1}, // Tiles begin in the middle of images and end behind the last one.
                                         Case{1, 12, 15, 72, 3, 2, 8, 2, -2,
                                              1},                              // Channels end in the middle of a step.
                                         Case{3, 5, 6, 16, 2, 3, 72, 1, 0, 2}, // No padding, taps apart.
                                         Case{4, 9, 9, 8, 1, 1, 8, 3, 0, 1})); // Some pixels are skipped.
} // namespace
