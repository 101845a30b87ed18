// Tests profiles of GPU launches with stand-ins for the driver and for CUPTI: time sources, and cleanup of both.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/device/cuda/CudaCall.h"
#include "test/runtime/device/cuda/fake_cupti.h"

#include <gmock/gmock.h>

using namespace kpkg;
using nlohmann::json;
using testing::HasSubstr;

namespace {

class CudaProfile : public kpkg::test::CudaCall {
protected:
  CudaProfile() {
    cupti = static_cast<FakeCupti *>(::dlsym(::dlopen(KPKG_TEST_FAKE_CUPTI, RTLD_NOW), "fakeCupti"));
    *cupti = {};
  }
  json profiled(uint32_t flags, int calls = 1, bool capturing = false) {
    EXPECT_EQ(kpkg_profile_start(flags), KPKG_OK);
    fake->capturing = capturing;
    for (int i = 0; i < calls; ++i)
      EXPECT_TRUE(scale(onDevice(x, {10, 64}), onDevice(y, {10, 64})));
    fake->capturing = 0;
    kpkg_string *text = nullptr;
    EXPECT_EQ(kpkg_profile_stop(&text), KPKG_OK);
    json record = json::parse(kpkg_string_data(text));
    kpkg_string_free(text);
    return record;
  }

  FakeCupti *cupti = nullptr;
};

TEST_F(CudaProfile, ByCupti) {
  json record = profiled(0, 3);
  EXPECT_EQ(record["device_times"], json({{"by", "cupti"}}));
  ASSERT_EQ(record["launches"].size(), 3u);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(record["launches"][i]["device_duration_ns"], 100 + 10 * i);
  int64_t first = record["launches"][0]["device_start_ns"], last = record["launches"][2]["device_start_ns"];
  EXPECT_GE(first, 0);
  EXPECT_EQ(last - first, 2000);
  EXPECT_EQ(fake->events, 0);
  EXPECT_EQ(cupti->depth, 0);
  EXPECT_EQ(cupti->enabled, 0u);
}

TEST_F(CudaProfile, ByEvents) {
  json record = profiled(KPKG_PROFILE_EVENTS);
  EXPECT_EQ(record["device_times"], json({{"by", "events"}, {"reason", ""}}));
  ASSERT_EQ(record["calls"].size(), 1u);
  ASSERT_EQ(record["launches"].size(), 1u);
  const json &call = record["calls"][0], &launch = record["launches"][0];
  EXPECT_EQ(call["op"], "test::scale");
  EXPECT_TRUE(call["ok"]);
  EXPECT_EQ(launch["device"], "cuda:0");
  EXPECT_THAT(launch["instance"].get<std::string>(), HasSubstr("vector sm_90a"));
  EXPECT_GE(launch["device_duration_ns"].get<int64_t>(), 0);
  EXPECT_GE(launch["start_ns"].get<uint64_t>(), call["start_ns"].get<uint64_t>());
  EXPECT_EQ(fake->events, 0); // all released
  EXPECT_EQ(cupti->pushes, 0);
}

TEST_F(CudaProfile, ByEventsWhereAnotherToolHasCupti) {
  cupti->hasSubscriber = 1;
  json record = profiled(0);
  EXPECT_EQ(record["device_times"]["by"], "events");
  EXPECT_THAT(record["device_times"]["reason"].get<std::string>(), HasSubstr("another tool uses CUPTI"));
  EXPECT_FALSE(record["launches"][0]["device_duration_ns"].is_null());
}

TEST_F(CudaProfile, CapturedLaunchesAreNotTimed) {
  ASSERT_TRUE(library->prewarm({KPKG_DEVICE_CUDA, 0}));
  // Events of a captured stream would become part of the graph.
  for (uint32_t flags : {0, int(KPKG_PROFILE_EVENTS)})
    EXPECT_TRUE(profiled(flags, 1, true)["launches"][0]["device_duration_ns"].is_null());
  EXPECT_EQ(cupti->pushes, 0);
}

TEST_F(CudaProfile, NothingIsRecordedOutside) {
  EXPECT_TRUE(scale(onDevice(x, {10, 64}), onDevice(y, {10, 64})));
  EXPECT_EQ(profiled(0, 0).dump(), R"({"calls":[],"device_times":null,"dropped":0,"launches":[]})");
  EXPECT_EQ(cupti->pushes, 0);
  EXPECT_EQ(cupti->enabled, 0u);
}

TEST_F(CudaProfile, UnknownFlagsAreRefused) { EXPECT_EQ(kpkg_profile_start(64), KPKG_ERROR_USE); }

} // namespace
