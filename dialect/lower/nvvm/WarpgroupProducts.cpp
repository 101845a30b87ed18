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

/// One wgmma op as instructions of this warpgroup.
class Emitter::WarpgroupProduct {
public:
  WarpgroupProduct(Emitter &emitter, kgpu::WgmmaOp op);
  /// Returns the registers of the sum.
  TileRegisters emit();

private:
  void findOperands();
  void packFragments();
  void emitBlock(int64_t block, int64_t firstColumn);
  Value emitStep(int64_t block, int64_t firstColumn, int64_t step, ArrayRef<Value> before, Value sums);

  Value constant(int64_t value) { return constantOf(builder, value); }
  /// Returns the offset of a column of the right operand.
  int64_t columnBytes(int64_t column) const {
    return right.isDepthLast ? column * panelBytes : column * bytes / panelBytes * right.panelBytes;
  }
  /// Returns the offset of a step of 32 bytes of depth in an operand.
  int64_t stepBytes(const OperandDescriptor &operand, int64_t step) const {
    int64_t along = step * 32;
    return operand.isDepthLast ? along / panelBytes * operand.panelBytes + along % panelBytes
                               : step * stepDepth * panelBytes;
  }

  static constexpr int64_t rowsOfBlock = 64;

  Emitter &emitter;
  ImplicitLocOpBuilder &builder;
  kgpu::WgmmaOp op;
  kgpu::SharedType lhs, rhs; // lhs is null if the left operand is in registers.
  const layout::Layout &layout;
  int64_t rows, bytes, stepDepth;
  /// Warpgroups in excess of the blocks of rows take further columns of the same rows, or the same columns.
  int64_t alike, groups;
  int64_t blocks, ownColumns; // Of a warpgroup.
  int64_t parts;              // Groups of warpgroups with different columns.
  int64_t steps, rightSteps;  // Of depth; how many a step takes in the right operand.
  OperandDescriptor left, right;
  int64_t blockBytes = 0; // From one block of rows of the left operand to the next.
  int64_t wide;           // Columns that one instruction multiplies.
  bool alwaysAdds;
  /// Accumulators that the first product reads before it writes them are live around the whole loop. Overwriting them
  /// avoids that. It was measured only where results outlive an iteration.
  bool neverAdds;
  SmallVector<SmallVector<Value>> fragments, positions;
  TileRegisters results;
};

Emitter::WarpgroupProduct::WarpgroupProduct(Emitter &emitter, kgpu::WgmmaOp op)
    : emitter(emitter), builder(emitter.builder), op(op), lhs(dyn_cast<kgpu::SharedType>(op.getLhs().getType())),
      rhs(cast<kgpu::SharedType>(op.getRhs().getType())), layout(kgpu::layoutOf(op.getResult())),
      results(emitter.registersOf(op.getAccumulator())) {
  auto sum = cast<RankedTensorType>(op.getType());
  int64_t consumers = emitter.launch.consumers, depth = rhs.getShape()[0];
  rows = sum.getDimSize(0);
  bytes = rhs.getElementBytes();
  stepDepth = 32 / bytes;
  alike = std::max<int64_t>(consumers * rowsOfBlock / rows, 1);
  groups = consumers / alike;
  blocks = rows / (rowsOfBlock * groups);
  ownColumns = layout.registers() * kgpu::kWarpgroupThreads / (blocks * rowsOfBlock);
  parts = sum.getDimSize(1) / ownColumns;
  wide = columnsOfInstruction(ownColumns, kgpu::targetOf(emitter.kernel), emitter.launch);
  // A step of a 2:4 sparse left operand multiplies twice as many rows of the right operand.
  rightSteps = op.getPositions() ? 2 : 1;
  steps = op.getPositions() || !lhs ? depth / stepDepth / rightSteps : lhs.getShape()[1] / stepDepth;
  APInt constant;
  alwaysAdds = matchPattern(op.getAdds(), m_ConstantInt(&constant)) && constant.isOne();
  neverAdds = emitter.sharesTiles && matchPattern(op.getAdds(), m_Zero());
}

Emitter::TileRegisters Emitter::WarpgroupProduct::emit() {
  findOperands();
  packFragments();
  wgmmaFence(builder);
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t column = 0; column < ownColumns; column += wide)
      emitBlock(block, column);
  wgmmaCommit(builder);
  return std::move(results);
}

/// Sets `left`, `right` and `blockBytes`: this warpgroup's parts of the operands in shared memory.
void Emitter::WarpgroupProduct::findOperands() {
  int64_t depth = rhs.getShape()[0];
  bool rhsDepthLast = *kgpu::panelDim(rhs) == 0;
  auto addressOf = [&](Value buffer) {
    return ptx::hidden(builder, LLVM::PtrToIntOp::create(builder, builder.getI32Type(), emitter.scalar(buffer)));
  };
  right = {addressOf(op.getRhs()), (rhsDepthLast ? rhs.getShape()[1] : depth) * panelBytes, rhsDepthLast};
  if (lhs) {
    bool isNarrow = kgpu::isNarrowPanel(lhs), isDepthLast = isNarrow || *kgpu::panelDim(lhs) == 1;
    left = {addressOf(op.getLhs()), (isDepthLast ? rows : depth) * panelBytes, isDepthLast, isNarrow};
    // The next block of rows is further rows of a panel, or another panel.
    blockBytes = isDepthLast ? rowsOfBlock * panelBytes : left.panelBytes;
    Value group = alike == 1 ? emitter.warpgroup
                             : arith::RemUIOp::create(builder, emitter.warpgroup, constant(groups)).getResult();
    Value own = arith::MulIOp::create(builder, group, constant(blockBytes));
    left.address = arith::AddIOp::create(builder, left.address, own);
  }
  if (parts != 1) {
    Value part = arith::DivUIOp::create(builder, emitter.warpgroup, constant(groups));
    Value own = arith::MulIOp::create(builder, part, constant(columnBytes(ownColumns)));
    right.address = arith::AddIOp::create(builder, right.address, own);
  }
}

/// Packs all fragments before the products, because no operand register may be written while products run.
void Emitter::WarpgroupProduct::packFragments() {
  for (int64_t block = 0; block < blocks && !lhs; ++block)
    for (int64_t step = 0; step < steps; ++step)
      fragments.push_back(emitter.leftFragment(op.getLhs(), block * rowsOfBlock * groups, step * stepDepth));
  for (int64_t block = 0; block < blocks && op.getPositions(); ++block)
    positions.push_back(emitter.positionWords(op.getPositions(), block * rowsOfBlock * groups));
}

/// Emits the products of one block of rows with the `wide` columns from `firstColumn` on.
void Emitter::WarpgroupProduct::emitBlock(int64_t block, int64_t firstColumn) {
  SmallVector<unsigned> registers;
  for (int64_t i = 0; i < wide / 2; ++i) {
    int64_t row = i / 2 % 2 * 8 + block * rowsOfBlock * groups, column = firstColumn + i / 4 * 8 + i % 2;
    registers.push_back(*layout.registerOf({row, column}, 0));
  }
  SmallVector<Value> before;
  for (unsigned reg : registers)
    before.push_back(results[reg]);
  Value sums; // Null: none of these products has been emitted yet.
  for (int64_t step = 0; step < steps; ++step)
    sums = emitStep(block, firstColumn, step, before, sums);
  for (auto [reg, value] : llvm::zip(registers, unpacked(builder, sums)))
    results[reg] = value;
}

/// Emits one instruction, which adds to `sums`, or to `before` if it is the first one. Returns the new sums.
Value Emitter::WarpgroupProduct::emitStep(int64_t block, int64_t firstColumn, int64_t step, ArrayRef<Value> before,
                                          Value sums) {
  SmallVector<Value> a;
  if (lhs)
    a = {descriptorAt(builder, left, stepBytes(left, step) + block * blockBytes * groups)};
  else
    a = fragments[block * steps + step];
  int64_t firstStep = int64_t(op.getRow()) / stepDepth;
  Value b = descriptorAt(builder, right, stepBytes(right, firstStep + step * rightSteps) + columnBytes(firstColumn));
  bool isLeftTransposed = lhs && !left.isDepthLast;
  bool overwrites = step == 0 && neverAdds;
  Value adds = step == 0 && !alwaysAdds && !overwrites ? emitter.scalar(op.getAdds()) : Value();
  if (lhs && !op.getPositions() && !adds && !overwrites)
    return wgmma(builder, sums ? sums : packed(builder, before), a.front(), isLeftTransposed, b, !right.isDepthLast,
                 rhs.getElementType());
  ptx::Positions where;
  if (op.getPositions())
    where = {positions[block][step / 2], unsigned(step % 2)};
  return ptx::wgmma(builder, sums ? unpacked(builder, sums) : SmallVector<Value>(before), a, isLeftTransposed, b,
                    !right.isDepthLast, adds, rhs.getElementType(), overwrites, where);
}

LogicalResult Emitter::emitWgmma(kgpu::WgmmaOp op) { return emitAs(op, WarpgroupProduct(*this, op).emit()); }

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
