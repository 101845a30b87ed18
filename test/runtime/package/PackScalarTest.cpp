// Tests scalars as argument words, especially rounding to small float formats, and the text of prints.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/PlannedCall.h"
#include "runtime/package/PrintFormat.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace kpkg;
using package::packScalar;
using plan::DType;

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(PackScalar, KnownBits) {
  EXPECT_EQ(packScalar(1.0, DType::Float32), 0x3f800000);
  EXPECT_EQ(packScalar(-1.0, DType::Float64), std::bit_cast<int64_t>(-1.0));
  EXPECT_EQ(packScalar(1.0, DType::Float16), 0x3c00);
  EXPECT_EQ(packScalar(65504.0, DType::Float16), 0x7bff);
  EXPECT_EQ(packScalar(65520.0, DType::Float16), 0x7c00);
  EXPECT_EQ(packScalar(-infinity, DType::Float16), 0xfc00);
  EXPECT_EQ(packScalar(0x1p-24, DType::Float16), 1);
  EXPECT_EQ(packScalar(0x1p-25, DType::Float16), 0);
  EXPECT_EQ(packScalar(0x1.8p-24, DType::Float16), 2);
  EXPECT_EQ(packScalar(-0.0, DType::BFloat16), 0x8000);
  EXPECT_EQ(packScalar(std::nan(""), DType::BFloat16), 0x7fc0);
  EXPECT_EQ(packScalar(448.0, DType::Float8_e4m3fn), 0x7e);
  EXPECT_EQ(packScalar(1000.0, DType::Float8_e4m3fn), 0x7f);
  EXPECT_EQ(packScalar(57344.0, DType::Float8_e5m2), 0x7b);
  EXPECT_EQ(packScalar(1e6, DType::Float8_e5m2), 0x7c);
  EXPECT_EQ(packScalar(1.0, DType::Float8_e8m0fnu), 127);
  EXPECT_EQ(packScalar(-1.5, DType::Float8_e8m0fnu), 128);
  EXPECT_EQ(packScalar(0x1.7ffffep0, DType::Float8_e8m0fnu), 127);
  EXPECT_EQ(packScalar(0.0, DType::Float8_e8m0fnu), 0);
  EXPECT_EQ(packScalar(0x1p-127, DType::Float8_e8m0fnu), 0);
  EXPECT_EQ(packScalar(0x1.000004p-127, DType::Float8_e8m0fnu), 1);
  EXPECT_EQ(packScalar(0x1.8p127, DType::Float8_e8m0fnu), 255);
  EXPECT_EQ(packScalar(infinity, DType::Float8_e8m0fnu), 255);
  EXPECT_EQ(packScalar(std::nan(""), DType::Float8_e8m0fnu), 255);
  EXPECT_EQ(packScalar(int64_t(-3), DType::Int32), -3);
  EXPECT_EQ(packScalar(int64_t(3), DType::Float32), std::bit_cast<int32_t>(3.f));
  EXPECT_EQ(packScalar(int64_t(3), DType::Bool), 1);
}

/// Every float16 and bfloat16 value packs to itself, and the midpoint of adjacent values to the even one.
TEST(PackScalar, RoundsToNearestEven) {
  for (auto [dtype, exponentBits, mantissaBits] : {std::tuple{DType::Float16, 5, 10}, {DType::BFloat16, 8, 7}}) {
    int bias = (1 << (exponentBits - 1)) - 1;
    auto decode = [&](int bits) {
      int exponent = bits >> mantissaBits, mantissa = bits & ((1 << mantissaBits) - 1);
      return exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissaBits)
                           : std::ldexp(mantissa + (1 << mantissaBits), exponent - bias - mantissaBits);
    };
    int last = (((1 << exponentBits) - 1) << mantissaBits) - 1;
    for (int bits = 0; bits < last; ++bits) {
      double low = decode(bits), high = decode(bits + 1);
      ASSERT_EQ(packScalar(low, dtype), bits);
      ASSERT_EQ(packScalar((low + high) / 2, dtype), bits + (bits & 1)) << bits;
      ASSERT_EQ(packScalar(std::nextafter((low + high) / 2, infinity), dtype), bits + 1);
    }
  }
}

TEST(PrintFormat, ReplacesPlaceholdersByTheirTypes) {
  uint64_t words[] = {std::bit_cast<uint32_t>(1.5f), uint64_t(-3), 1, std::bit_cast<uint64_t>(0.1)};
  EXPECT_EQ(package::formatPrint("a {f32} b {} c {bool} d {f64}.", words), "a 1.5 b -3 c True d 0.1.");
  EXPECT_EQ(package::formatPrint("none", {}), "none");
  EXPECT_EQ(package::formatPrint("{i64}", words), "1069547520 -3 1 4591870180066957722");
  EXPECT_EQ(package::formatPrint("{ {i64}", {words, 1}), "1069547520");
}
