// Interprets one op after the other, each for all threads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/dialect/lower/nvvm/WarpInterpreter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"
#include <gtest/gtest.h>

using namespace mlir;

namespace kpkg::test {
namespace {
unsigned widthOf(Type type) { return isa<IndexType, LLVM::LLVMPointerType>(type) ? 64 : type.getIntOrFloatBitWidth(); }

uint64_t truncated(uint64_t value, unsigned width) {
  return width >= 64 ? value : value & ((uint64_t(1) << width) - 1);
}

int64_t signExtended(uint64_t value, unsigned width) { return int64_t(value << (64 - width)) >> (64 - width); }

bool compare(arith::CmpIPredicate predicate, uint64_t a, uint64_t b, unsigned width) {
  int64_t x = signExtended(a, width), y = signExtended(b, width);
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return x < y;
  case arith::CmpIPredicate::sle:
    return x <= y;
  case arith::CmpIPredicate::sgt:
    return x > y;
  case arith::CmpIPredicate::sge:
    return x >= y;
  case arith::CmpIPredicate::ult:
    return a < b;
  case arith::CmpIPredicate::ule:
    return a <= b;
  case arith::CmpIPredicate::ugt:
    return a > b;
  case arith::CmpIPredicate::uge:
    return a >= b;
  }
  llvm_unreachable("a comparison");
}
} // namespace

void WarpInterpreter::run(Block &block) {
  for (Operation &op : block)
    if (!op.hasTrait<OpTrait::IsTerminator>())
      run(op);
}

/// Computes the only result, a scalar, from the operands of one thread.
template <typename Function> void WarpInterpreter::each(Operation &op, Function function) {
  Lanes result(threads);
  for (unsigned thread = 0; thread < threads; ++thread) {
    SmallVector<uint64_t, 4> operands;
    for (Value operand : op.getOperands())
      operands.push_back(values.find(operand)->second.front()[thread]);
    result[thread] = truncated(function(operands, thread), widthOf(op.getResult(0).getType()));
  }
  values[op.getResult(0)] = {std::move(result)};
}

void WarpInterpreter::access(Operation &op) {
  auto load = dyn_cast<LLVM::LoadOp>(op);
  Value pointer = load ? load.getAddr() : cast<LLVM::StoreOp>(op).getAddr();
  Type type = load ? load.getType() : cast<LLVM::StoreOp>(op).getValue().getType();
  unsigned alignment = load ? *load.getAlignment() : *cast<LLVM::StoreOp>(op).getAlignment();
  auto vector = dyn_cast<VectorType>(type);
  unsigned count = vector ? vector.getNumElements() : 1, bytes = widthOf(vector ? vector.getElementType() : type) / 8;
  ASSERT_EQ(alignment, count * bytes);
  const Lanes addresses = get(pointer);
  std::vector<Lanes> loaded(count, Lanes(threads));
  std::vector<int> writer(memory.size(), -1);
  for (unsigned thread = 0; thread < threads; ++thread) {
    if (!active[thread])
      continue;
    ASSERT_EQ(addresses[thread] % alignment, 0u);
    ASSERT_LE(addresses[thread] + count * bytes, memory.size());
    for (unsigned i = 0; i < count * bytes; ++i) {
      uint8_t &byte = memory[addresses[thread] + i];
      uint64_t shift = 8 * (i % bytes);
      if (load) {
        loaded[i / bytes][thread] |= uint64_t(byte) << shift;
        continue;
      }
      uint8_t stored = values.find(cast<LLVM::StoreOp>(op).getValue())->second[i / bytes][thread] >> shift;
      raced |= writer[addresses[thread] + i] >= 0 && byte != stored;
      writer[addresses[thread] + i] = int(thread);
      byte = stored;
    }
  }
  if (load)
    values[load.getResult()] = std::move(loaded);
}

/// Runs an exchange of words between lanes.
void WarpInterpreter::shuffle(Operation &op) {
  const Lanes word = get(op.getOperand(isa<NVVM::ShflOp>(op) ? 1 : 0));
  if (auto shfl = dyn_cast<NVVM::ShflOp>(op)) {
    ASSERT_EQ(shfl.getKind(), NVVM::ShflKind::idx);
    return each(op, [&](ArrayRef<uint64_t> x, unsigned thread) {
      // PTX: lanes of a group keep the bits that the mask names; a lane beyond the group reads itself.
      unsigned lane = thread % warpSize, keep = x[3] >> 8 & 31, bound = (lane & keep) | (x[3] & 31 & ~keep);
      unsigned source = (lane & keep) | (x[2] & ~keep);
      return word[thread - lane + (source <= bound ? source : lane)];
    });
  }
  gpu::ShuffleMode mode = cast<gpu::ShuffleOp>(op).getMode();
  bool isButterfly = mode == gpu::ShuffleMode::XOR;
  ASSERT_TRUE(isButterfly || mode == gpu::ShuffleMode::IDX);
  each(op, [&](ArrayRef<uint64_t> x, unsigned thread) {
    unsigned lane = thread % warpSize, source = isButterfly ? lane ^ x[1] : x[1];
    EXPECT_EQ(x[2], 32u);
    return word[thread - lane + (source < x[2] ? source : lane)];
  });
}

void WarpInterpreter::run(Operation &op) {
  using Operands = ArrayRef<uint64_t>;
  TypeSwitch<Operation *>(&op)
      .Case([&](arith::ConstantOp constant) {
        Attribute value = constant.getValue();
        auto integer = dyn_cast<IntegerAttr>(value);
        APInt bits = integer ? integer.getValue() : cast<FloatAttr>(value).getValue().bitcastToAPInt();
        values[constant] = {Lanes(threads, bits.getZExtValue())};
      })
      .Case<ub::PoisonOp, LLVM::PoisonOp>([&](Operation *poison) {
        auto vector = dyn_cast<VectorType>(poison->getResult(0).getType());
        values[poison->getResult(0)] = std::vector<Lanes>(vector ? vector.getNumElements() : 1, Lanes(threads, 0xdead));
      })
      .Case([&](arith::AndIOp) { each(op, [](Operands x, unsigned) { return x[0] & x[1]; }); })
      .Case([&](arith::OrIOp) { each(op, [](Operands x, unsigned) { return x[0] | x[1]; }); })
      .Case([&](arith::XOrIOp) { each(op, [](Operands x, unsigned) { return x[0] ^ x[1]; }); })
      .Case([&](arith::AddIOp) { each(op, [](Operands x, unsigned) { return x[0] + x[1]; }); })
      .Case([&](arith::MulIOp) { each(op, [](Operands x, unsigned) { return x[0] * x[1]; }); })
      .Case([&](arith::ShLIOp) { each(op, [](Operands x, unsigned) { return x[0] << x[1]; }); })
      .Case([&](arith::ShRUIOp) { each(op, [](Operands x, unsigned) { return x[0] >> x[1]; }); })
      .Case<arith::ExtUIOp, arith::TruncIOp, arith::BitcastOp, arith::IndexCastOp>(
          [&](Operation *) { each(op, [](Operands x, unsigned) { return x[0]; }); })
      .Case([&](arith::SelectOp) { each(op, [](Operands x, unsigned) { return x[0] ? x[1] : x[2]; }); })
      .Case([&](math::CtPopOp) { each(op, [](Operands x, unsigned) { return llvm::popcount(x[0]); }); })
      .Case([&](arith::CmpIOp cmp) {
        unsigned width = widthOf(cmp.getLhs().getType());
        each(op, [&](Operands x, unsigned) { return compare(cmp.getPredicate(), x[0], x[1], width); });
      })
      .Case([&](gpu::ShuffleOp) { shuffle(op); })
      .Case([&](NVVM::ShflOp) { shuffle(op); })
      .Case([&](LLVM::GEPOp gep) {
        ASSERT_TRUE(gep.getElemType().isInteger(8));
        int32_t fixed = gep.getRawConstantIndices().front();
        each(op, [&](Operands x, unsigned) { return x[0] + (x.size() > 1 ? x[1] : fixed); });
      })
      .Case<LLVM::LoadOp, LLVM::StoreOp>([&](Operation *) { access(op); })
      .Case([&](LLVM::BitcastOp cast) { // The elements of a vector as one integer.
        auto vector = mlir::cast<VectorType>(cast.getArg().getType());
        unsigned width = widthOf(vector.getElementType());
        const std::vector<Lanes> &parts = values.find(cast.getArg())->second;
        Lanes word(threads);
        for (unsigned thread = 0; thread < threads; ++thread)
          for (unsigned i = 0; i < parts.size(); ++i)
            word[thread] |= truncated(parts[i][thread], width) << (i * width);
        values[cast] = {std::move(word)};
      })
      .Case([&](LLVM::InsertElementOp insert) {
        std::vector<Lanes> vector = values.find(insert.getVector())->second;
        vector[get(insert.getPosition()).front()] = get(insert.getValue());
        values[insert] = std::move(vector);
      })
      .Case([&](LLVM::ExtractElementOp extract) {
        Lanes element = values.find(extract.getVector())->second[get(extract.getPosition()).front()];
        values[extract] = {std::move(element)};
      })
      .Case([&](scf::IfOp branch) {
        std::vector<bool> outer = active;
        const Lanes condition = get(branch.getCondition());
        for (unsigned thread = 0; thread < threads; ++thread)
          active[thread] = outer[thread] && condition[thread];
        run(*branch.thenBlock());
        active = outer;
      })
      .Default([](Operation *other) { ADD_FAILURE() << "not known: " << other->getName().getStringRef().str(); });
}

} // namespace kpkg::test
