// Tests the codes of dtypes with a PyTorch that lacks the function of the newest one, as PyTorch 2.10 and 2.11 do.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/torch/DTypeCodes.h"
#include "runtime/torch/StableAbi.h"
#include <kpkg/kpkg.h>

#include <gtest/gtest.h>

extern "C" {
int32_t aoti_torch_device_type_cpu() { return 0; }
int32_t aoti_torch_device_type_cuda() { return 1; }
int32_t aoti_torch_dtype_float32() { return 6; }
int32_t aoti_torch_dtype_float8_e5m2() { return 23; }
}

namespace kpkg::torch_abi {
namespace {

TEST(DTypeCodesTest, FunctionsGiveTheCodes) {
  EXPECT_EQ(dtypeToTorch(KPKG_FLOAT32), 6);
  EXPECT_EQ(dtypeFromTorch(23), KPKG_FLOAT8_E5M2);
}

TEST(DTypeCodesTest, ExponentFloatsNeedNoFunction) {
  ASSERT_TRUE(aoti_torch_dtype_float8_e8m0fnu == nullptr);
  EXPECT_EQ(dtypeToTorch(KPKG_FLOAT8_E8M0FNU), 44);
  EXPECT_EQ(dtypeFromTorch(44), KPKG_FLOAT8_E8M0FNU);
}

TEST(DTypeCodesTest, OtherDTypesWithoutAFunctionHaveNoCode) {
  EXPECT_EQ(dtypeToTorch(KPKG_FLOAT64), -1);
  EXPECT_EQ(dtypeToTorch(KPKG_INT4), -1);
  EXPECT_EQ(dtypeFromTorch(45), KPKG_NO_DTYPE);
}

} // namespace
} // namespace kpkg::torch_abi
