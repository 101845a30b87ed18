// Tests which counter a launch gets, with a stand-in for the driver: streams, graph captures, and exhausted counters.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/Counters.h"
#include "test/runtime/device/cuda/CudaCall.h"

#include <gmock/gmock.h>

using namespace kpkg;
using testing::HasSubstr;

namespace {

struct Counters : test::CudaCall {
  /// Returns the counter with which a call on this stream launches its kernel.
  uint64_t launched(void *on) {
    stream = on;
    fake->wordCount = 15;
    auto made = scale(onDevice(x, {10, 64}), onDevice(y, {10, 64}));
    EXPECT_TRUE(made) << made.error().message;
    return fake->words[14];
  }
  void record(int number) { fake->capturing = number != 0, fake->recording = number; }

  char streams[8];
};

TEST_F(Counters, AreThoseOfStreamsAndOfRecordings) {
  manifest["instances"].back()["launch"]["counters"] = 4096;
  reload(manifest);
  uint64_t first = launched(&streams[0]), second = launched(&streams[1]);
  EXPECT_NE(first, second) << "they may run at the same time";
  EXPECT_EQ(launched(&streams[0]), first);
  record(7);
  uint64_t recorded = launched(&streams[0]);
  EXPECT_NE(recorded, first) << "the graph may be launched into any stream";
  EXPECT_NE(recorded, second);
  EXPECT_EQ(launched(&streams[0]), recorded) << "one follows the other in the graph";
  void (*forget)(void *) = fake->forget;
  void *kept = fake->kept;
  record(8);
  EXPECT_NE(launched(&streams[0]), recorded);
  record(0);
  EXPECT_EQ(launched(&streams[0]), first);
  forget(kept); // destroys the first graph
  record(9);
  EXPECT_LT(launched(&streams[0]), 5u);
  record(0);
}

TEST_F(Counters, AreGivenOutAnewOnceTheDeviceIsIdle) {
  cuda::DeviceScope scope(1);
  auto numberOf = [&](int i) {
    auto counter = cuda::counterFor(1, &streams[i], 3);
    EXPECT_TRUE(counter) << counter.error().message;
    return counter ? counter->number : 99;
  };
  EXPECT_EQ(numberOf(0), 0u);
  EXPECT_EQ(numberOf(1), 1u);
  record(1);
  EXPECT_EQ(numberOf(1), 2u);
  record(2);
  auto refused = cuda::counterFor(1, &streams[1], 3);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("all 3 counters"));
  record(0);
  EXPECT_EQ(fake->waits, 0);
  uint32_t third = numberOf(2);
  EXPECT_EQ(fake->waits, 1) << "the counters of streams are free once nothing runs";
  EXPECT_LT(third, 2u) << "that of the graph is not";
  EXPECT_NE(numberOf(3), third);
  EXPECT_EQ(fake->waits, 1);
}

TEST_F(Counters, OfKernelsWithFewerAreNotLost) {
  cuda::DeviceScope scope(2);
  auto numberOf = [&](int i, uint32_t count) {
    auto counter = cuda::counterFor(2, &streams[i], count);
    return counter ? counter->number : 99;
  };
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(numberOf(i, 3), uint32_t(i));
  record(1);
  EXPECT_EQ(numberOf(0, 4), 3u);
  fake->forget(fake->kept);
  EXPECT_EQ(numberOf(0, 3), 99u) << "the free one is beyond those of this kernel";
  EXPECT_EQ(numberOf(0, 4), 3u) << "and is still there for others";
  record(0);
}

TEST_F(Counters, AreNoCountersOfPackagesThatSaySomethingElse) {
  manifest["instances"].back()["launch"]["counters"] = -1;
  bytes = test::samplePackage(manifest);
  auto refused = Library::openMemory(bytes, "sample.kpkg");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("counters"));
}

} // namespace
