// Emits addresses and vector accesses in shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/SharedMemory.h"
#include "dialect/lower/nvvm/Words.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kpkg::lower::nvvm {
using namespace mlir;
using layout::SharedAccess;

SharedAddresses::SharedAddresses(ImplicitLocOpBuilder &builder, const SharedAccess &access, Value base,
                                 const ThreadBits &thread)
    : builder(builder), base(base) {
  for (auto [bits, images] : {std::pair(thread.lane, ArrayRef<uint32_t>(access.laneBases)),
                              std::pair(thread.warp, ArrayRef<uint32_t>(access.warpBases)),
                              std::pair(thread.block, ArrayRef<uint32_t>(access.blockBases))}) {
    threadOffset = xorOf(builder, threadOffset, xorOfImages(builder, bits, images));
    for (uint32_t image : images)
      reached |= image;
  }
}

Value SharedAddresses::of(const SharedAccess::Vector &vector) {
  Value &start = starts[vector.xorOffset & reached];
  if (!start) {
    Value offset = threadOffset;
    if (vector.xorOffset & reached)
      offset = arith::XOrIOp::create(builder, offset, constantOf(builder, vector.xorOffset & reached));
    start =
        offset ? LLVM::GEPOp::create(builder, base.getType(), builder.getI8Type(), base, ArrayRef<LLVM::GEPArg>(offset))
                     .getResult()
               : base;
  }
  int64_t constant = (vector.xorOffset & ~reached) + vector.addOffset;
  if (constant == 0)
    return start;
  return LLVM::GEPOp::create(builder, base.getType(), builder.getI8Type(), start,
                             ArrayRef<LLVM::GEPArg>(static_cast<int32_t>(constant)));
}

namespace {
/// Returns the type in which a vector is accessed: 32-bit words, 64-bit integers, or one narrow integer.
Type carrierOf(ImplicitLocOpBuilder &builder, unsigned elementBytes, unsigned vectorBytes) {
  unsigned unit = std::min(std::max(elementBytes, 4u), vectorBytes);
  Type integer = builder.getIntegerType(8 * unit);
  return unit == vectorBytes ? integer : VectorType::get({vectorBytes / unit}, integer);
}

/// Packs the elements into integers of the carrier's element type.
SmallVector<Value> unitsOf(ImplicitLocOpBuilder &builder, ArrayRef<Value> elements) {
  unsigned bytes = bytesOf(elements.front().getType());
  if (bytes == 8 || bytes * elements.size() < 4) {
    // Fewer elements than fill a word: one element, or two of a byte.
    SmallVector<Value> units;
    for (Value element : elements)
      units.push_back(bitsOfElement(builder, element));
    if (bytes == 8 || elements.size() == 1)
      return units;
    Type narrow = builder.getIntegerType(8 * bytes * elements.size());
    return {arith::TruncIOp::create(builder, narrow, packWords(builder, elements).front())};
  }
  Type type = elements.front().getType();
  if ((type.isBF16() || type.isF16()) && elements.size() % 2 == 0) {
    SmallVector<Value> units;
    for (size_t i = 0; i < elements.size(); i += 2)
      units.push_back(pairOfNarrowFloats(builder, elements[i], elements[i + 1]));
    return units;
  }
  return packWords(builder, elements);
}
} // namespace

void storeShared(ImplicitLocOpBuilder &builder, const SharedAccess &access, Value base, const ThreadBits &thread,
                 ValueRange registers, Value predicate) {
  OpBuilder::InsertionGuard guard(builder);
  if (predicate) {
    auto branch = scf::IfOp::create(builder, predicate, /*withElseRegion=*/false);
    builder.setInsertionPointToStart(branch.thenBlock());
  }
  SharedAddresses addresses(builder, access, base, thread);
  for (const SharedAccess::Vector &vector : access.vectors) {
    SmallVector<Value> elements;
    for (unsigned reg : vector.registers)
      elements.push_back(registers[reg]);
    Type carrier = carrierOf(builder, bytesOf(elements.front().getType()), access.vectorBytes);
    SmallVector<Value> units = unitsOf(builder, elements);
    Value value = units.front();
    if (isa<VectorType>(carrier)) {
      value = LLVM::PoisonOp::create(builder, carrier);
      for (auto [index, unit] : llvm::enumerate(units))
        value = LLVM::InsertElementOp::create(builder, value, unit, constantOf(builder, index));
    }
    LLVM::StoreOp::create(builder, value, addresses.of(vector), access.vectorBytes);
  }
}

SmallVector<Value> loadShared(ImplicitLocOpBuilder &builder, const SharedAccess &access, Value base,
                              const ThreadBits &thread, Type element) {
  SharedAddresses addresses(builder, access, base, thread);
  unsigned bytes = bytesOf(element);
  Type carrier = carrierOf(builder, bytes, access.vectorBytes), i32 = builder.getI32Type();
  // Issues all loads before their first use.
  SmallVector<Value> loaded;
  size_t count = 0;
  for (const SharedAccess::Vector &vector : access.vectors) {
    loaded.push_back(LLVM::LoadOp::create(builder, carrier, addresses.of(vector), access.vectorBytes));
    count += vector.registers.size();
  }
  SmallVector<Value> registers(count);
  for (auto [vector, value] : llvm::zip_equal(access.vectors, loaded)) {
    SmallVector<Value> units, elements;
    if (auto type = dyn_cast<VectorType>(carrier))
      for (int64_t index = 0; index < type.getNumElements(); ++index)
        units.push_back(LLVM::ExtractElementOp::create(builder, value, constantOf(builder, index)));
    else
      units.push_back(value);
    if (bytes == 8 || access.vectorBytes == bytes) {
      for (Value unit : units)
        elements.push_back(elementOfBits(builder, unit, element));
    } else {
      if (access.vectorBytes < 4)
        units.front() = arith::ExtUIOp::create(builder, i32, units.front());
      elements = unpackWords(builder, units, element, vector.registers.size());
    }
    for (auto [reg, piece] : llvm::zip_equal(vector.registers, elements))
      registers[reg] = piece;
  }
  return registers;
}

Value isFirstReplica(ImplicitLocOpBuilder &builder, const ThreadBits &thread, unsigned laneMask, unsigned warpMask) {
  Value bits;
  for (auto [part, mask] : {std::pair(thread.lane, laneMask), std::pair(thread.warp, warpMask)})
    if (mask) {
      Value masked = arith::AndIOp::create(builder, part, constantOf(builder, mask));
      bits = bits ? Value(arith::OrIOp::create(builder, bits, masked)) : masked;
    }
  if (!bits)
    return {};
  return arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, bits, constantOf(builder, 0));
}
} // namespace kpkg::lower::nvvm
