// Tests kernel times by CUPTI with a stand-in: reading of buffers, identifiers, other tools.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/Activity.h"
#include "test/runtime/device/cuda/fake_cupti.h"

#include <cstdlib>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kpkg::cuda;
using testing::HasSubstr;

namespace {

class Activity : public testing::Test {
protected:
  static void SetUpTestSuite() { setenv("KPKG_CUPTI", KPKG_TEST_FAKE_CUPTI, 1); }

  Activity() {
    fake = static_cast<FakeCupti *>(::dlsym(::dlopen(KPKG_TEST_FAKE_CUPTI, RTLD_NOW), "fakeCupti"));
    *fake = {};
  }
  void run(uint64_t identifier) {
    ActivityScope scope(identifier);
    EXPECT_EQ(fake->depth, 1);
  }

  FakeCupti *fake = nullptr;
};

constexpr uint64_t kinds = 1ull << 4 | 1ull << 39 | 1ull << 10;

TEST_F(Activity, KernelsByIdentifier) {
  ASSERT_TRUE(startActivity());
  EXPECT_EQ(fake->enabled, kinds);
  run(11);
  run(12);
  run(11); // the times of two kernels of one launch are added
  EXPECT_EQ(fake->depth, 0);
  auto times = stopActivity();
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[11].startNs, 0);
  EXPECT_EQ(times[11].durationNs, 100 + 120);
  EXPECT_EQ(times[12].startNs, 1000);
  EXPECT_EQ(times[12].durationNs, 110);
  EXPECT_EQ(fake->enabled, 0u);
  EXPECT_EQ(fake->subscriptions, 0);
  EXPECT_EQ(fake->buffers, 0);
}

TEST_F(Activity, ARecordingBeginsEmpty) {
  ASSERT_TRUE(startActivity());
  run(21);
  EXPECT_EQ(stopActivity().size(), 1u);
  fake->pushes = 0;
  ASSERT_TRUE(startActivity());
  EXPECT_TRUE(stopActivity().empty());
}

TEST_F(Activity, AnotherToolIsLeftAlone) {
  fake->hasSubscriber = 1;
  auto status = startActivity();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("another tool uses CUPTI"));
  EXPECT_EQ(fake->enabled, 0u);
}

TEST_F(Activity, AToolThatComesLaterKeepsItsKinds) {
  ASSERT_TRUE(startActivity());
  run(31);
  fake->hasSubscriber = 1;
  fake->stealsBuffers = 1;
  EXPECT_TRUE(stopActivity().empty());
  EXPECT_EQ(fake->enabled, kinds);
}

TEST_F(Activity, AKindThatIsRefused) {
  fake->failEnable = 10;
  auto status = startActivity();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("cuptiActivityEnable failed: CUPTI_ERROR_INVALID_KIND"));
  EXPECT_EQ(fake->enabled, 0u);
}

} // namespace
