// Tests rounding and the memory representation of narrow floats against LLVM's APFloat.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/sim/Number.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/APFloat.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace kpkg::sim;

namespace {
struct NarrowFloats : testing::Test {
  mlir::MLIRContext context;
  mlir::Builder builder{&context};
  std::vector<mlir::FloatType> types = {builder.getF16Type(), builder.getBF16Type(),
                                        mlir::Float8E4M3FNType::get(&context), mlir::Float8E5M2Type::get(&context),
                                        builder.getF32Type()};

  double viaAPFloat(double value, mlir::FloatType type) {
    llvm::APFloat number(value);
    bool inexact;
    number.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &inexact);
    number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &inexact);
    return number.convertToDouble();
  }
};

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

TEST_F(NarrowFloats, EveryBitPatternIsReadAndWrittenBack) {
  for (mlir::FloatType type : types) {
    if (type.isF32())
      continue;
    for (uint32_t bits = 0; bits < (1u << type.getWidth()); ++bits) {
      Cell cell = loadCell(reinterpret_cast<const char *>(&bits), type);
      llvm::APFloat number(type.getFloatSemantics(), llvm::APInt(type.getWidth(), bits));
      bool inexact;
      number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &inexact);
      ASSERT_TRUE(same(cell.f, number.convertToDouble())) << bits;
      uint32_t written = 0;
      storeCell(reinterpret_cast<char *>(&written), cell, type);
      if (!std::isnan(cell.f))
        ASSERT_EQ(written, bits);
      else
        ASSERT_TRUE(std::isnan(loadCell(reinterpret_cast<const char *>(&written), type).f));
    }
  }
}

TEST_F(NarrowFloats, RoundingIsToNearestEven) {
  std::mt19937_64 random(1);
  for (mlir::FloatType type : types)
    for (int i = 0; i < 20000; ++i) {
      double value = std::ldexp(static_cast<double>(random()) / 1e18 - 9, static_cast<int>(random() % 300) - 160);
      ASSERT_TRUE(same(roundTo(value, type), viaAPFloat(value, type))) << value;
    }
}

TEST_F(NarrowFloats, MidpointsBetweenNeighboursGoToTheEvenOne) {
  for (mlir::FloatType type : types) {
    if (type.isF32())
      continue;
    for (uint32_t bits = 0; bits + 1 < (1u << (type.getWidth() - 1)); ++bits) {
      uint32_t next = bits + 1;
      double low = loadCell(reinterpret_cast<const char *>(&bits), type).f;
      double high = loadCell(reinterpret_cast<const char *>(&next), type).f;
      if (!std::isfinite(low) || !std::isfinite(high))
        continue;
      for (double value :
           {(low + high) / 2, std::nextafter((low + high) / 2, low), std::nextafter((low + high) / 2, high)})
        ASSERT_TRUE(same(roundTo(-value, type), viaAPFloat(-value, type))) << value;
    }
  }
}

TEST_F(NarrowFloats, TooLargeBecomesInfinityOrNaN) {
  EXPECT_EQ(roundTo(65519.0, builder.getF16Type()), 65504.0);
  EXPECT_EQ(roundTo(65520.0, builder.getF16Type()), INFINITY);
  EXPECT_EQ(roundTo(464.0, mlir::Float8E4M3FNType::get(&context)), 448.0);
  EXPECT_TRUE(std::isnan(roundTo(465.0, mlir::Float8E4M3FNType::get(&context))));
}

TEST_F(NarrowFloats, IntegersWrapAndKeepTheirSign) {
  EXPECT_EQ(wrapTo(200, builder.getI8Type()), -56);
  EXPECT_EQ(unsignedOf(-56, builder.getI8Type()), 200u);
  EXPECT_EQ(wrapTo(1, builder.getI1Type()), -1);
  EXPECT_EQ(wrapTo(INT64_MIN, builder.getIndexType()), INT64_MIN);
  char byte = 7; // Any non-zero byte is true.
  EXPECT_EQ(loadCell(&byte, builder.getI1Type()).i, -1);
  storeCell(&byte, Cell{.i = -1}, builder.getI1Type());
  EXPECT_EQ(byte, 1);
}
} // namespace
