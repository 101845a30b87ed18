// Tests GPU calls with a stand-in for the driver: choice, parameters, launch shape, capture, errors, copies.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/device/cuda/CudaCall.h"
#include "runtime/device/cuda/Driver.h"
#include "runtime/package/Devices.h"

#include <kpkg/kernel_abi.h>

#include <bit>
#include <gmock/gmock.h>

using namespace kpkg;
using kpkg::test::CudaCall;
using nlohmann::json;
using testing::HasSubstr;

namespace {

TEST_F(CudaCall, PacksParametersAndLaunches) {
  auto made = scale(onDevice(x, {10, 64}), onDevice(y, {10, 64}));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_STREQ(fake->symbol, "vector_kernel");
  EXPECT_EQ(fake->grid[0], 3u); // each CTA computes four blocks of the grid
  EXPECT_EQ(fake->threads, 128u);
  EXPECT_EQ(fake->shared, 65536u);
  EXPECT_EQ(fake->allowedShared, 65536);
  EXPECT_EQ(fake->stream, stream);
  std::vector<uint64_t> expected = {reinterpret_cast<uint64_t>(x), 10, 64, 64, 1,
                                    reinterpret_cast<uint64_t>(y), 10, 64, 64, 1,
                                    std::bit_cast<uint32_t>(2.0f), 10, 1,  1};
  EXPECT_EQ(std::vector<uint64_t>(fake->words, fake->words + 14), expected);
  EXPECT_EQ(fake->depth, 0);
  EXPECT_EQ(fake->allocations, 0);
  EXPECT_TRUE(scale(onDevice(x, {10, 64}), onDevice(y, {10, 64})));
  EXPECT_EQ(fake->loads, 1);
  EXPECT_EQ(fake->launches, 2);
}

TEST_F(CudaCall, KernelsOfOneImageShareIt) {
  ASSERT_TRUE(scale(onDevice(x, {10, 64}), onDevice(y, {10, 64})));
  ASSERT_TRUE(scale(onDevice(x, {4, 63}), onDevice(y, {4, 63})));
  EXPECT_STREQ(fake->symbol, "any_kernel");
  EXPECT_EQ(fake->loads, 1);
  ASSERT_TRUE(library->prewarm({KPKG_DEVICE_CUDA, 0}));
  EXPECT_EQ(fake->loads, 1);
}

TEST_F(CudaCall, SaysWhatTheDriverLoadedAndCompiled) {
  auto code = [&] { return json::parse(library->op("test::scale")->kernelInfo()).at("process_code"); };
  int loads = code().at("loads"), compilations = code().at("compilations");
  ASSERT_TRUE(cuda::loadImage("\x7f"
                              "ELF of machine code",
                              "sample"));
  EXPECT_EQ(code(), json({{"loads", loads + 1}, {"compilations", compilations}}));
  ASSERT_TRUE(cuda::loadImage(".version 9.0", "sample"));
  EXPECT_EQ(code(), json({{"loads", loads + 2}, {"compilations", compilations + 1}}));
}

TEST_F(CudaCall, PlansSeeTheProcessorsOfTheirDevice) {
  auto spread = library->op("test::spread").value();
  ASSERT_TRUE(spread.callInto({stream}, {onDevice(x + 1, {8, 64})}, {onDevice(y, {8, 64})}));
  EXPECT_EQ(fake->grid[0], 4u) << "the stand-in has four multiprocessors";
  auto here = spread.explain({Tensor(x, DType::Float32, {8, 64})});
  ASSERT_TRUE(here);
  EXPECT_THAT(*here, HasSubstr("grid 16x1x1"));
  fake->devices = 0;
  auto none = spread.explain({onDevice(x, {8, 64}, 1)});
  ASSERT_TRUE(none);
  EXPECT_THAT(*none, HasSubstr("refused: "));
}

TEST_F(CudaCall, FactsThatDoNotHoldTakeTheGeneralInstance) {
  ASSERT_TRUE(scale(onDevice(x + 1, {4, 64}), onDevice(y, {4, 64})));
  EXPECT_STREQ(fake->symbol, "any_kernel") << "an address that is no multiple of 16";
  ASSERT_TRUE(scale(onDevice(x, {4, 63}), onDevice(y, {4, 63})));
  EXPECT_STREQ(fake->symbol, "any_kernel") << "an extent that is no multiple of 4";
  auto why = library->op("test::scale")->explain({onDevice(x, {4, 63})});
  ASSERT_TRUE(why);
  EXPECT_THAT(*why, HasSubstr("needs for 'x' a stride of dimension 0 that is a multiple of 4, found 63"));
}

TEST_F(CudaCall, OffsetsAlongOuterDimensionsMayBeHuge) {
  auto explained = [&] { return library->op("test::scale")->explain({onDevice(x, {int64_t(1) << 26, 64})}).value(); };
  EXPECT_THAT(explained(), HasSubstr("needs for 'x' offsets of 32 bits"));
  for (nlohmann::json &fact : manifest["instances"].back()["facts"])
    fact["outer"] = 1;
  reload(manifest);
  EXPECT_THAT(explained(), Not(HasSubstr("offsets of 32 bits")));
}

TEST_F(CudaCall, CodeForAnotherChipIsRefused) {
  fake->major = 8;
  auto made = scale(onDevice(x, {4, 64}), onDevice(y, {4, 64}));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().status, KPKG_ERROR_NO_INSTANCE);
  EXPECT_THAT(made.error().message, HasSubstr("this GPU is sm_80"));
}

TEST_F(CudaCall, NothingIsLoadedDuringCapture) {
  fake->capturing = 1;
  auto made = scale(onDevice(x, {4, 64}), onDevice(y, {4, 64}));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().status, KPKG_ERROR_CAPTURE);
  EXPECT_EQ(made.error().op, "test::scale");
  EXPECT_THAT(made.error().message, HasSubstr("prewarm the library"));
  fake->capturing = 0;
  ASSERT_TRUE(library->prewarm({KPKG_DEVICE_CUDA, 0}));
  int loads = fake->loads;
  fake->capturing = 1;
  EXPECT_TRUE(scale(onDevice(x, {4, 64}), onDevice(y, {4, 64})));
  EXPECT_EQ(fake->loads, loads);
}

TEST_F(CudaCall, RestrictionsDecideTheInstance) {
  Registry registry;
  registry.add(*library).value();
  auto op = registry.op("test::scale").value();
  auto run = [&] { return op.callInto({stream}, {onDevice(x, {10, 64})}, {onDevice(y, {10, 64})}); };
  ASSERT_TRUE(run());
  EXPECT_STREQ(fake->symbol, "vector_kernel");
  registry.restrict("test::scale", R"({"variant": "any", "threads": [128]})").value();
  ASSERT_TRUE(run());
  EXPECT_STREQ(fake->symbol, "any_kernel");
  registry.restrict("test::scale", R"({"threads": [256, 512]})").value();
  auto refused = run();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("has 128 threads, the configuration asks for 256 or 512"));
  registry.restrict("test::scale", "").value();
  ASSERT_TRUE(run());
  EXPECT_STREQ(fake->symbol, "vector_kernel");
  for (const char *wrong :
       {"[]", "{", R"({"tile": 3})", R"({"params": {"N": []}})", R"({"params": {"N": [3]}})", R"({"threads": ["x"]})"})
    EXPECT_EQ(registry.restrict("test::scale", wrong).error().status, KPKG_ERROR_USE) << wrong;
}

TEST_F(CudaCall, DriverErrorsNameCallAndText) {
  fake->failLaunch = 1;
  auto made = scale(onDevice(x, {4, 64}), onDevice(y, {4, 64}));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().status, KPKG_ERROR_DEVICE);
  EXPECT_THAT(made.error().message,
              HasSubstr("cuLaunchKernelEx failed: CUDA_ERROR_LAUNCH_FAILED, unspecified launch failure"));
}

TEST_F(CudaCall, TensorsMustBeOnOneDevice) {
  auto made = scale(onDevice(x, {4, 64}), onDevice(y, {4, 64}, 1));
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("is not on the device of the arguments"));
}

TEST_F(CudaCall, CopiesStridedTensorsOnTheDevice) {
  for (int i = 0; i < 24; ++i)
    x[i] = float(i);
  // One copy of x^T into a temporary, and one launch that reads it.
  auto made = library->op("test::scale_transposed")->callInto({stream}, {onDevice(x, {4, 6})}, {onDevice(y, {6, 4})});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(fake->copies, 0);
  EXPECT_EQ(fake->elementCopies, 1) << "one kernel for all";
  EXPECT_EQ(fake->launches, 1);
  EXPECT_EQ(fake->allocations, 0);
}

TEST_F(CudaCall, ResultsAreAllocatedOnTheDeviceInTheStreamsOrder) {
  auto made = library->op("test::scale")->call({stream}, {onDevice(x, {4, 64})});
  ASSERT_TRUE(made) << made.error().message;
  Tensor result = made->front();
  EXPECT_EQ(result.device().type, KPKG_DEVICE_CUDA);
  EXPECT_EQ(reinterpret_cast<uint64_t>(result.data()), fake->words[5]) << "the kernel writes the result";
  EXPECT_EQ(fake->allocations, 1);
  EXPECT_EQ(fake->waits, 0);
  *made = {};
  EXPECT_EQ(fake->allocations, 1) << "a copy of the tensor keeps the memory";
  result = {};
  EXPECT_EQ(fake->allocations, 0);
  made = library->op("test::scale")->call({stream}, {onDevice(x, {0, 64})});
  ASSERT_TRUE(made) << "no element, no memory: " << made.error().message;
}

TEST_F(CudaCall, ResultsMayHaveMemoryOfTheProgram) {
  Stream own{stream};
  std::vector<size_t> wanted;
  float memory[256];
  own.allocate = [&](size_t bytes) -> Result<std::shared_ptr<void>> {
    wanted.push_back(bytes);
    if (wanted.size() > 1)
      return Error{KPKG_ERROR_USE, "there is no more", {}, {}, {}};
    return std::shared_ptr<void>(memory, [](void *) {});
  };
  auto made = library->op("test::scale")->call(own, {onDevice(x, {4, 64})});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->front().data(), memory);
  EXPECT_EQ(fake->allocations, 0);
  EXPECT_TRUE(Tensor::empty(DType::Float32, {4}, Cpu, own)) << "memory of another device is the runtime's";
  auto refused = Tensor::empty(DType::Float32, {4}, cudaDevice(), own);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "there is no more");
  EXPECT_EQ(wanted, (std::vector<size_t>{4 * 64 * 4, 16}));
}

TEST_F(CudaCall, OverlapIsALaunchAttribute) {
  ASSERT_TRUE(scale(onDevice(x, {10, 64}), onDevice(y, {10, 64})));
  EXPECT_EQ(fake->attributes, 0u);
  manifest["instances"].back()["launch"]["overlaps"] = true;
  reload(manifest);
  ASSERT_TRUE(scale(onDevice(x, {10, 64}), onDevice(y, {10, 64})));
  EXPECT_EQ(fake->attributes, 1u << 6);
  manifest["instances"].back()["launch"]["overlaps"] = 1;
  bytes = test::samplePackage(manifest);
  auto refused = Library::openMemory(bytes, "sample.kpkg");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("overlaps"));
}

/// Returns a tensor map of the sample's vector instance, which needs facts for `x`.
json mapOfX() { return {{"arg", 0}, {"box", {16, 32}}, {"swizzle", 128}, {"unit", 1}}; }

FakeTensorMap mapAt(void **parameters, size_t number) {
  EXPECT_EQ(reinterpret_cast<uint64_t>(parameters[number]) % 64, 0u);
  return *static_cast<FakeTensorMap *>(parameters[number]);
}

TEST_F(CudaCall, TensorMapsFollowTheWords) {
  json &launch = manifest["instances"].back()["launch"];
  launch["tensor_maps"] = {mapOfX(), {{"arg", 1}, {"box", {256, 4}}, {"swizzle", 0}, {"unit", 1}}};
  reload(manifest);
  static FakeTensorMap first, second;
  fake->onLaunch = [](void **parameters) { first = mapAt(parameters, 14), second = mapAt(parameters, 15); };
  auto made = scale(onDevice(x, {10, 64}), onDevice(y, {10, 64}));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(first.address, reinterpret_cast<uint64_t>(x));
  EXPECT_EQ(first.type, 7) << "float32";
  EXPECT_EQ(first.rank, 2);
  EXPECT_EQ(first.extents[0], 64u);
  EXPECT_EQ(first.extents[1], 10u);
  EXPECT_EQ(first.strides[0], 256u);
  EXPECT_EQ(first.box[0], 32u);
  EXPECT_EQ(first.box[1], 16u);
  EXPECT_EQ(first.swizzle, 3);
  EXPECT_EQ(first.promotion, 2);
  EXPECT_EQ(second.address, reinterpret_cast<uint64_t>(y));
  EXPECT_EQ(second.box[1], 256u);
  EXPECT_EQ(fake->encodings, 2);
  ASSERT_TRUE(scale(onDevice(x + 320, {10, 64}), onDevice(y + 320, {10, 64})));
  EXPECT_EQ(fake->encodings, 2) << "only the address differs";
  EXPECT_EQ(first.address, reinterpret_cast<uint64_t>(x + 320));
  EXPECT_EQ(first.strides[0], 256u);
  EXPECT_EQ(second.address, reinterpret_cast<uint64_t>(y + 320));
}

TEST_F(CudaCall, TensorMapsOfAbsentViewsDescribeAZero) {
  auto device = package::findDevice({KPKG_DEVICE_CUDA, 0});
  ASSERT_TRUE(device) << device.error().message;
  device::Scope inContext(**device);
  auto image = (*device)->load(".visible .entry reads_absent() { ret; }", "image");
  ASSERT_TRUE(image) << image.error().message;
  device::KernelDescription description;
  description.symbol = "reads_absent";
  description.shape.emplace().threads = 32;
  auto kernel = (*image)->kernel(description);
  ASSERT_TRUE(kernel) << kernel.error().message;
  device::TensorMapShape shape;
  shape.dtype = KPKG_FLOAT32, shape.rank = 2;
  shape.extents = {1, 1}, shape.strides = {16, 16}, shape.box = {32, 16};
  device::LaunchDescription call;
  call.tensorMaps = {{.word = 0, .shape = shape, .isAbsent = true}};
  std::vector<int64_t> words = {0}; // the address of the absent view
  auto launch = (*kernel)->bind(call, words);
  ASSERT_TRUE(launch) << launch.error().message;
  static FakeTensorMap map;
  fake->wordCount = 4; // the address and the grid
  fake->onLaunch = [](void **parameters) { map = mapAt(parameters, 4); };
  device::LaunchReport report;
  ASSERT_TRUE((*launch)->run(words.data(), stream, report));
  ASSERT_NE(map.address, 0u) << "a map of no memory stops kernels on Hopper GPUs";
  EXPECT_EQ(*reinterpret_cast<uint64_t *>(map.address), 0u);
  EXPECT_EQ(map.extents[0], 1u);
  EXPECT_EQ(map.box[0], 32u);
  int loads = fake->loads;
  ASSERT_TRUE((*launch)->run(words.data(), stream, report));
  EXPECT_EQ(fake->loads, loads) << "the zeros are loaded once";
}

TEST_F(CudaCall, TensorMapsFollowTheAddressOfTheReport) {
  manifest["instances"].back()["asserts"] = {"never"};
  manifest["instances"].back()["launch"]["tensor_maps"] = {mapOfX()};
  reload(manifest);
  static FakeTensorMap map;
  fake->onLaunch = [](void **parameters) { map = mapAt(parameters, 15); };
  ASSERT_TRUE(scale(onDevice(x, {10, 64}), onDevice(y, {10, 64})));
  EXPECT_EQ(map.address, reinterpret_cast<uint64_t>(x));
}

TEST_F(CudaCall, WhatTheDriverMakesNoMapOfTakesAnotherInstance) {
  manifest["instances"].back()["launch"]["tensor_maps"] = {mapOfX()};
  reload(manifest);
  Tensor backwards(x + 960, DType::Float32, {10, 64}, {-96, 1}, {KPKG_DEVICE_CUDA, 0}, nullptr);
  ASSERT_TRUE(scale(backwards, onDevice(y, {10, 64})));
  EXPECT_STREQ(fake->symbol, "any_kernel");
  EXPECT_EQ(fake->encodings, 0);
  Tensor repeated(x, DType::Float32, {10, 64}, {0, 1}, {KPKG_DEVICE_CUDA, 0}, nullptr);
  ASSERT_TRUE(scale(repeated, onDevice(y, {10, 64})));
  EXPECT_STREQ(fake->symbol, "vector_kernel") << "one row for all is no trouble";
  // A single row may have any stride.
  Tensor single(x, DType::Float32, {1, 64}, {-4, 1}, {KPKG_DEVICE_CUDA, 0}, nullptr);
  ASSERT_TRUE(scale(single, onDevice(y, {1, 64})));
  EXPECT_STREQ(fake->symbol, "vector_kernel");
  fake->failEncoding = 1;
  auto refused = scale(onDevice(x, {4, 64}), onDevice(y, {4, 64}));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("vector sm_90a: cuTensorMapEncodeTiled failed"));
}

TEST_F(CudaCall, MalformedTensorMapsAreRefused) {
  auto refusal = [&](auto change) -> std::string {
    json changed = manifest;
    json &instance = changed["instances"].back();
    instance["launch"]["tensor_maps"] = {mapOfX()};
    change(instance, instance["launch"]["tensor_maps"][0]);
    bytes = test::samplePackage(changed);
    auto opened = Library::openMemory(bytes, "sample.kpkg");
    return opened ? "opened" : opened.error().message;
  };
  EXPECT_EQ(refusal([](json &, json &) {}), "opened");
  EXPECT_THAT(refusal([](json &, json &map) { map["arg"] = 2; }),
              HasSubstr("tensor_maps[0] names an argument that is no view"));
  EXPECT_THAT(refusal([](json &, json &map) { map["arg"] = 3; }), HasSubstr("names an argument that is no view"));
  EXPECT_THAT(refusal([](json &, json &map) { map["unit"] = 2; }), HasSubstr("has `unit` 2 for a view of rank 2"));
  EXPECT_THAT(refusal([](json &, json &map) { map["unit"] = 0; }), HasSubstr("needs facts"));
  EXPECT_THAT(refusal([](json &, json &map) { map["swizzle"] = 48; }), HasSubstr("a swizzle that is not"));
  EXPECT_THAT(refusal([](json &, json &map) { map["swizzle"] = 64; }), HasSubstr("rows of 128 bytes"));
  EXPECT_THAT(refusal([](json &, json &map) { map["box"] = {16}; }),
              HasSubstr("a box of 1 dimensions for a view of 2"));
  EXPECT_THAT(refusal([](json &, json &map) { map["box"] = {257, 32}; }),
              HasSubstr("box[0] is 257, expected an integer from 1 to 256"));
  EXPECT_THAT(refusal([](json &, json &map) { map["box"] = {-1, 32}; }),
              HasSubstr("box[0] is -1, expected an integer from 1 to 256"));
  EXPECT_THAT(refusal([](json &, json &map) { map["box"] = {16, 30}; }), HasSubstr("rows of 120 bytes"));
  EXPECT_THAT(refusal([](json &, json &map) { map.erase("unit"); }), HasSubstr("has no `unit`"));
  EXPECT_THAT(refusal([](json &instance, json &) { instance["facts"][0].erase("align"); }), HasSubstr("needs facts"));
  EXPECT_THAT(refusal([](json &instance, json &) { instance["facts"][0]["divisible"] = 2; }), HasSubstr("needs facts"));
  EXPECT_THAT(refusal([](json &instance, json &map) { instance["launch"]["tensor_maps"] = json(9, map); }),
              HasSubstr("expected a list of at most 8 items"));
  EXPECT_THAT(refusal([](json &instance, json &) { instance["launch"]["tensor_maps"] = 1; }),
              HasSubstr("tensor_maps is 1, expected a list"));
}

TEST_F(CudaCall, PersistentKernelsRunNoMoreCtasThanTheyHaveTiles) {
  json persistent = test::sampleManifest()["instances"].back();
  for (const json &instance : manifest["instances"])
    if (manifest["kernels"][instance["kernel"].get<size_t>()]["name"] == "number_tiles")
      persistent = instance;
  persistent["section"] = test::sampleImage, persistent["target"] = "sm_90a";
  persistent["launch"] = {{"threads", 128}, {"occupancy", 2}};
  manifest["instances"].push_back(persistent);
  fake->wordCount = 0;
  auto ctas = [&](int64_t count) {
    reload(manifest);
    auto made = library->op("test::number_")->call({stream}, {Tensor(x, DType::Int64, {count}, {KPKG_DEVICE_CUDA, 0})});
    EXPECT_TRUE(made) << made.error().message;
    return fake->grid[0];
  };
  EXPECT_EQ(ctas(16), 8u) << "four multiprocessors";
  manifest["instances"].back()["tiles"] = {{{"count", 1}, {"factors", {{"tiles", 0, 0, 8}}}}};
  EXPECT_EQ(ctas(16), 2u);
  EXPECT_EQ(ctas(17), 3u);
  EXPECT_EQ(ctas(400), 8u);
  manifest["instances"].back()["launch"]["cluster"] = 2;
  EXPECT_EQ(ctas(17), 6u);
  EXPECT_EQ(ctas(400), 8u);
  fake->clusters = 6;
  EXPECT_EQ(ctas(400), 6u) << "the driver knows how many clusters fit";
}

/// Returns the report, which is the last parameter of a kernel with asserts or prints.
KpkgGpuReport &reportOf(void **parameters) { return **static_cast<KpkgGpuReport **>(parameters[14]); }

TEST_F(CudaCall, AssertsAndPrintsAreReadAfterTheLaunch) {
  manifest["instances"].back()["asserts"] = {"never", "x is finite"};
  manifest["instances"].back()["prints"] = {"row {i64} has {f32}"};
  reload(manifest);
  static std::vector<std::string> printed;
  printed.clear();
  kpkg_set_log(
      [](void *, kpkg_log_level level, const char *message) {
        printed.push_back((level == KPKG_LOG_PRINT ? "" : "?") + std::string(message));
      },
      nullptr);
  fake->onLaunch = [](void **parameters) {
    KpkgGpuReport &report = reportOf(parameters);
    EXPECT_EQ(report.failed, 0);
    EXPECT_EQ(report.used, 0u);
    EXPECT_EQ(report.capacity, 8192u);
    uint64_t words[] = {uint64_t(1) << 32 | 2, 7, std::bit_cast<uint32_t>(1.5f),
                        uint64_t(1) << 32 | 2, 8, std::bit_cast<uint32_t>(-2.0f)};
    std::copy(std::begin(words), std::end(words), report.messages);
    report.lost = 3;
  };
  ASSERT_TRUE(scale(onDevice(x, {10, 64}), onDevice(y, {10, 64})));
  EXPECT_EQ(fake->waits, 1);
  EXPECT_EQ(fake->allocations, 0) << "the block is given back";
  ASSERT_EQ(printed.size(), 3u);
  EXPECT_EQ(printed[0], "row 7 has 1.5");
  EXPECT_EQ(printed[1], "row 8 has -2");
  EXPECT_THAT(printed[2], HasSubstr("3 more messages"));

  fake->onLaunch = [](void **parameters) { reportOf(parameters).failed = 2; };
  auto made = scale(onDevice(x, {10, 64}), onDevice(y, {10, 64}));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().status, KPKG_ERROR_KERNEL);
  EXPECT_THAT(made.error().message, HasSubstr("vector sm_90a: assertion failed: x is finite"));
  EXPECT_EQ(fake->allocations, 0);

  fake->onLaunch = nullptr;
  fake->capturing = 1;
  made = scale(onDevice(x, {10, 64}), onDevice(y, {10, 64}));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().status, KPKG_ERROR_CAPTURE);
  EXPECT_THAT(made.error().message, HasSubstr("cannot be captured"));
  kpkg_set_log(nullptr, nullptr);
}

} // namespace
