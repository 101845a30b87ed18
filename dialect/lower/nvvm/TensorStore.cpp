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

/// The stores of one tile. Rows and columns are the accumulator's, whose columns are the panel rows of a tile that is
/// its transpose.
class Emitter::PanelStores {
public:
  PanelStores(Emitter &emitter, kgpu::TensorStoreOp op);
  void emit();

private:
  void emitAddresses();
  void emitPanel(int64_t number, int64_t firstRow, int64_t firstColumn);
  void fillNarrow(int64_t buffer, int64_t firstRow, int64_t firstColumn);
  void fillWide(Value buffer, int64_t firstRow, int64_t firstColumn);
  void copyOut(int64_t buffer, int64_t firstRow, int64_t firstColumn);
  Value coordinate(unsigned dim, int64_t firstRow, int64_t firstColumn);

  Value bufferAt(int64_t buffer) { return bytesBehind(builder, base, buffer * bufferBytes); }
  Value element(int64_t row, int64_t column) {
    return emitter.registersOf(op.getValue())[*layout.registerOf(
        isTransposed ? SmallVector<int64_t>{column, row} : SmallVector<int64_t>{row, column}, 0)];
  }
  void byLeader(llvm::function_ref<void()> make) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(scf::IfOp::create(builder, leader, /*withElseRegion=*/false).thenBlock());
    make();
  }

  /// Returns how many panels each warpgroup stores.
  static int64_t panelsOf(kgpu::TensorStoreOp store, int64_t consumers);
  bool sharesBuffersUnevenly();

  Emitter &emitter;
  ImplicitLocOpBuilder &builder;
  kgpu::TensorStoreOp op;
  const layout::Layout &layout;
  tile::ViewType view;
  kgpu::TensorMapAttr map;
  unsigned rowDim = 0;
  int64_t buffers, panelBytes, bufferBytes, panelColumns;
  bool isTransposed;
  /// Warpgroups in excess of the blocks of rows take further columns of the same rows: `groups` of them share columns.
  int64_t parts, groups;
  int64_t ownColumns;     // Of a warpgroup.
  int64_t blocks, panels; // Of a warpgroup, along rows and columns.

  Value leader, barrier;
  Value base;       // The first buffer of this warpgroup.
  Value group;      // The number of this warpgroup among those with the same columns.
  Value laneOffset; // Of the row of a matrix whose address this lane supplies.
  Value wideOffset; // Of this thread's pair of 32-bit elements in a row.
};

Emitter::PanelStores::PanelStores(Emitter &emitter, kgpu::TensorStoreOp op)
    : emitter(emitter), builder(emitter.builder), op(op), layout(kgpu::layoutOf(op.getValue())),
      view(cast<tile::ViewType>(op.getView().getType())), map(kgpu::tensorMapsOf(emitter.kernel)[op.getMap()]) {
  for (auto [dim, extent] : llvm::enumerate(map.getBox()))
    if (int64_t(dim) != view.getUnit() && extent != 1)
      rowDim = dim;
  kgpu::SharedType staging = op.getStaging().getType();
  buffers = staging.getShape()[1];
  panelBytes = staging.getShape()[3] * staging.getElementBytes();
  bufferBytes = panelRows * panelBytes;
  panelColumns = panelBytes / (op.getAdds() ? 4 : 2);
  auto type = cast<RankedTensorType>(op.getValue().getType());
  int64_t consumers = emitter.launch.consumers;
  isTransposed = !op.getAdds() && type.getDimSize(1) % panelRows == 0 &&
                 layout == kgpu::wgmmaTransposed(type.getShape(), consumers);
  int64_t rows = type.getDimSize(isTransposed ? 1 : 0), columns = type.getDimSize(isTransposed ? 0 : 1);
  parts = std::max<int64_t>(consumers * panelRows / rows, 1);
  groups = consumers / parts;
  blocks = rows / (panelRows * groups);
  ownColumns = columns / parts;
  panels = ownColumns / panelColumns;
}

void Emitter::PanelStores::emit() {
  emitAddresses();
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t panel = 0; panel < panels; ++panel)
      emitPanel(block * panels + panel, block * panelRows * groups, panel * panelColumns);
}

/// Emits the values that all panels share.
void Emitter::PanelStores::emitAddresses() {
  Value thread = masked(builder, ptx::hidden(builder, emitter.place.thread()), kgpu::kWarpgroupThreads - 1),
        lane = masked(builder, thread, 31);
  leader = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, thread, constantOf(builder, 0));
  // A lane supplies the address of one row of one of the four matrices. The number of a 16-byte chunk is XORed with the
  // number of its 128-byte row.
  Value row = sum(builder, times(builder, shifted(builder, thread, 5), 16), masked(builder, lane, 15));
  Value line = masked(builder, shifted(builder, lane, llvm::Log2_64(128 / panelBytes)), panelBytes / 16 - 1);
  Value chunk = arith::XOrIOp::create(builder, line, shifted(builder, lane, 4));
  laneOffset = sum(builder, times(builder, row, panelBytes), times(builder, chunk, 16));
  if (isTransposed) { // A warp has two of the eight chunks of each row.
    Value own =
        sum(builder, times(builder, shifted(builder, thread, 5), 2), masked(builder, shifted(builder, lane, 3), 1));
    laneOffset =
        sum(builder,
            times(builder, sum(builder, times(builder, shifted(builder, lane, 4), 8), masked(builder, lane, 7)),
                  panelBytes),
            times(builder, arith::XOrIOp::create(builder, own, masked(builder, lane, 7)), 16));
  }
  Value own = times(builder, emitter.warpgroup, buffers * bufferBytes);
  base = bytesBehind(builder, emitter.scalar(op.getStaging()), own);
  barrier = sum(builder, emitter.warpgroup, constantOf(builder, firstWarpgroupBarrier));
  group = parts == 1 ? emitter.warpgroup
                     : arith::RemUIOp::create(builder, emitter.warpgroup, constantOf(builder, groups)).getResult();
  // Two lanes of four share 16 bytes.
  Value wideRow = sum(builder, times(builder, shifted(builder, thread, 5), 16), shifted(builder, lane, 2));
  Value wideChunk = arith::XOrIOp::create(builder, masked(builder, shifted(builder, lane, 2), 7),
                                          masked(builder, shifted(builder, lane, 1), 1));
  wideOffset = sum(builder, sum(builder, times(builder, wideRow, panelBytes), times(builder, wideChunk, 16)),
                   times(builder, masked(builder, lane, 1), 8));
}

int64_t Emitter::PanelStores::panelsOf(kgpu::TensorStoreOp store, int64_t consumers) {
  auto type = cast<RankedTensorType>(store.getValue().getType());
  kgpu::SharedType staging = store.getStaging().getType();
  int64_t panelBytes = staging.getShape()[3] * staging.getElementBytes();
  return type.getNumElements() * (store.getAdds() ? 4 : 2) / (panelRows * panelBytes * consumers);
}

/// Returns whether a store through the same buffers may end at another than the last one.
bool Emitter::PanelStores::sharesBuffersUnevenly() {
  return llvm::any_of(op.getStaging().getUsers(), [&](Operation *user) {
    auto store = dyn_cast<kgpu::TensorStoreOp>(user);
    return store && panelsOf(store, emitter.launch.consumers) % buffers != 0;
  });
}

/// Stages the panel of this number in a buffer, and starts its copy to global memory.
void Emitter::PanelStores::emitPanel(int64_t number, int64_t firstRow, int64_t firstColumn) {
  int64_t buffer = number % buffers;
  // The last copy from this buffer was started `buffers` panels ago, unless a store ends at another buffer.
  bool isRegular = number != 0 || !sharesBuffersUnevenly();
  byLeader([&] { waitForBulkReads(builder, isRegular ? buffers - 1 : 0); });
  namedBarrier(builder, barrier, kgpu::kWarpgroupThreads);
  if (op.getAdds())
    fillWide(bufferAt(buffer), firstRow, firstColumn);
  else
    fillNarrow(buffer, firstRow, firstColumn);
  fenceForCopies(builder);
  namedBarrier(builder, barrier, kgpu::kWarpgroupThreads);
  byLeader([&] { copyOut(buffer, firstRow, firstColumn); });
}

/// Fills a buffer with 16-bit elements by stmatrix.
void Emitter::PanelStores::fillNarrow(int64_t buffer, int64_t firstRow, int64_t firstColumn) {
  for (int64_t part = 0; part < panelColumns / storeColumns; ++part) {
    SmallVector<Value> words;
    for (int64_t matrix = 0; matrix < 4; ++matrix) {
      int64_t row = firstRow + matrix % 2 * 8, column = firstColumn + part * storeColumns + matrix / 2 * 8;
      words.push_back(pairOfNarrowFloats(builder, element(row, column), element(row, column + 1)));
    }
    Value offset =
        isTransposed
            ? sum(builder, laneOffset, constantOf(builder, part * storeColumns * panelBytes))
            : arith::XOrIOp::create(builder, laneOffset, constantOf(builder, part * storeColumns * 2)).getResult();
    storeMatrices(builder, bytesBehind(builder, bytesBehind(builder, base, offset), buffer * bufferBytes), words,
                  isTransposed);
  }
}

/// Fills a buffer with 32-bit elements.
void Emitter::PanelStores::fillWide(Value buffer, int64_t firstRow, int64_t firstColumn) {
  for (int64_t column = 0; column < panelColumns; column += 8) {
    Value place =
        bytesBehind(builder, buffer, arith::XOrIOp::create(builder, wideOffset, constantOf(builder, column * 4)));
    for (int64_t below : {0, 8}) {
      SmallVector<Value> pair;
      for (int64_t next : {0, 1})
        pair.push_back(element(firstRow + below, firstColumn + column + next));
      storePair(builder, bytesBehind(builder, place, below * panelBytes), pair);
    }
  }
}

void Emitter::PanelStores::copyOut(int64_t buffer, int64_t firstRow, int64_t firstColumn) {
  SmallVector<Value> coordinates;
  for (unsigned dim : map.order(view.getUnit()))
    coordinates.push_back(coordinate(dim, firstRow, firstColumn));
  auto copy = op.getAdds() ? tensorAddOut : tensorCopyOut;
  copy(builder, bufferAt(buffer), emitter.tensorMap(op.getMap()), coordinates);
}

/// Returns the coordinate of a panel's first element in dimension `dim` of the tensor.
Value Emitter::PanelStores::coordinate(unsigned dim, int64_t firstRow, int64_t firstColumn) {
  Value start = arith::IndexCastOp::create(builder, builder.getI32Type(), emitter.scalar(op.getOffsets()[dim]));
  bool isContiguous = int64_t(dim) == view.getUnit();
  if (!isContiguous && dim != rowDim)
    return start;
  if (isContiguous == isTransposed) // The dimension of the accumulator's rows.
    return sum(builder, sum(builder, start, times(builder, group, panelRows)), constantOf(builder, firstRow));
  start = sum(builder, start, constantOf(builder, firstColumn));
  if (isTransposed || parts == 1)
    return start;
  Value part = arith::DivUIOp::create(builder, emitter.warpgroup, constantOf(builder, groups));
  return sum(builder, start, times(builder, part, ownColumns));
}

LogicalResult Emitter::emitTensorStore(kgpu::TensorStoreOp op) {
  storesByMaps = true;
  PanelStores(*this, op).emit();
  return success();
}

} // namespace kpkg::lower::nvvm
