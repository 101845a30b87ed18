// Tests files of earlier versions in test/runtime/compat: each opens, verifies and gives its original results.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <kpkg/kpkg.hpp>

#include <algorithm>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

using namespace kpkg;
using testing::ElementsAre;

static bool runs(const std::string &target) {
  for (size_t i = 0; kpkg_cpu_target(i); ++i)
    if (target == kpkg_cpu_target(i))
      return true;
  return false;
}

class Compat : public testing::TestWithParam<const char *> {};

/// The files are of test/runtime/package/WriteSample.cpp at that version, with code for x86-64-v3. From 1.1 on,
/// `test::scale` says how PyTorch treats it; from 1.2 on, the file requires fields that its readers know.
TEST_P(Compat, SamplesOpenAndRun) {
  auto library = Library::open(std::string(KPKG_TEST_COMPAT "/") + GetParam());
  ASSERT_TRUE(library) << library.error().message;
  Status verified = library->verify();
  ASSERT_TRUE(verified) << verified.error().message;
  Op scale = library->op("test::scale").value();
  EXPECT_EQ(scale.schema(), "scale(Tensor x, float alpha=2.0) -> Tensor");
  float x[6] = {0, 1, 2, 3, 4, 5};
  Tensor input(x, DType::Float32, {2, 3});
  EXPECT_THAT(library->op("test::scale_transposed").value().infer({input}).value().front().shape(), ElementsAre(3, 2));
  if (!runs("x86-64-v3"))
    GTEST_SKIP() << "no x86-64-v3 here; only shapes were checked";
  Tensor y = std::move(library->op("test::scale_transposed").value().call({}, {input}).value().front());
  EXPECT_THAT(std::vector<float>(y.as<float>(), y.as<float>() + 6), ElementsAre(0, 6, 2, 8, 4, 10));
  Tensor numbers = std::move(library->op("test::number").value().call({}, {}, {{"n", 20}}).value().front());
  EXPECT_EQ(numbers.as<int64_t>()[19], 2);
  if (std::string(GetParam()) != "sample-1.0.kpkg")
    EXPECT_STREQ(scale.info().torch, R"({"autocast":{"cpu":"promote"},"fallback":"x * alpha"})");
}
INSTANTIATE_TEST_SUITE_P(Versions, Compat, testing::Values("sample-1.0.kpkg", "sample-1.1.kpkg", "sample-1.2.kpkg"));

TEST(CompatFiles, EachHasATest) {
  std::vector<std::string> files;
  for (const auto &entry : std::filesystem::directory_iterator(KPKG_TEST_COMPAT))
    files.push_back(entry.path().filename().string());
  std::sort(files.begin(), files.end());
  EXPECT_THAT(files, ElementsAre("sample-1.0.kpkg", "sample-1.1.kpkg", "sample-1.2.kpkg"));
}
