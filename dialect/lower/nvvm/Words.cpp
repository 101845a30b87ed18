// Packs and unpacks elements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/Words.h"
#include "dialect/lower/nvvm/ThreadBits.h"
#include "dialect/tile/ir/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace kpkg::lower::nvvm {
using namespace mlir;

unsigned bytesOf(Type element) { return unsigned(tile::elementBytes(element)); }

Value bitsOfElement(ImplicitLocOpBuilder &builder, Value element) {
  Type type = element.getType(), integer = builder.getIntegerType(8 * bytesOf(type));
  if (isa<IndexType>(type))
    return arith::IndexCastOp::create(builder, integer, element);
  if (isa<FloatType>(type))
    return arith::BitcastOp::create(builder, integer, element);
  if (type != integer)
    return arith::ExtUIOp::create(builder, integer, element);
  return element;
}

Value elementOfBits(ImplicitLocOpBuilder &builder, Value bits, Type element) {
  if (isa<IndexType>(element))
    return arith::IndexCastOp::create(builder, element, bits);
  if (isa<FloatType>(element))
    return arith::BitcastOp::create(builder, element, bits);
  if (bits.getType() != element)
    return arith::TruncIOp::create(builder, element, bits);
  return bits;
}

SmallVector<Value> packWords(ImplicitLocOpBuilder &builder, ValueRange elements) {
  SmallVector<Value> words;
  Type i32 = builder.getI32Type();
  unsigned bytes = bytesOf(elements.front().getType());
  if (bytes == 8) {
    for (Value element : elements) {
      Value bits = bitsOfElement(builder, element);
      Value shift = arith::ConstantOp::create(builder, builder.getI64IntegerAttr(32));
      words.push_back(arith::TruncIOp::create(builder, i32, bits));
      words.push_back(arith::TruncIOp::create(builder, i32, arith::ShRUIOp::create(builder, bits, shift)));
    }
    return words;
  }
  unsigned perWord = 4 / bytes;
  Type element = elements.front().getType();
  for (unsigned first = 0; first < elements.size(); first += perWord) {
    if ((element.isBF16() || element.isF16()) && first + 1 < elements.size()) {
      words.push_back(pairOfNarrowFloats(builder, elements[first], elements[first + 1]));
      continue;
    }
    Value word;
    for (unsigned i = 0; i < perWord && first + i < elements.size(); ++i) {
      Value bits = bitsOfElement(builder, elements[first + i]);
      if (bits.getType() != i32)
        bits = arith::ExtUIOp::create(builder, i32, bits);
      if (i != 0)
        bits = arith::ShLIOp::create(builder, bits, constantOf(builder, 8 * bytes * i));
      word = word ? Value(arith::OrIOp::create(builder, word, bits)) : bits;
    }
    words.push_back(word);
  }
  return words;
}

SmallVector<Value> unpackWords(ImplicitLocOpBuilder &builder, ValueRange words, Type element, unsigned count) {
  SmallVector<Value> elements;
  unsigned bytes = bytesOf(element);
  for (unsigned i = 0; i < count; ++i) {
    Value bits;
    if (bytes == 8) {
      Type i64 = builder.getI64Type();
      Value low = arith::ExtUIOp::create(builder, i64, words[2 * i]),
            high = arith::ExtUIOp::create(builder, i64, words[2 * i + 1]);
      Value shift = arith::ConstantOp::create(builder, builder.getI64IntegerAttr(32));
      bits = arith::OrIOp::create(builder, low, arith::ShLIOp::create(builder, high, shift));
    } else {
      unsigned perWord = 4 / bytes;
      bits = words[i / perWord];
      if (i % perWord != 0)
        bits = arith::ShRUIOp::create(builder, bits, constantOf(builder, 8 * bytes * (i % perWord)));
      if (bytes != 4)
        bits = arith::TruncIOp::create(builder, builder.getIntegerType(8 * bytes), bits);
    }
    elements.push_back(elementOfBits(builder, bits, element));
  }
  return elements;
}
Value pairOfNarrowFloats(ImplicitLocOpBuilder &builder, Value low, Value high) {
  Value pair = LLVM::PoisonOp::create(builder, VectorType::get(2, low.getType()));
  pair = LLVM::InsertElementOp::create(builder, pair, low, constantOf(builder, 0));
  pair = LLVM::InsertElementOp::create(builder, pair, high, constantOf(builder, 1));
  return LLVM::BitcastOp::create(builder, builder.getI32Type(), pair);
}

unsigned wordBytesOf(unsigned elementBytes, unsigned elements) {
  return std::min(std::max(elementBytes, 4u), elementBytes * elements);
}

SmallVector<Value> packElements(ImplicitLocOpBuilder &builder, ValueRange elements, unsigned wordBytes) {
  Type element = elements.front().getType();
  SmallVector<Value> words;
  if (wordBytes == 4 && (element.isBF16() || element.isF16())) {
    for (size_t i = 0; i < elements.size(); i += 2)
      words.push_back(pairOfNarrowFloats(builder, elements[i], elements[i + 1]));
    return words;
  }
  if (wordBytes == 4 && bytesOf(element) <= 4)
    return packWords(builder, elements);
  for (Value value : elements) {
    Value bits = bitsOfElement(builder, value);
    if (bits.getType().getIntOrFloatBitWidth() < 16)
      bits = arith::ExtUIOp::create(builder, builder.getI16Type(), bits);
    words.push_back(bits);
  }
  return words;
}

} // namespace kpkg::lower::nvvm
