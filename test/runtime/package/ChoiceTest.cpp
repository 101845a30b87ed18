// Tests which instance a launch gets by its parameters, with few values that are indexed and with many that are not.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Choice.h"
#include "runtime/package/Devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kpkg;
using namespace kpkg::package;
using testing::HasSubstr;

namespace {
/// A kernel `k` with the parameters MODE, one of two texts, and N.
///
/// It has instances for all multiples of 8 up to 8 * GetParam(), the greatest first.
class ChoiceAmong : public testing::TestWithParam<int> {
protected:
  void SetUp() override {
    Kernel &kernel = tables.kernels.emplace_back();
    kernel.name = "k";
    kernel.params = {{"MODE", ParamValue::Kind::String}, {"N", ParamValue::Kind::Int}};
    for (int n = GetParam(); n > 0; --n)
      for (const char *mode : {"plain", "fast"}) {
        Instance &instance = tables.instances.emplace_back();
        instance.params.resize(2);
        instance.params[0].kind = ParamValue::Kind::String;
        instance.params[0].text = mode;
        instance.params[1].integer = 8 * n;
        instance.target = hostDevice().targets().front();
        instance.label = mode + (" " + std::to_string(8 * n));
        kernel.instances.push_back(uint32_t(tables.instances.size() - 1));
      }
    kernel.indexValues(tables.instances);
    tables.kernelByName["k"] = 0;
  }

  std::string choose(const char *mode, int64_t n, bool atLeast) {
    plan::LaunchStep launch;
    launch.kernel = "k";
    launch.params.resize(2);
    launch.params[0].name = "MODE";
    launch.params[0].kind = plan::LaunchParam::Kind::String;
    launch.params[0].string = mode;
    launch.params[1].name = "N";
    launch.params[1].integer = n;
    launch.params[1].atLeast = atLeast;
    auto chosen = chooseInstance({tables, launch, op, device, {}});
    ChoiceReport report;
    auto explained = chooseInstance({tables, launch, op, device, {}}, &report);
    EXPECT_EQ(chosen.ok(), explained.ok());
    EXPECT_EQ(report.verdicts.size(), tables.instances.size());
    if (chosen && explained) {
      EXPECT_EQ(*chosen, *explained);
    }
    return chosen ? (*chosen)->label : chosen.error().message;
  }

  Tables tables;
  std::string op = "test::op";
  const device::Device &device = hostDevice();
};
} // namespace

TEST_P(ChoiceAmong, TakesTheExactValue) { EXPECT_EQ(choose("fast", 16, false), "fast 16"); }

TEST_P(ChoiceAmong, TakesTheLeastThatIsEnough) {
  EXPECT_EQ(choose("plain", 9, true), "plain 16");
  EXPECT_EQ(choose("plain", -1, true), "plain 8");
}

TEST_P(ChoiceAmong, NamesTheValueThatNoneHas) {
  EXPECT_THAT(choose("slow", 8, false), HasSubstr(R"(MODE = "slow" is not supported by test::op ("plain", "fast"))"));
  EXPECT_THAT(choose("fast", 12, false), HasSubstr("N = 12 is not supported"));
  EXPECT_THAT(choose("fast", 8 * GetParam() + 1, true), HasSubstr("is more than test::op supports"));
}

TEST_P(ChoiceAmong, IndexesAsManyValuesAsAWordHasBits) {
  const Kernel &kernel = tables.kernels.front();
  EXPECT_EQ(kernel.values[0].size(), 2u);
  EXPECT_EQ(kernel.values[1].size(), GetParam() <= int(mostIndexedValues) ? size_t(GetParam()) : 0u);
}

INSTANTIATE_TEST_SUITE_P(Values, ChoiceAmong, testing::Values(2, 64, 65, 300));
