// Emits TMA stores of tiles: every warpgroup stages its rows panel by panel in its own buffers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/WgmmaLayout.h"
#include "dialect/lower/nvvm/AsyncInstructions.h"
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/InlinePtx.h"
#include "dialect/lower/nvvm/Offsets.h"
#include "dialect/lower/nvvm/Words.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

namespace {
constexpr int64_t panelRows = 64;
/// Columns that one stmatrix instruction stores: four 8x8 matrices of 16-bit elements, arranged 2 x 2.
constexpr int64_t storeColumns = 16;
} // namespace

LogicalResult Emitter::emitTensorStore(kgpu::TensorStoreOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  const layout::Layout &layout = kgpu::layoutOf(type);
  auto view = cast<tile::ViewType>(op.getView().getType());
  kgpu::TensorMapAttr map = kgpu::tensorMapsOf(kernel)[op.getMap()];
  unsigned rowDim = 0;
  for (auto [dim, extent] : llvm::enumerate(map.getBox()))
    if (int64_t(dim) != view.getUnit() && extent != 1)
      rowDim = dim;
  kgpu::SharedType staging = op.getStaging().getType();
  int64_t buffers = staging.getShape()[1], panelBytes = staging.getShape()[3] * staging.getElementBytes(),
          bufferBytes = panelRows * panelBytes;
  int64_t panelColumns = panelBytes / (op.getAdds() ? 4 : 2);
  // Warpgroups in excess of the blocks of rows take further columns of the same rows. If the tile is the transpose of
  // an accumulator, its panel rows are the accumulator's columns. Rows and columns below are the accumulator's.
  bool isTransposed = !op.getAdds() && type.getDimSize(1) % panelRows == 0 &&
                      layout == kgpu::wgmmaTransposed(type.getShape(), launch.consumers);
  int64_t rows = type.getDimSize(isTransposed ? 1 : 0), columns = type.getDimSize(isTransposed ? 0 : 1);
  int64_t parts = std::max<int64_t>(launch.consumers * panelRows / rows, 1), groups = launch.consumers / parts;
  int64_t blocks = rows / (panelRows * groups), ownColumns = columns / parts, panels = ownColumns / panelColumns;
  auto elementAt = [&](int64_t row, int64_t column) {
    return registersOf(op.getValue())[*layout.registerOf(
        isTransposed ? SmallVector<int64_t>{column, row} : SmallVector<int64_t>{row, column}, 0)];
  };

  Value thread = masked(builder, ptx::hidden(builder, place.thread()), kgpu::kWarpgroupThreads - 1),
        lane = masked(builder, thread, 31);
  Value leader = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, thread, constantOf(builder, 0));
  // A lane supplies the address of one row of one of the four matrices. The number of a 16-byte chunk is XORed with the
  // number of its 128-byte row.
  Value row = sum(builder, times(builder, shifted(builder, thread, 5), 16), masked(builder, lane, 15));
  Value line = masked(builder, shifted(builder, lane, llvm::Log2_64(128 / panelBytes)), panelBytes / 16 - 1);
  Value chunk = arith::XOrIOp::create(builder, line, shifted(builder, lane, 4));
  Value laneOffset = sum(builder, times(builder, row, panelBytes), times(builder, chunk, 16));
  if (isTransposed) { // A warp has two of the eight chunks of each row.
    Value own =
        sum(builder, times(builder, shifted(builder, thread, 5), 2), masked(builder, shifted(builder, lane, 3), 1));
    laneOffset =
        sum(builder,
            times(builder, sum(builder, times(builder, shifted(builder, lane, 4), 8), masked(builder, lane, 7)),
                  panelBytes),
            times(builder, arith::XOrIOp::create(builder, own, masked(builder, lane, 7)), 16));
  }
  Value own = times(builder, warpgroup, buffers * bufferBytes),
        base = bytesBehind(builder, scalar(op.getStaging()), own);
  Value barrier = sum(builder, warpgroup, constantOf(builder, firstWarpgroupBarrier));
  auto byLeader = [&](auto make) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(scf::IfOp::create(builder, leader, /*withElseRegion=*/false).thenBlock());
    make();
  };

  ValueRange held = registersOf(op.getValue());
  Value group =
      parts == 1 ? warpgroup : arith::RemUIOp::create(builder, warpgroup, constantOf(builder, groups)).getResult();
  // The offset of a thread's pair of 32-bit elements in a row: two lanes of four share 16 bytes.
  Value wideRow = sum(builder, times(builder, shifted(builder, thread, 5), 16), shifted(builder, lane, 2));
  Value wideChunk = arith::XOrIOp::create(builder, masked(builder, shifted(builder, lane, 2), 7),
                                          masked(builder, shifted(builder, lane, 1), 1));
  Value wideOffset = sum(builder, sum(builder, times(builder, wideRow, panelBytes), times(builder, wideChunk, 16)),
                         times(builder, masked(builder, lane, 1), 8));
  auto fillWide = [&](Value buffer, int64_t firstRow, int64_t firstColumn) {
    for (int64_t column = 0; column < panelColumns; column += 8) {
      Value place =
          bytesBehind(builder, buffer, arith::XOrIOp::create(builder, wideOffset, constantOf(builder, column * 4)));
      for (int64_t below : {0, 8}) {
        SmallVector<Value> pair;
        for (int64_t next : {0, 1})
          pair.push_back(held[*layout.registerOf({firstRow + below, firstColumn + column + next}, 0)]);
        storePair(builder, bytesBehind(builder, place, below * panelBytes), pair);
      }
    }
  };
  storesByMaps = true;
  int64_t number = 0, total = blocks * panels;
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t panel = 0; panel < panels; ++panel, ++number) {
      int64_t buffer = number % buffers;
      // The last copy from this buffer was started `buffers` panels ago, unless the previous op ended at another
      // buffer.
      bool isRegular = number != 0 || total % buffers == 0;
      byLeader([&] { waitForBulkReads(builder, isRegular ? buffers - 1 : 0); });
      namedBarrier(builder, barrier, kgpu::kWarpgroupThreads);
      int64_t firstRow = block * panelRows * groups, firstColumn = panel * panelColumns;
      if (op.getAdds())
        fillWide(bytesBehind(builder, base, buffer * bufferBytes), firstRow, firstColumn);
      for (int64_t part = 0; !op.getAdds() && part < panelColumns / storeColumns; ++part) {
        SmallVector<Value> words;
        for (int64_t matrix = 0; matrix < 4; ++matrix) {
          int64_t row = firstRow + matrix % 2 * 8, column = firstColumn + part * storeColumns + matrix / 2 * 8;
          words.push_back(pairOfNarrowFloats(builder, elementAt(row, column), elementAt(row, column + 1)));
        }
        Value offset =
            isTransposed
                ? sum(builder, laneOffset, constantOf(builder, part * storeColumns * panelBytes))
                : arith::XOrIOp::create(builder, laneOffset, constantOf(builder, part * storeColumns * 2)).getResult();
        storeMatrices(builder, bytesBehind(builder, bytesBehind(builder, base, offset), buffer * bufferBytes), words,
                      isTransposed);
      }
      fenceForCopies(builder);
      namedBarrier(builder, barrier, kgpu::kWarpgroupThreads);
      byLeader([&] {
        SmallVector<Value> coordinates;
        for (unsigned dim : map.order(view.getUnit())) {
          Value coordinate = arith::IndexCastOp::create(builder, builder.getI32Type(), scalar(op.getOffsets()[dim]));
          if (isTransposed) {
            if (int64_t(dim) == view.getUnit())
              coordinate = sum(builder, sum(builder, coordinate, times(builder, group, panelRows)),
                               constantOf(builder, firstRow));
            else if (dim == rowDim)
              coordinate = sum(builder, coordinate, constantOf(builder, firstColumn));
          } else if (int64_t(dim) == view.getUnit()) {
            coordinate = sum(builder, coordinate, constantOf(builder, firstColumn));
            if (parts != 1)
              coordinate = sum(
                  builder, coordinate,
                  times(builder, arith::DivUIOp::create(builder, warpgroup, constantOf(builder, groups)), ownColumns));
          } else if (dim == rowDim) {
            coordinate =
                sum(builder, sum(builder, coordinate, times(builder, group, panelRows)), constantOf(builder, firstRow));
          }
          coordinates.push_back(coordinate);
        }
        auto copy = op.getAdds() ? tensorAddOut : tensorCopyOut;
        copy(builder, bytesBehind(builder, base, buffer * bufferBytes), tensorMap(op.getMap()), coordinates);
      });
    }
  return success();
}

} // namespace kpkg::lower::nvvm
