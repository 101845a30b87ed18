// Emits warpgroup matrix products (wgmma) as the code of one thread.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/AsyncInstructions.h"
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/InlinePtx.h"
#include "dialect/lower/nvvm/Words.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

/// The bytes of a panel row of an operand in shared memory.
static constexpr int64_t panelBytes = 128;

/// Returns the four words of this thread's left-operand fragment. They cover rows `row` and `row` + 8, at `column` and
/// half a step of 32 bytes after it.
SmallVector<Value> Emitter::leftFragment(Value tile, int64_t row, int64_t column) {
  const layout::Layout &layout = kgpu::layoutOf(tile);
  ValueRange held = registersOf(tile);
  SmallVector<Value> words;
  int64_t bytes = kgpu::elementBytes(getElementTypeOrSelf(tile.getType()));
  for (int64_t next : {int64_t(0), 16 / bytes})
    for (int64_t below : {0, 8}) {
      SmallVector<Value> neighbours;
      for (int64_t i = 0; i < 4 / bytes; ++i)
        neighbours.push_back(held[*layout.registerOf({row + below, column + next + i}, 0)]);
      words.push_back(packWords(builder, neighbours).front());
    }
  return words;
}

/// Returns this thread's position words for a block of 64 rows. Each word serves two steps of 32 columns.
SmallVector<Value> Emitter::positionWords(Value tile, int64_t row) {
  const layout::Layout &layout = kgpu::layoutOf(tile);
  ValueRange held = registersOf(tile);
  constexpr int64_t columnsOfWord = 4;
  SmallVector<Value> words;
  for (int64_t column = 0; column < cast<RankedTensorType>(tile.getType()).getDimSize(1); column += columnsOfWord)
    words.push_back(
        packWords(builder, {held[*layout.registerOf({row, column}, 0)], held[*layout.registerOf({row + 8, column}, 0)]})
            .front());
  return words;
}

/// Returns how many of `columns` one instruction multiplies. ptxas rejects (C7602) accumulators that exceed the
/// registers with which a thread starts. It does so even if setmaxnreg has raised the number since.
static int64_t columnsOfInstruction(int64_t columns, const kgpu::TargetModel &target, const kgpu::Launch &launch) {
  constexpr int64_t registersBeside = 26;
  int64_t atStart = target.registersPerSm / std::max(launch.minCtas, 1u) / launch.threads;
  while (columns / 2 + registersBeside > atStart && columns % 128 == 0)
    columns /= 2;
  return columns;
}

/// Packs values into one !llvm.struct, as ops of the NVVM dialect take and return them.
static Value packed(ImplicitLocOpBuilder &builder, ValueRange values) {
  Value all = LLVM::PoisonOp::create(
      builder, LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(values.getTypes())));
  for (auto [index, value] : llvm::enumerate(values))
    all = LLVM::InsertValueOp::create(builder, all, value, index);
  return all;
}

static SmallVector<Value> unpacked(ImplicitLocOpBuilder &builder, Value all) {
  SmallVector<Value> values;
  for (size_t i = 0; i < cast<LLVM::LLVMStructType>(all.getType()).getBody().size(); ++i)
    values.push_back(LLVM::ExtractValueOp::create(builder, all, i));
  return values;
}

LogicalResult Emitter::emitWgmma(kgpu::WgmmaOp op) {
  auto lhs = dyn_cast<kgpu::SharedType>(op.getLhs().getType()), rhs = cast<kgpu::SharedType>(op.getRhs().getType());
  auto sum = cast<RankedTensorType>(op.getType());
  int64_t rows = sum.getDimSize(0), columns = sum.getDimSize(1), depth = rhs.getShape()[0],
          bytes = rhs.getElementBytes();
  const layout::Layout &layout = kgpu::layoutOf(op.getResult());
  // Warpgroups in excess of the blocks of rows take further columns of the same rows, or the same columns.
  int64_t stepDepth = 32 / bytes, rowsOfBlock = 64, alike = std::max<int64_t>(launch.consumers * rowsOfBlock / rows, 1);
  int64_t groups = launch.consumers / alike, blocks = rows / (rowsOfBlock * groups);
  int64_t ownColumns = layout.registers() * kgpu::kWarpgroupThreads / (blocks * rowsOfBlock),
          parts = columns / ownColumns;
  bool isNarrow = lhs && kgpu::isNarrowPanel(lhs);
  bool lhsDepthLast = !lhs || isNarrow || *kgpu::panelDim(lhs) == 1, rhsDepthLast = *kgpu::panelDim(rhs) == 0;
  Type i32 = builder.getI32Type();
  auto addressOf = [&](Value buffer) {
    return ptx::hidden(builder, LLVM::PtrToIntOp::create(builder, i32, scalar(buffer)));
  };
  OperandDescriptor left,
      right{addressOf(op.getRhs()), (rhsDepthLast ? rhs.getShape()[1] : depth) * panelBytes, rhsDepthLast};
  int64_t blockBytes = 0;
  if (lhs) {
    left = {addressOf(op.getLhs()), (lhsDepthLast ? rows : depth) * panelBytes, lhsDepthLast, isNarrow};
    // The distance from one block of rows to the next: further rows of a panel, or another panel.
    blockBytes = lhsDepthLast ? rowsOfBlock * panelBytes : left.panelBytes;
    Value group =
        alike == 1 ? warpgroup : arith::RemUIOp::create(builder, warpgroup, constantOf(builder, groups)).getResult();
    Value own = arith::MulIOp::create(builder, group, constantOf(builder, blockBytes));
    left.address = arith::AddIOp::create(builder, left.address, own);
  }
  // Returns the offset of a column of the right operand.
  auto columnBytes = [&](int64_t column) {
    return rhsDepthLast ? column * panelBytes : column * bytes / panelBytes * right.panelBytes;
  };
  if (parts != 1) {
    int64_t partBytes = columnBytes(ownColumns);
    Value part = arith::DivUIOp::create(builder, warpgroup, constantOf(builder, groups));
    right.address = arith::AddIOp::create(builder, right.address,
                                          arith::MulIOp::create(builder, part, constantOf(builder, partBytes)));
  }
  // Returns the offset of a step of 32 bytes of depth in an operand.
  auto stepBytes = [&](const OperandDescriptor &operand, int64_t step) {
    int64_t along = step * 32;
    return operand.isDepthLast ? along / panelBytes * operand.panelBytes + along % panelBytes
                               : step * stepDepth * panelBytes;
  };
  // A step of a 2:4 sparse left operand multiplies twice as many rows of the right operand.
  int64_t rightSteps = op.getPositions() ? 2 : 1,
          steps = op.getPositions() || !lhs ? depth / stepDepth / rightSteps : lhs.getShape()[1] / stepDepth;
  int64_t firstStep = int64_t(op.getRow()) / stepDepth;
  TileRegisters results(registersOf(op.getAccumulator()));
  APInt constant;
  bool alwaysAdds = matchPattern(op.getAdds(), m_ConstantInt(&constant)) && constant.isOne();
  // Accumulators that the first product reads before it writes them are live around the whole loop. Overwriting them
  // avoids that. It was measured only where results outlive an iteration.
  bool neverAdds = sharesTiles && matchPattern(op.getAdds(), m_Zero());
  // Packs all fragments first, because no operand register may be written while products run.
  SmallVector<SmallVector<Value>> fragments;
  for (int64_t block = 0; block < blocks && !lhs; ++block)
    for (int64_t step = 0; step < steps; ++step)
      fragments.push_back(leftFragment(op.getLhs(), block * rowsOfBlock * groups, step * stepDepth));
  SmallVector<SmallVector<Value>> positions;
  for (int64_t block = 0; block < blocks && op.getPositions(); ++block)
    positions.push_back(positionWords(op.getPositions(), block * rowsOfBlock * groups));
  wgmmaFence(builder);
  int64_t wide = columnsOfInstruction(ownColumns, kgpu::targetOf(kernel), launch);
  for (int64_t at = 0; at < blocks * (ownColumns / wide); ++at) {
    int64_t block = at / (ownColumns / wide), firstColumn = at % (ownColumns / wide) * wide;
    SmallVector<unsigned> registers;
    for (int64_t i = 0; i < wide / 2; ++i) {
      int64_t row = i / 2 % 2 * 8 + block * rowsOfBlock * groups, column = firstColumn + i / 4 * 8 + i % 2;
      registers.push_back(*layout.registerOf({row, column}, 0));
    }
    SmallVector<Value> before;
    for (unsigned reg : registers)
      before.push_back(results[reg]);
    Value sums; // Null: none of these products has been emitted yet.
    for (int64_t step = 0; step < steps; ++step) {
      SmallVector<Value> a;
      if (lhs)
        a = {descriptorAt(builder, left, stepBytes(left, step) + block * blockBytes * groups)};
      else
        a = fragments[block * steps + step];
      Value b =
          descriptorAt(builder, right, stepBytes(right, firstStep + step * rightSteps) + columnBytes(firstColumn));
      bool overwrites = step == 0 && neverAdds;
      Value adds = step == 0 && !alwaysAdds && !overwrites ? scalar(op.getAdds()) : Value();
      if (lhs && !op.getPositions() && !adds && !overwrites) {
        sums = wgmma(builder, sums ? sums : packed(builder, before), a.front(), !lhsDepthLast, b, !rhsDepthLast,
                     rhs.getElementType());
        continue;
      }
      ptx::Positions where;
      if (op.getPositions())
        where = {positions[block][step / 2], unsigned(step % 2)};
      sums = ptx::wgmma(builder, sums ? unpacked(builder, sums) : before, a, !lhsDepthLast, b, !rhsDepthLast, adds,
                        rhs.getElementType(), overwrites, where);
    }
    for (auto [reg, value] : llvm::zip(registers, unpacked(builder, sums)))
      results[reg] = value;
  }
  wgmmaCommit(builder);
  define(op, std::move(results));
  return success();
}

LogicalResult Emitter::emitWgmmaWait(kgpu::WgmmaWaitOp op) {
  TileRegisters all;
  for (Value value : op.getValues())
    llvm::append_range(all, registersOf(value));
  TileRegisters done = ptx::wgmmaWait(builder, op.getPending(), all);
  ArrayRef<Value> rest = done;
  for (auto [value, result] : llvm::zip(op.getValues(), op.getResults())) {
    size_t count = registersOf(value).size();
    define(result, TileRegisters(rest.take_front(count)));
    rest = rest.drop_front(count);
  }
  return success();
}

} // namespace kpkg::lower::nvvm
