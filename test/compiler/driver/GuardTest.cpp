// Checks that failures that would end the compiler's process become messages.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Guard.h"
#include "llvm/Support/Error.h"
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

using namespace kpkg::compiler;
using testing::HasSubstr;

TEST(Guard, BodiesThatReturnSayNothing) {
  bool ran = false;
  EXPECT_FALSE(failureOf([&] { ran = true; }));
  EXPECT_TRUE(ran);
}

TEST(Guard, AbortsAreMessages) {
  std::optional<std::string> failure =
      failureOf([] { llvm::cantFail(llvm::createStringError("nothing holds this tile")); });
  ASSERT_TRUE(failure);
  EXPECT_THAT(*failure, HasSubstr("the compiler failed: SIGABRT, an assumption did not hold"));
  EXPECT_THAT(*failure, HasSubstr("@schedule(warps=)"));
  EXPECT_THAT(*failure, HasSubstr("report"));
}

TEST(Guard, EachThreadHasItsOwn) {
  std::vector<std::optional<std::string>> failures(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < failures.size(); ++i)
    threads.emplace_back([&, i] {
      failures[i] = failureOf([&] {
        if (i % 2 == 1)
          std::abort();
      });
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t i = 0; i < failures.size(); ++i)
    EXPECT_EQ(failures[i].has_value(), i % 2 == 1) << i;
}

TEST(Guard, GuardsNest) {
  std::optional<std::string> inner, outer = failureOf([&] { inner = failureOf([] { std::abort(); }); });
  EXPECT_TRUE(inner);
  EXPECT_FALSE(outer);
}
