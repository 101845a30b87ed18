// Tests the meaning of an empty argument `precision`: the caller's default, a configuration, or nothing.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <kpkg/kpkg.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>

using namespace kpkg;
using testing::HasSubstr;

namespace {
constexpr const char *schema = "test::times(Tensor x, str precision=\"\") -> Tensor";

/// Records the precision with which an op was called.
class Precision : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(registry.setFallback(schema, [this](const kpkg_op *, kpkg_call &call) {
      seen = call.arguments[1].as.string;
      return kpkg_set_error(KPKG_ERROR_KERNEL, "seen");
    }));
    registry.setPolicy(Policy::Silent).value();
    op = registry.op("test::times").value().get();
  }

  std::string call(const char *precision, const char *argument = nullptr, size_t structSize = sizeof(kpkg_call)) {
    float number = 1;
    int64_t extent = 1;
    kpkg_tensor x = {};
    x.data = &number, x.dtype = KPKG_FLOAT32, x.rank = 1, x.shape = &extent, x.device = {KPKG_DEVICE_CPU, 0};
    kpkg_value values[2] = {};
    values[0].kind = KPKG_TENSOR, values[0].as.tensor = &x;
    if (argument)
      values[1].kind = KPKG_STRING, values[1].as.string = argument;
    kpkg_result result = {};
    kpkg_call made = {};
    made.struct_size = structSize;
    made.arguments = values, made.argument_count = 2;
    made.results = &result, made.result_capacity = 1;
    made.precision = precision;
    seen = "not called";
    EXPECT_NE(kpkg_op_call(op, &made), KPKG_OK);
    return seen;
  }

  Registry registry;
  const kpkg_op *op = nullptr;
  std::string seen;
};
} // namespace

TEST_F(Precision, IsTheCallersDefaultWhereTheArgumentIsEmpty) {
  EXPECT_EQ(call(nullptr), "");
  EXPECT_EQ(call("high"), "high");
  EXPECT_EQ(call("high", ""), "high");
  EXPECT_EQ(call("high", "highest"), "highest");
}

TEST_F(Precision, OfAConfigurationGoesBeforeThat) {
  KernelConfig config;
  config.precision = "medium";
  ASSERT_TRUE(registry.restrict("test::times", config));
  EXPECT_EQ(call("high"), "medium");
  EXPECT_EQ(call("high", "highest"), "highest");
  ASSERT_TRUE(registry.restrict("test::times", ""));
  EXPECT_EQ(call("high"), "high");
}

TEST_F(Precision, OfAConfigurationHasOneOfThreeNames) {
  Status status = registry.restrict("test::times", R"({"precision": "fast"})");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("precision 'fast', expected highest, high or medium"));
}

TEST_F(Precision, IsNotReadFromCallersThatDoNotKnowIt) {
  EXPECT_EQ(call("high", nullptr, offsetof(kpkg_call, precision)), "");
}
