// Emits tiles that warpgroups publish to shared memory for each other.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/AsyncInstructions.h"
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/InlinePtx.h"
#include "dialect/lower/nvvm/Offsets.h"
#include "dialect/lower/nvvm/Words.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

namespace {
constexpr int64_t blockRows = 64, panelBytes = 128, panelColumns = 64;
/// Columns that one stmatrix instruction stores: four 8x8 matrices of 16-bit elements, arranged 2 x 2.
constexpr int64_t storeColumns = 16;
} // namespace

LogicalResult Emitter::emitPublishAll(kgpu::PublishAllOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  const layout::Layout &layout = kgpu::layoutOf(type);
  int64_t rows = type.getDimSize(0), blocks = rows / (blockRows * launch.consumers),
          panels = type.getDimSize(1) / panelColumns;
  Value thread = masked(builder, ptx::hidden(builder, place.thread()), kgpu::kWarpgroupThreads - 1),
        lane = masked(builder, thread, 31);
  // As in a tensor store: the number of the 16-byte chunk within 128 bytes is XORed with the row's number.
  Value row = sum(builder, times(builder, shifted(builder, thread, 5), 16), masked(builder, lane, 15));
  Value laneOffset =
      sum(builder, times(builder, row, panelBytes),
          times(builder, arith::XOrIOp::create(builder, masked(builder, lane, 7), shifted(builder, lane, 4)), 16));
  Value base = bytesBehind(builder, scalar(op.getBuffer()), times(builder, warpgroup, blockRows * panelBytes));
  ValueRange held = registersOf(op.getValue());
  for (int64_t part = 0; part < panelColumns / storeColumns; ++part) {
    Value from = bytesBehind(builder, base,
                             arith::XOrIOp::create(builder, laneOffset, constantOf(builder, part * storeColumns * 2)));
    for (int64_t block = 0; block < blocks; ++block)
      for (int64_t panel = 0; panel < panels; ++panel) {
        SmallVector<Value> words;
        for (int64_t matrix = 0; matrix < 4; ++matrix) {
          int64_t firstRow = block * blockRows * launch.consumers + matrix % 2 * 8,
                  column = panel * panelColumns + part * storeColumns + matrix / 2 * 8;
          words.push_back(pairOfNarrowFloats(builder, held[*layout.registerOf({firstRow, column}, 0)],
                                             held[*layout.registerOf({firstRow, column + 1}, 0)]));
        }
        storeMatrices(
            builder,
            bytesBehind(builder, from, panel * rows * panelBytes + block * blockRows * launch.consumers * panelBytes),
            words, /*turns=*/false);
      }
  }
  fenceForCopies(builder);
  namedBarrier(builder, ownBarrier, kgpu::kWarpgroupThreads);
  Value slot =
      arith::RemUIOp::create(builder, scalar(op.getUse()), constantOf(builder, op.getRing().getType().getSlots()));
  Value full = bytesBehind(builder, scalar(op.getRing()), times(builder, slot, barrierBytes));
  ptx::barrierArriveWhere(builder, full,
                          arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, thread, constantOf(builder, 0)));
  return success();
}

LogicalResult Emitter::emitPublish(kgpu::PublishOp op) {
  RingUse use = ringUse(builder, scalar(op.getRing()), op.getRing().getType().getSlots(), scalar(op.getUse()));
  ptx::barrierWait(builder, use.empty, arith::XOrIOp::create(builder, use.parity, constantOf(builder, 1)));
  if (failed(storeToBuffer(op, op.getValue(), op.getBuffer())))
    return failure();
  if (op.getBuffer().getType().getMemory()) // In panels: products read the buffer, not loads.
    fenceForCopies(builder);
  warpBarrier(builder);
  Value lane = arith::AndIOp::create(builder, place.thread(), constantOf(builder, 31));
  ptx::barrierArriveWhere(builder, use.full,
                          arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, lane, constantOf(builder, 0)));
  return success();
}

} // namespace kpkg::lower::nvvm
