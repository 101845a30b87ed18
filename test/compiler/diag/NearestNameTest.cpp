// Tests suggestions for misspelt names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/NearestName.h"
#include <gtest/gtest.h>

using namespace kpkg::compiler;

TEST(NearestName, TakesTheOneWithFewestChanges) {
  std::vector<std::string> names = {"store", "load", "scatter", "shape", "stride", "dtype"};
  EXPECT_EQ(nearestName("sotre", names), "store");
  EXPECT_EQ(nearestName("stor", names), "store");
  EXPECT_EQ(nearestName("strides", names), "stride");
  EXPECT_EQ(nearestName("type", names), "dtype");
  EXPECT_EQ(nearestName("laod", names), "load");
}

TEST(NearestName, IsEmptyWhereNothingIsNear) {
  std::vector<std::string> names = {"store", "load", "i", "ab"};
  EXPECT_EQ(nearestName("softplus", names), "");
  EXPECT_EQ(nearestName("lode", names), "");
  EXPECT_EQ(nearestName("j", names), "");
  EXPECT_EQ(nearestName("ac", names), "");
  EXPECT_EQ(nearestName("", names), "");
  EXPECT_EQ(nearestName(std::string(10000, 'x'), {std::string(10000, 'y')}), "");
}
