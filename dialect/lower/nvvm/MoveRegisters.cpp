// Emits renames, selects and shuffles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/MoveRegisters.h"
#include "dialect/lower/nvvm/Words.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

namespace kpkg::lower::nvvm {
using namespace mlir;
using layout::noRegister;
using layout::Rename;
using layout::ShufflePlan;

namespace {
/// Swaps slots in the threads that the step selects.
void exchange(ImplicitLocOpBuilder &builder, MutableArrayRef<Value> slots, const ShufflePlan::Exchange &step,
              const ThreadBits &thread, const ShufflePlan &plan, unsigned warpBits) {
  Value odd = parityOf(builder, thread, step.threadMask, plan.laneBits, warpBits);
  for (unsigned slot = 0; slot < slots.size(); ++slot) {
    unsigned other = slot ^ step.slotMask;
    if (slot > other)
      continue;
    Value low = slots[slot], high = slots[other];
    slots[slot] = arith::SelectOp::create(builder, odd, high, low);
    slots[other] = arith::SelectOp::create(builder, odd, low, high);
  }
}

/// Returns the value of slots without a register. Poison would spread to the other elements of a word.
Value zeroOf(ImplicitLocOpBuilder &builder, Type type) {
  return arith::ConstantOp::create(builder, builder.getZeroAttr(type));
}
} // namespace

Value shuffleXor(ImplicitLocOpBuilder &builder, Value word, unsigned mask) {
  return gpu::ShuffleOp::create(builder, word, constantOf(builder, mask), constantOf(builder, 32),
                                gpu::ShuffleMode::XOR)
      .getShuffleResult();
}

Value shuffleFrom(ImplicitLocOpBuilder &builder, Value word, Value source, unsigned laneBits) {
  unsigned lanes = 1u << laneBits;
  if (lanes == 32)
    return gpu::ShuffleOp::create(builder, word, source, constantOf(builder, 32), gpu::ShuffleMode::IDX)
        .getShuffleResult();
  // The GPU dialect has no shuffles within groups of lanes. The upper half of the clamp operand encodes the group size.
  return NVVM::ShflOp::create(builder, word.getType(), constantOf(builder, -1), word, source,
                              constantOf(builder, (32 - lanes) << 8 | 31), NVVM::ShflKind::idx, UnitAttr());
}

Value shuffleElementXor(ImplicitLocOpBuilder &builder, Value element, unsigned mask) {
  SmallVector<Value> words = packWords(builder, element);
  for (Value &word : words)
    word = shuffleXor(builder, word, mask);
  return unpackWords(builder, words, element.getType(), 1).front();
}

SmallVector<Value> moveRegisters(ImplicitLocOpBuilder &builder, const Rename &plan, ValueRange operand) {
  SmallVector<Value> result;
  Value padding;
  for (unsigned source : plan.source) {
    if (source == noRegister && !padding)
      padding = ub::PoisonOp::create(builder, operand.front().getType());
    result.push_back(source == noRegister ? padding : operand[source]);
  }
  return result;
}

SmallVector<Value> moveRegisters(ImplicitLocOpBuilder &builder, const ShufflePlan &plan, ValueRange operand,
                                 const ThreadBits &thread, unsigned warpBits) {
  Type element = operand.front().getType();
  SmallVector<Value> result(plan.resultRegisters);

  Value lane;
  if (!plan.butterfly) {
    SmallVector<uint32_t> images;
    for (unsigned bit = 0; bit < plan.threadBits; ++bit)
      images.push_back(plan.laneMap.column(bit));
    ArrayRef<uint32_t> all = images;
    lane = xorOfImages(builder, thread.lane, all.take_front(plan.laneBits));
    lane = xorOf(builder, lane, xorOfImages(builder, thread.warp, all.slice(plan.laneBits, warpBits)));
    lane = xorOf(builder, lane, xorOfImages(builder, thread.block, all.drop_front(plan.laneBits + warpBits)));
    if (!lane)
      lane = constantOf(builder, 0);
  }
  for (auto [operands, results] : llvm::zip_equal(plan.operands, plan.results)) {
    SmallVector<Value> before, after(plan.resultSlots);
    for (unsigned reg : operands)
      before.push_back(reg == noRegister ? zeroOf(builder, element) : operand[reg]);
    for (const ShufflePlan::Exchange &step : plan.before)
      exchange(builder, before, step, thread, plan, warpBits);
    for (const ShufflePlan::Round &round : plan.rounds) {
      SmallVector<Value> moved;
      bool wanted = !plan.after.empty();
      for (auto [from, to] : round.moves) {
        moved.push_back(before[from]);
        wanted |= results[to] != noRegister;
      }
      if (!wanted) {
        for (auto [from, to] : round.moves)
          after[to] = before[from];
        continue;
      }
      if (!plan.butterfly || round.laneXor != 0) {
        SmallVector<Value> words = packWords(builder, moved);
        Value source = lane;
        if (!plan.butterfly && round.laneXor != 0)
          source = arith::XOrIOp::create(builder, lane, constantOf(builder, round.laneXor));
        for (Value &word : words)
          word = plan.butterfly ? shuffleXor(builder, word, round.laneXor)
                                : shuffleFrom(builder, word, source, plan.laneBits);
        moved = unpackWords(builder, words, element, moved.size());
      }
      for (auto [move, value] : llvm::zip_equal(round.moves, moved))
        after[move.second] = value;
    }
    for (const ShufflePlan::Exchange &step : plan.after)
      exchange(builder, after, step, thread, plan, warpBits);
    for (auto [reg, value] : llvm::zip_equal(results, after))
      if (reg != noRegister)
        result[reg] = value;
  }
  Value padding;
  for (Value &value : result)
    if (!value) {
      if (!padding)
        padding = ub::PoisonOp::create(builder, element);
      value = padding;
    }
  return result;
}
} // namespace kpkg::lower::nvvm
