// Tests tensor maps of convolution windows: their corners, limits of the TMA, and refused manifests.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/TensorMap.h"
#include "runtime/package/Windows.h"
#include "test/runtime/device/cuda/fake_driver.h"
#include "test/runtime/package/SamplePackage.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kpkg/kpkg.hpp>

using namespace kpkg;
using namespace kpkg::package;
using nlohmann::json;
using testing::HasSubstr;

namespace {

struct Extent {
  int64_t extent, taps, count, stride, start, step;
};

/// A launch whose argument 0 is an image with these extents and 64 channels.
///
/// Argument 1 has the filter extents; integers follow.
struct WindowLaunch {
  TensorMap map;
  plan::LaunchStep step;

  explicit WindowLaunch(std::vector<Extent> extents) {
    plan::LaunchArg images, taps;
    images.view.buffer = taps.view.buffer = 0;
    images.view.rank = int32_t(extents.size()) + 2, taps.view.rank = int32_t(extents.size());
    images.view.shape[0] = 2, images.view.shape[extents.size() + 1] = 64;
    map.box.assign(extents.size() + 2, 1);
    map.box.front() = 128, map.box.back() = 64;
    map.unit = images.view.rank - 1;
    std::vector<plan::LaunchArg> numbers;
    auto number = [&](int64_t value) {
      plan::LaunchArg &arg = numbers.emplace_back();
      arg.kind = plan::LaunchArg::Kind::Int, arg.integer = value;
      return int32_t(numbers.size()) + 1;
    };
    for (size_t i = 0; i < extents.size(); ++i) {
      const Extent &e = extents[i];
      images.view.shape[i + 1] = e.extent, taps.view.shape[i] = e.taps;
      manifest::Window &window = map.window ? *map.window : map.window.emplace();
      window.counts.push_back(number(e.count));
      window.strides.push_back(number(e.stride));
      window.starts.push_back(number(e.start));
      window.steps.push_back(number(e.step));
      window.taps.push_back({1, int32_t(i)});
    }
    step.args = {images, taps};
    step.args.insert(step.args.end(), numbers.begin(), numbers.end());
  }
  std::string refusal() const { return unmappableWindow(map, step, cuda::tensorMapLimits); }
};

TEST(WindowMaps, MatricesHaveNoWindows) {
  // Limits of windows divide by the rank minus two, so that a matrix map must not compute them.
  WindowLaunch matrix({});
  ASSERT_EQ(matrix.map.box.size(), 2u);
  EXPECT_EQ(matrix.refusal(), "");
}

TEST(WindowMaps, CornersFollowPaddingAndLengths) {
  // Three taps with padding 1: windows end at the end of the image.
  WindowLaunch same({{56, 3, 56, 1, -1, 1}, {28, 3, 28, 1, -1, 1}});
  ASSERT_EQ(same.refusal(), "");
  auto windows = tensorWindows(same.map, same.step);
  for (int i : {0, 1}) {
    EXPECT_EQ(windows[i].lower, -1);
    EXPECT_EQ(windows[i].upper, -1);
    EXPECT_EQ(windows[i].step, 1u);
  }
  // The map lists the last extent first. It has 3 taps with dilation 2 in 9 windows over 20 elements. The last window
  // begins at 2 * 8 - 2 = 14, which is 19 - 5.
  WindowLaunch apart({{16, 1, 8, 2, 0, 1}, {20, 3, 9, 2, -2, 2}});
  ASSERT_EQ(apart.refusal(), "");
  windows = tensorWindows(apart.map, apart.step);
  EXPECT_EQ(windows[0].lower, -2);
  EXPECT_EQ(windows[0].upper, -5);
  EXPECT_EQ(windows[0].step, 2u);
  EXPECT_EQ(windows[1].lower, 0);
  EXPECT_EQ(windows[1].upper, -1) << "the last element is in no window";
  // A gradient has more windows than elements.
  WindowLaunch wider({{7, 3, 9, 1, -2, 1}});
  ASSERT_EQ(wider.refusal(), "");
  EXPECT_EQ(tensorWindows(wider.map, wider.step)[0].upper, 0);
}

TEST(WindowMaps, LimitsShrinkWithTheNumberOfExtents) {
  auto with = [](size_t extents, Extent last) {
    std::vector<Extent> all(extents, {4, 1, 4, 1, 0, 1});
    all.back() = last;
    return WindowLaunch(all).refusal();
  };
  EXPECT_EQ(with(1, {4, 1, 4, 1, -32768, 1}), with(1, {4, 1, 32772, 1, -32768, 1})) << "where windows end decides too";
  EXPECT_EQ(with(2, {300, 1, 428, 1, -128, 1}), "");
  EXPECT_THAT(with(2, {300, 1, 429, 1, -129, 1}), HasSubstr("windows from -128 to 127"));
  EXPECT_EQ(with(2, {300, 1, 427, 1, 0, 1}), "");
  EXPECT_THAT(with(2, {300, 1, 428, 1, 0, 1}), HasSubstr("found 0 and 128"));
  EXPECT_EQ(with(3, {30, 1, 46, 1, -16, 1}), "");
  EXPECT_THAT(with(3, {30, 1, 47, 1, -17, 1}), HasSubstr("windows from -16 to 15"));
  EXPECT_EQ(with(2, {300, 256, 300, 1, 0, 1}), "");
  EXPECT_THAT(with(2, {300, 257, 300, 1, 0, 1}), HasSubstr("taps up to 255 apart"));
  EXPECT_THAT(with(2, {300, 3, 300, 1, 0, 128}), HasSubstr("found 3 at a distance of 128"));
  EXPECT_EQ(with(3, {30, 32, 30, 1, 0, 1}), "");
  EXPECT_THAT(with(3, {30, 33, 30, 1, 0, 1}), HasSubstr("taps up to 31 apart"));
  EXPECT_EQ(with(2, {64, 1, 8, 8, 0, 1}), "");
  EXPECT_THAT(with(2, {64, 1, 7, 9, 0, 1}), HasSubstr("at most 8 apart"));
}

TEST(WindowMaps, NumbersOutOfReachAreNoTrouble) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  for (int64_t value : {most, least, int64_t(0), int64_t(-1), int64_t(1) << 32})
    for (int64_t Extent::*member : {&Extent::count, &Extent::stride, &Extent::start, &Extent::step}) {
      Extent extent{8, 3, 8, 1, -1, 1};
      extent.*member = value;
      if (member == &Extent::start ? value == 0 || value == -1 : member == &Extent::step && value == 0)
        continue;
      EXPECT_NE(WindowLaunch({extent, {8, 3, 8, 1, -1, 1}}).refusal(), "") << value;
    }
  EXPECT_NE(WindowLaunch({{most, 3, 8, 1, -1, 1}, {8, 3, 8, 1, -1, 1}}).refusal(), "");
  EXPECT_NE(WindowLaunch({{8, most, 8, 1, -1, 1}, {8, 3, 8, 1, -1, 1}}).refusal(), "");
  WindowLaunch late({{8, 3, 8, 1, -1, 1}});
  late.step.args[2].kind = plan::LaunchArg::Kind::PassThrough;
  EXPECT_THAT(late.refusal(), HasSubstr("known when the call is planned"));
}

TEST(WindowMaps, AreEncodedAsTheDriverTakesThem) {
  setenv("KPKG_CUDA_DRIVER", KPKG_TEST_FAKE_DRIVER, 1);
  cuda::TensorMapShape shape;
  shape.dtype = KPKG_BFLOAT16, shape.rank = 4, shape.swizzle = 128, shape.pixels = 128;
  shape.extents = {64, 28, 56, 2}, shape.strides = {2, 128, 3584, 200704}, shape.box = {64, 1, 1, 128};
  shape.windows[0] = {-1, -1, 1}, shape.windows[1] = {0, -3, 2};
  cuda::TensorMapValue value;
  cuda::TensorMaps maps(shape);
  Status made = maps.at(4096, value);
  ASSERT_TRUE(made) << made.error().message;
  FakeTensorMap map;
  std::memcpy(&map, &value, sizeof map);
  EXPECT_EQ(map.address, 4096u);
  EXPECT_EQ(map.pixels, 128);
  EXPECT_EQ(map.box[0], 64u);
  EXPECT_EQ(map.extents[1], 28u);
  EXPECT_EQ(map.strides[1], 3584u);
  EXPECT_EQ(map.lower[0], -1);
  EXPECT_EQ(map.upper[1], -3);
  EXPECT_EQ(map.steps[0], 1);
  EXPECT_EQ(map.steps[1], 2);
  EXPECT_EQ(map.swizzle, 3);
  ASSERT_TRUE(maps.at(8192, value));
  std::memcpy(&map, &value, sizeof map);
  EXPECT_EQ(map.address, 8192u);
  EXPECT_EQ(map.pixels, 128);
  shape.windows[0].lower = -200;
  Status refused = cuda::TensorMaps(shape).at(4096, value);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("cuTensorMapEncodeIm2col failed"));
}

TEST(TensorMaps, ElementsOfEachDtypeHaveTheirSize) {
  setenv("KPKG_CUDA_DRIVER", KPKG_TEST_FAKE_DRIVER, 1);
  auto typeOf = [](DType dtype) {
    cuda::TensorMapShape shape;
    shape.dtype = int32_t(dtype), shape.rank = 2;
    shape.extents = {16, 16}, shape.strides = {1, 128}, shape.box = {16, 16};
    cuda::TensorMapValue value;
    Status made = cuda::TensorMaps(shape).at(4096, value);
    EXPECT_TRUE(made) << dtypeName(dtype);
    FakeTensorMap map;
    std::memcpy(&map, &value, sizeof map);
    return int(map.type);
  };
  constexpr int64_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2}; // by the constants of cuda.h
  for (const DTypeRecord &record : dtypeRecords)
    if (record.bits >= 8) {
      EXPECT_EQ(bytes[typeOf(record.dtype)], dtypeBytes(record.dtype)) << record.name;
    }
  const std::pair<DType, int> known[] = {{DType::Bool, 0},    {DType::Float8_e5m2, 0}, {DType::Int16, 1},
                                         {DType::UInt32, 2},  {DType::Int32, 3},       {DType::UInt64, 4},
                                         {DType::Int64, 5},   {DType::Float16, 6},     {DType::Float32, 7},
                                         {DType::Float64, 8}, {DType::BFloat16, 9}};
  for (auto [dtype, type] : known)
    EXPECT_EQ(typeOf(dtype), type) << dtypeName(dtype);
}

TEST(WindowMaps, MalformedWindowsAreRefused) {
  json manifest = test::sampleManifest();
  auto view = [](const char *name, int rank) {
    return json{{"name", name}, {"kind", "view"}, {"rank", rank}, {"dtype", "float32"}, {"mut", false}};
  };
  json args = {view("x", 4), view("w", 4)};
  for (const char *name : {"h", "w", "s", "p", "t"})
    args.push_back({{"name", name}, {"kind", "scalar"}, {"dtype", "int64"}});
  args.push_back({{"name", "alpha"}, {"kind", "scalar"}, {"dtype", "float32"}});
  json instance = manifest["instances"].back();
  instance["kernel"] = manifest["kernels"].size(), instance["params"] = json::array(), instance["target"] = "sm_90a",
  instance["symbol"] = "windows", instance["section"] = test::sampleImage;
  instance["facts"] = {{{"arg", 0}, {"unit", 3}, {"align", 16}, {"divisible", 4}, {"index", 32}}};
  manifest["kernels"].push_back({{"name", "windows"}, {"params", json::array()}, {"args", args}, {"persistent", true}});
  json window = {
      {"counts", {2, 3}}, {"strides", {4, 4}}, {"starts", {5, 5}}, {"steps", {6, 6}}, {"taps", {{1, 0}, {1, 1}}}};
  json map = {{"arg", 0}, {"box", {128, 1, 1, 32}}, {"swizzle", 128}, {"unit", 3}, {"window", window}};
  auto refusal = [&](auto change) -> std::string {
    json changed = manifest, made = instance, wanted = map;
    change(made, wanted);
    made["launch"] = {{"threads", 384}, {"tensor_maps", {wanted}}};
    changed["instances"].push_back(made);
    std::string bytes = test::samplePackage(changed);
    auto opened = Library::openMemory(bytes, "sample.kpkg");
    return opened ? "opened" : opened.error().message;
  };
  EXPECT_EQ(refusal([](json &, json &) {}), "opened");
  for (const char *key : {"counts", "strides", "starts", "steps"}) {
    EXPECT_THAT(refusal([&](json &, json &map) { map["window"][key] = {2}; }),
                HasSubstr("are not as many as extents: 2"))
        << key;
    EXPECT_THAT(refusal([&](json &, json &map) { map["window"][key] = {2, 8}; }), HasSubstr("names no argument"))
        << key;
    EXPECT_THAT(refusal([&](json &, json &map) { map["window"][key] = {2, -1}; }),
                HasSubstr("[1] is -1, expected an integer from 0 to 255"))
        << key;
    EXPECT_THAT(refusal([&](json &, json &map) { map["window"][key] = {2, 1}; }), HasSubstr("that is no Int")) << key;
    EXPECT_THAT(refusal([&](json &, json &map) { map["window"][key] = {2, 7}; }), HasSubstr("that is no Int")) << key;
    EXPECT_NE(refusal([&](json &, json &map) { map["window"].erase(key); }), "opened") << key;
  }
  EXPECT_THAT(refusal([](json &, json &map) { map["window"]["taps"] = {{1, 0}, {1}}; }),
              HasSubstr("window.taps[1] is [1], expected a list of 2 numbers"));
  EXPECT_THAT(refusal([](json &, json &map) { map["window"]["taps"] = {{1, 0}, {2, 0}}; }),
              HasSubstr("not those of a view"));
  EXPECT_THAT(refusal([](json &, json &map) { map["window"]["taps"] = {{1, 0}, {1, 4}}; }),
              HasSubstr("names no dimension"));
  EXPECT_THAT(refusal([](json &, json &map) { map["window"] = 3; }), HasSubstr("window is 3, expected an object"));
  EXPECT_THAT(refusal([](json &, json &map) { map["box"] = {64, 2, 1, 32}; }),
              HasSubstr("not of pixels and channels only"));
  EXPECT_THAT(refusal([](json &instance, json &map) { map["unit"] = 2, instance["facts"][0]["unit"] = 2; }),
              HasSubstr("channels last"));
}

} // namespace
