// Emits unpacked words: fields become numbers in the thread that holds their word, two with each instruction.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// 128 in bf16 and 1024 in f16 have units of 1 in the last place, so an integer in their lowest bits adds itself. One
// logical op puts two fields that are 16 bits apart there. A subtraction leaves the numbers. See Kim, Henry, Fahim and
// Awadalla, "Who Says Elephants Can't Run", 2022, section 4.
//
// Floats of 4 bits get their exponent and mantissa into those of a wider float, whose bias is larger. A multiplication
// corrects the exponent and normalises subnormals.
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/Words.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <cmath>

using namespace mlir;

namespace kpkg::lower::nvvm {
namespace {
constexpr int64_t kWordBits = 32, kHalfBits = 16;

/// The fields of words of 32 bits.
class Fields {
public:
  Fields(ImplicitLocOpBuilder &builder, tile::UnpackOp op)
      : builder(builder), bits(op.getBits()), isSigned(op.getIsSigned()), isFloat(op.getIsFloat()),
        element(cast<RankedTensorType>(op.getType()).getElementType()) {}

  /// Returns the numbers in the lowest `count` fields of a word.
  SmallVector<Value> of(Value word, int64_t count) {
    return element.isInteger(8) ? integers(word, count) : floats(word, count);
  }

private:
  SmallVector<Value> integers(Value word, int64_t count) {
    SmallVector<Value> numbers;
    for (int64_t i = 0; i < count; ++i) {
      Value number;
      if (isSigned) {
        Value high = arith::ShLIOp::create(builder, word, constantOf(builder, kWordBits - bits * (i + 1)));
        number = arith::ShRSIOp::create(builder, high, constantOf(builder, kWordBits - bits));
      } else {
        number = arith::AndIOp::create(builder, shifted(word, i), constantOf(builder, (1 << bits) - 1));
      }
      numbers.push_back(arith::TruncIOp::create(builder, builder.getI8Type(), number));
    }
    return numbers;
  }

  SmallVector<Value> floats(Value word, int64_t count) {
    SmallVector<Value> numbers(count);
    const int64_t ofHalf = kHalfBits / bits;
    for (int64_t i = 0; i < std::min(ofHalf, count); ++i) {
      Value pair = isFloat ? pairOfFloats(word, i) : pairOf(shifted(word, i));
      for (int64_t half : {0, 1})
        if (int64_t field = i + half * ofHalf; field < count)
          numbers[field] = half == 0 ? low(pair) : high(pair);
    }
    return numbers;
  }

  /// The type in which pairs are computed.
  Type narrowType() { return element.isF16() ? Type(builder.getF16Type()) : Type(builder.getBF16Type()); }
  Value twice(int64_t half) { return constantOf(builder, half << kHalfBits | half); }
  Value splatOf(VectorType pairType, double value) {
    auto number = builder.getFloatAttr(pairType.getElementType(), value);
    return arith::ConstantOp::create(builder, DenseElementsAttr::get(pairType, Attribute(number)));
  }

  /// Returns the floats in field `field` of both halves, as a pair of narrow floats.
  Value pairOfFloats(Value word, int64_t field) {
    const int64_t mantissaBits = element.isF16() ? 10 : 7, bias = element.isF16() ? 15 : 127;
    constexpr int64_t fieldBias = 1, fieldMantissaBits = 1;
    const int64_t upwards = mantissaBits - fieldMantissaBits - field * bits;
    Value magnitude = arith::AndIOp::create(builder, shiftedUp(word, upwards),
                                            twice(int64_t(0b111) << (mantissaBits - fieldMantissaBits)));
    Value sign =
        arith::AndIOp::create(builder, shiftedUp(word, kHalfBits - (field + 1) * bits), twice(1 << (kHalfBits - 1)));
    auto pairType = VectorType::get(2, narrowType());
    Value pair = LLVM::BitcastOp::create(builder, pairType, arith::OrIOp::create(builder, magnitude, sign));
    return arith::MulFOp::create(builder, pair, splatOf(pairType, std::ldexp(1.0, int(bias - fieldBias))));
  }

  /// Returns the numbers in the lowest fields of both halves, as a pair of narrow floats.
  Value pairOf(Value word) {
    const int64_t bias = element.isF16() ? 0x6400 : 0x4300, unit = element.isF16() ? 1024 : 128;
    const int64_t mask = (1 << bits) - 1, sign = isSigned ? 1 << (bits - 1) : 0;
    Value own = arith::AndIOp::create(builder, word, twice(mask));
    Value biased = arith::XOrIOp::create(builder, own, twice(bias | sign));
    auto pairType = VectorType::get(2, narrowType());
    Value pair = LLVM::BitcastOp::create(builder, pairType, biased);
    return arith::SubFOp::create(builder, pair, splatOf(pairType, double(unit + sign)));
  }

  Value low(Value pair) {
    if (element.isF32())
      return asF32(arith::ShLIOp::create(builder, bitsOf(pair), constantOf(builder, kHalfBits)));
    return LLVM::ExtractElementOp::create(builder, pair, constantOf(builder, 0));
  }
  Value high(Value pair) {
    if (element.isF32())
      return asF32(arith::AndIOp::create(builder, bitsOf(pair), constantOf(builder, int64_t(0xffff0000))));
    return LLVM::ExtractElementOp::create(builder, pair, constantOf(builder, 1));
  }
  Value bitsOf(Value pair) { return LLVM::BitcastOp::create(builder, builder.getI32Type(), pair); }
  /// bf16 is the upper half of f32.
  Value asF32(Value word) { return arith::BitcastOp::create(builder, element, word); }

  Value shifted(Value word, int64_t field) {
    return field == 0 ? word : arith::ShRUIOp::create(builder, word, constantOf(builder, field * bits)).getResult();
  }

  /// Shifts towards the highest bit; downwards if `count` is negative.
  Value shiftedUp(Value word, int64_t count) {
    if (count > 0)
      return arith::ShLIOp::create(builder, word, constantOf(builder, count));
    return count == 0 ? word : arith::ShRUIOp::create(builder, word, constantOf(builder, -count)).getResult();
  }

  ImplicitLocOpBuilder &builder;
  const int64_t bits;
  const bool isSigned, isFloat;
  const Type element;
};
} // namespace

LogicalResult Emitter::emitUnpack(tile::UnpackOp op) {
  const layout::Layout &words = kgpu::layoutOf(op.getValue()), &layout = kgpu::layoutOf(op.getResult());
  const unsigned along = words.rank() - 1;
  const int64_t bits = op.getBits(), count = op.getFields();
  ValueRange held = registersOf(op.getValue());
  const int64_t width = held.front().getType().getIntOrFloatBitWidth();
  Fields fields(builder, op);
  // Narrow words that are adjacent in a row share a word of 32 bits, as they do in memory. Wide ones consist of two.
  SmallVector<SmallVector<Value>> numbers(held.size());
  for (ArrayRef<unsigned> group : words.vectors(along, unsigned(std::max<int64_t>(kWordBits / width, 1)))) {
    SmallVector<Value> together;
    for (unsigned reg : group)
      together.push_back(held[reg]);
    SmallVector<Value> all;
    for (Value word : packWords(builder, together))
      llvm::append_range(all, fields.of(word, std::min<int64_t>(kWordBits, width * int64_t(group.size())) / bits));
    for (auto [i, reg] : llvm::enumerate(group))
      numbers[reg].assign(all.begin() + int64_t(i) * count, all.begin() + (int64_t(i) + 1) * count);
  }
  TileRegisters values;
  for (unsigned reg = 0; reg < layout.registers(); ++reg) {
    layout::Coordinates at = layout.coordinates({reg, 0, 0, 0});
    int64_t field = at[along] % count;
    at[along] /= count;
    std::optional<unsigned> word = words.registerOf(at, 0);
    if (!word)
      return op.emitOpError("needs words of other threads: its layouts do not fit together");
    values.push_back(numbers[*word][field]);
  }
  define(op, std::move(values));
  return success();
}

} // namespace kpkg::lower::nvvm
