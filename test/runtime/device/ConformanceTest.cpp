// Tests that each kind of device keeps the contract of Device.h: memory, copies, code, launches, events and graphs.
//
// KPKG_TEST_DEVICE names a kind of device that must be there; others are skipped where there is none.
// KPKG_TEST_OBJECTS is the folder of the images, if it is not that of the build.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/Device.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cuda/CudaDevice.h"

#include <cstdlib>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <numeric>
#include <vector>

using namespace kpkg;
using namespace kpkg::device;
using testing::AnyOf;
using testing::HasSubstr;

namespace {

/// A kind of device, and its image with the kernels `doubled_blocks` and `failed_blocks`.
struct Kind {
  const char *name;
  Driver &(*driver)();
  const char *image;
};

std::string readImage(const char *name) {
  const char *moved = std::getenv("KPKG_TEST_OBJECTS");
  std::ifstream file(std::string(moved ? moved : KPKG_TEST_OBJECTS) + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class DeviceConformance : public testing::TestWithParam<Kind> {
protected:
  void SetUp() override {
    auto count = driver.deviceCount();
    const char *required = std::getenv("KPKG_TEST_DEVICE");
    if (!count || *count == 0) {
      std::string why =
          std::string("there is no ") + GetParam().name + " device" + (count ? "" : ": " + count.error().message);
      if (required && std::string(required) == GetParam().name)
        FAIL() << why;
      GTEST_SKIP() << why;
    }
    device = driver.device(0).value();
    scope.emplace(*device);
    ASSERT_TRUE(scope->ok()) << scope->error().message;
    stream = device->createStream().value();
    image = readImage(GetParam().image);
    ASSERT_FALSE(image.empty()) << GetParam().image;
  }
  void TearDown() override {
    if (!device)
      return;
    for (std::byte *block : blocks)
      EXPECT_TRUE(device->release(block, stream));
    if (stream) {
      EXPECT_TRUE(device->destroyStream(stream));
    }
    scope.reset();
  }

  std::byte *allocate(size_t bytes) { return blocks.emplace_back(device->allocate(bytes, stream).value()); }
  template <typename T> std::byte *upload(const std::vector<T> &values) {
    std::byte *memory = allocate(values.size() * sizeof(T));
    device->copyFromHost(memory, values.data(), values.size() * sizeof(T), stream).value();
    device->synchronize(stream).value();
    return memory;
  }
  template <typename T> std::vector<T> download(const std::byte *memory, size_t count) {
    std::vector<T> values(count);
    device->copyToHost(values.data(), memory, count * sizeof(T), stream).value();
    device->synchronize(stream).value();
    return values;
  }
  static std::vector<float> ramp(size_t count, float first = 0) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), first);
    return values;
  }

  /// A launch of `doubled_blocks` over `count` elements, with its words.
  struct Doubled {
    std::unique_ptr<const Launch> launch;
    std::vector<int64_t> words;
  };
  Doubled bindDoubled(const Kernel &kernel, int64_t count) {
    Doubled bound;
    bound.words = {0, count, 1, 0, count, 1};
    LaunchDescription description;
    description.grid[0] = (count + 127) / 128;
    bound.launch = kernel.bind(description, bound.words).value();
    return bound;
  }
  void runDoubled(const Doubled &bound, const std::byte *x, std::byte *y) {
    std::vector<int64_t> words = bound.words;
    words[0] = reinterpret_cast<int64_t>(x), words[3] = reinterpret_cast<int64_t>(y);
    LaunchReport report;
    bound.launch->run(words.data(), stream, report).value();
    EXPECT_EQ(report.failed, 0);
  }
  static KernelDescription describeKernel(const char *symbol) {
    KernelDescription description;
    description.symbol = symbol;
    description.shape.emplace().threads = 128;
    return description;
  }

  Driver &driver = GetParam().driver();
  Device *device = nullptr;
  std::optional<Scope> scope;
  Stream stream = nullptr;
  std::string image;
  std::vector<std::byte *> blocks;
};

TEST_P(DeviceConformance, DriverNamesItsDevices) {
  EXPECT_EQ(driver.traits.name, GetParam().name);
  EXPECT_EQ(&device->driver(), &driver);
  EXPECT_EQ(driver.device(0).value(), device) << "one object for one device";
  EXPECT_THAT(driver.deviceName(0), HasSubstr(GetParam().name));
  EXPECT_FALSE(driver.traits.codeKinds.empty());
  if (driver.traits.isSingle)
    return;
  auto none = driver.device(1000);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().status, KPKG_ERROR_DEVICE);
  EXPECT_THAT(none.error().message, HasSubstr("device 1000"));
}

TEST_P(DeviceConformance, TellsItsTargetsAndLimits) {
  auto description = device->describe();
  ASSERT_TRUE(description) << description.error().message;
  EXPECT_NE(description->name, "");
  EXPECT_GT(description->processors, 0);
  EXPECT_GT(device->processors(), 0);
  EXPECT_GT(device->planProcessors(), 0);
  EXPECT_NE(device->tuningName(), "");
  ASSERT_FALSE(device->targets().empty());
  EXPECT_EQ(description->target, device->targets().front());
  EXPECT_TRUE(device->targetRank(device->targets().front()));
  EXPECT_THAT(device->runnableText(), HasSubstr(std::string(device->targets().front())));
  for (std::string_view target : device->targets())
    EXPECT_TRUE(driver.isTarget(target)) << target;
  EXPECT_FALSE(device->targetRank("abacus"));
  EXPECT_FALSE(driver.isTarget("abacus"));
}

TEST_P(DeviceConformance, ScopesNest) {
  Scope inner(*device);
  EXPECT_TRUE(inner.ok());
}

TEST_P(DeviceConformance, MemoryIsAlignedAndCopied) {
  std::vector<float> values = ramp(1000);
  std::byte *first = upload(values), *second = allocate(4000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  EXPECT_NE(first, second);
  EXPECT_TRUE(device->copy(second, first, 4000, stream));
  EXPECT_EQ(download<float>(second, 1000), values);
  EXPECT_TRUE(device->copy(second + 4, first, 8, stream));
  EXPECT_EQ(download<float>(second, 4), (std::vector<float>{0, 0, 1, 3}));
}

TEST_P(DeviceConformance, NoBytesAreNoTrouble) {
  auto nothing = device->allocate(0, stream);
  ASSERT_TRUE(nothing) << nothing.error().message;
  EXPECT_TRUE(device->release(*nothing, stream));
  EXPECT_TRUE(device->release(nullptr, stream));
}

/// Copies a view of `from` to a view of a zeroed block, and compares it with a copy on the host.
template <typename T> struct CopyCase {
  std::vector<int64_t> shape, fromStrides, toStrides;
  int64_t fromOffset = 0, toOffset = 0;

  std::vector<T> expected(const std::vector<T> &from, size_t size) const {
    std::vector<T> to(size);
    std::vector<int64_t> at(shape.size(), 0);
    int64_t count = 1;
    for (int64_t extent : shape)
      count *= extent;
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, source = fromOffset, target = toOffset;
      for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
        source += rest % shape[d] * fromStrides[d];
        target += rest % shape[d] * toStrides[d];
      }
      to[size_t(target)] = from[size_t(source)];
    }
    return to;
  }
};

template <typename T> std::vector<CopyCase<T>> copyCases() {
  return {
      {{60}, {1}, {1}},                                // dense
      {{30}, {2}, {1}},                                // every other element
      {{6, 10}, {10, 1}, {20, 1}, 0, 3},               // rows
      {{10, 6}, {1, 10}, {6, 1}},                      // transposed
      {{10, 6}, {-6, -1}, {6, 1}, 59},                 // from the end
      {{3, 4, 5}, {20, 1, 4}, {1, 15, 3}},             // permuted
      {{2, 1, 3, 5}, {30, 1000, 1, 6}, {15, 7, 5, 1}}, // an extent of 1 with any stride
      {{5, 6}, {0, 1}, {6, 1}},                        // one row for all
      {{0, 6}, {6, 1}, {6, 1}},                        // no element
  };
}

TEST_P(DeviceConformance, StridedCopies) {
  auto check = [&]<typename T>(T) {
    std::vector<T> from(64);
    std::iota(from.begin(), from.end(), T(1));
    std::byte *source = upload(from);
    for (const CopyCase<T> &test : copyCases<T>()) {
      std::byte *target = upload(std::vector<T>(128));
      Status status =
          device->copyStrided({source + test.fromOffset * int64_t(sizeof(T)), test.fromStrides,
                               target + test.toOffset * int64_t(sizeof(T)), test.toStrides, test.shape, sizeof(T)},
                              stream);
      ASSERT_TRUE(status) << status.error().message;
      EXPECT_EQ(download<T>(target, 128), test.expected(from, 128))
          << "case " << &test - copyCases<T>().data() << " of " << sizeof(T) << " bytes";
    }
  };
  check(uint8_t());
  check(uint16_t());
  check(float());
  check(double());
}

TEST_P(DeviceConformance, KernelsRunWithOtherAddressesEachTime) {
  auto loaded = device->load(image, "the good image");
  ASSERT_TRUE(loaded) << loaded.error().message;
  auto kernel = (*loaded)->kernel(describeKernel("doubled_blocks"));
  ASSERT_TRUE(kernel) << kernel.error().message;
  Doubled bound = bindDoubled(**kernel, 300);
  for (float first : {0.0f, 7.0f}) {
    std::vector<float> expected = ramp(300, first);
    std::byte *x = upload(expected), *y = upload(std::vector<float>(301));
    for (float &value : expected)
      value *= 2;
    expected.push_back(0);
    runDoubled(bound, x, y);
    EXPECT_EQ(download<float>(y, 301), expected) << "all elements, and nothing beyond";
  }
}

TEST_P(DeviceConformance, AnEmptyGridRunsNothing) {
  auto loaded = device->load(image, "the good image").value();
  auto kernel = loaded->kernel(describeKernel("doubled_blocks")).value();
  std::byte *y = upload(ramp(4));
  runDoubled(bindDoubled(*kernel, 0), y, y);
  EXPECT_EQ(download<float>(y, 4), ramp(4));
}

TEST_P(DeviceConformance, FailedAssertsAreReported) {
  auto loaded = device->load(image, "the good image").value();
  KernelDescription description = describeKernel("failed_blocks");
  description.hasAsserts = true;
  auto kernel = loaded->kernel(description).value();
  std::vector<int64_t> words;
  auto launch = kernel->bind({}, words).value();
  LaunchReport report;
  ASSERT_TRUE(launch->run(words.data(), stream, report));
  EXPECT_EQ(report.failed, 2) << "1 + the number of the assert";
  EXPECT_EQ(report.lostMessages, 0u);
}

TEST_P(DeviceConformance, DamagedImagesAreRefusedByName) {
  const std::pair<const char *, std::string> images[] = {
      {"the cut image", image.substr(0, image.size() / 3)}, // without the end of the code
      {"the wrong image", "this is no code of any device"},
      {"the empty image", ""},
  };
  for (const auto &[name, damaged] : images) {
    auto loaded = device->load(damaged, name);
    ASSERT_FALSE(loaded) << name;
    EXPECT_THAT(loaded.error().status, AnyOf(KPKG_ERROR_UNSUPPORTED, KPKG_ERROR_FORMAT)) << loaded.error().message;
    EXPECT_THAT(loaded.error().message, HasSubstr(name));
  }
  EXPECT_TRUE(device->load(image, "the good image")) << "a refusal does no harm";
}

TEST_P(DeviceConformance, AMissingKernelIsNamed) {
  auto loaded = device->load(image, "the good image").value();
  auto kernel = loaded->kernel(describeKernel("nowhere"));
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.error().status, AnyOf(KPKG_ERROR_UNSUPPORTED, KPKG_ERROR_FORMAT));
  EXPECT_THAT(kernel.error().message, HasSubstr("nowhere"));
}

TEST_P(DeviceConformance, EventsAreInTheOrderOfTheStream) {
  auto loaded = device->load(image, "the good image").value();
  auto kernel = loaded->kernel(describeKernel("doubled_blocks")).value();
  Doubled bound = bindDoubled(*kernel, 1 << 16);
  std::byte *x = upload(ramp(1 << 16)), *y = allocate(4 << 16);
  auto start = device->createEvent().value(), end = device->createEvent().value();
  ASSERT_TRUE(start->record(stream));
  runDoubled(bound, x, y);
  ASSERT_TRUE(end->record(stream));
  ASSERT_TRUE(device->synchronize(stream));
  EXPECT_GE(end->secondsSince(*start).value(), 0);
  EXPECT_LE(start->secondsSince(*end).value(), 0);
  EXPECT_LT(end->secondsSince(*start).value(), 60);
}

TEST_P(DeviceConformance, GraphsReplayTheirLaunches) {
  auto loaded = device->load(image, "the good image").value();
  auto kernel = loaded->kernel(describeKernel("doubled_blocks")).value();
  Doubled bound = bindDoubled(*kernel, 4);
  std::byte *x = upload(ramp(4, 1)), *y = upload(std::vector<float>(4));
  EXPECT_FALSE(device->isCapturing(stream).value());
  if (Status begun = device->beginCapture(stream); !begun) {
    EXPECT_EQ(begun.error().status, KPKG_ERROR_UNSUPPORTED);
    EXPECT_THAT(begun.error().message, HasSubstr("graphs"));
    EXPECT_EQ(device->endCapture(stream).error().status, KPKG_ERROR_UNSUPPORTED);
    return;
  }
  EXPECT_TRUE(device->isCapturing(stream).value());
  runDoubled(bound, x, y);
  runDoubled(bound, y, x);
  auto graph = device->endCapture(stream);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_FALSE(device->isCapturing(stream).value());
  EXPECT_EQ(download<float>(y, 4), std::vector<float>(4)) << "captured work does not run";
  for (float factor : {4.0f, 16.0f}) {
    ASSERT_TRUE((*graph)->replay(stream));
    EXPECT_EQ(download<float>(x, 4), (std::vector<float>{factor, 2 * factor, 3 * factor, 4 * factor}));
  }
}

INSTANTIATE_TEST_SUITE_P(, DeviceConformance,
                         testing::Values(Kind{"cpu", cpu::hostDriver, "doubled.so"},
                                         Kind{"cuda", cuda::gpuDriver, "ConformanceKernels.ptx"}),
                         [](const auto &info) { return info.param.name; });

} // namespace
