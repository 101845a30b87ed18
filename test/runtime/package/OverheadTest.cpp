// Measures the host time of a repeated call with a kernel that does almost nothing.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/package/SamplePackage.h"

#include <kpkg/kpkg.hpp>

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>

using namespace kpkg;
using namespace kpkg::test;

static float result[1];

static kpkg_status giveResult(void *, const kpkg_allocation *, void **data) {
  *data = result;
  return KPKG_OK;
}

TEST(Timing, RepeatedCall) {
  std::string bytes = samplePackage();
  Library library = Library::openMemory(bytes, "sample").value();
  Op op = library.op("scale").value();
  float x[1] = {3};
  int64_t shape[2] = {1, 1};
  kpkg_tensor tensor = {x, shape, nullptr, 2, KPKG_FLOAT32, Cpu};
  kpkg_value arguments[2] = {};
  arguments[0].kind = KPKG_TENSOR;
  arguments[0].as.tensor = &tensor;
  arguments[1].kind = KPKG_FLOAT;
  arguments[1].as.real = 2;
  kpkg_result out;
  kpkg_call call = {};
  call.struct_size = sizeof call;
  call.arguments = arguments;
  call.argument_count = 2;
  call.results = &out;
  call.result_capacity = 1;
  call.allocate = giveResult;

  std::vector<double> samples;
  for (int i = 0; i < 2000; ++i) {
    auto start = std::chrono::steady_clock::now();
    for (int j = 0; j < 20; ++j)
      ASSERT_EQ(kpkg_op_call(op.get(), &call), KPKG_OK);
    samples.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / 20);
  }
  std::sort(samples.begin(), samples.end());
  double median = samples[samples.size() / 2];
  RecordProperty("median_ns", int(median));
  std::printf("repeated call: median %.0f ns, best %.0f ns\n", median, samples.front());
  EXPECT_EQ(result[0], 6);
  // The bound is generous because test machines are shared; the target is 1000 ns.
  EXPECT_LT(samples.front(), 3000);
}
