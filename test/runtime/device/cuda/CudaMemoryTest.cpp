// Tests devices, memory and streams of a GPU from C++ with a stand-in for the driver.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/device/cuda/fake_driver.h"

#include <kpkg/kpkg.hpp>

#include <cstdlib>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

using namespace kpkg;
using testing::HasSubstr;

namespace {

class CudaMemory : public testing::Test {
protected:
  static void SetUpTestSuite() { setenv("KPKG_CUDA_DRIVER", KPKG_TEST_FAKE_DRIVER, 1); }
  CudaMemory() {
    fake = static_cast<FakeDriver *>(::dlsym(::dlopen(KPKG_TEST_FAKE_DRIVER, RTLD_NOW), "fake"));
    *fake = {};
    fake->major = 9, fake->devices = 2;
  }
  FakeDriver *fake = nullptr;
};

TEST_F(CudaMemory, DevicesAreCountedAndDescribed) {
  EXPECT_EQ(cudaDeviceCount().value(), 2);
  DeviceInfo info = describeDevice(cudaDevice(1)).value();
  EXPECT_STREQ(info.name, "Fake");
  EXPECT_STREQ(info.target, "sm_90");
  EXPECT_EQ(info.processors, 4);
  EXPECT_EQ(info.driver_version, 13000);
  EXPECT_EQ(info.memory_bytes, uint64_t(64) << 30);
  EXPECT_EQ(info.cache_bytes, 1u << 20);
  EXPECT_STREQ(describeDevice(Cpu).value().target, kpkg_cpu_target(0));
  auto none = describeDevice(cudaDevice(2));
  ASSERT_FALSE(none);
  EXPECT_TRUE(none.error().isDeviceError());
  EXPECT_THAT(none.error().message, HasSubstr("there is no CUDA device 2"));
}

TEST_F(CudaMemory, AnOlderCallerGetsWhatItKnows) {
  struct {
    kpkg_device_info info;
  } old = {};
  old.info.struct_size = offsetof(kpkg_device_info, memory_bytes);
  ASSERT_EQ(kpkg_device_describe(cudaDevice(), &old.info), KPKG_OK);
  EXPECT_EQ(old.info.driver_version, 13000);
  EXPECT_EQ(old.info.memory_bytes, 0u);
}

TEST_F(CudaMemory, TensorsGoToTheDeviceAndBack) {
  float numbers[12];
  for (int i = 0; i < 12; ++i)
    numbers[i] = float(i);
  Stream stream = Stream::create().value();
  EXPECT_EQ(fake->streams, 1);
  {
    // The second half, with its columns reversed.
    Tensor host(numbers + 8, DType::Float32, {2, 3}, {3, -1}, Cpu, nullptr);
    Tensor device = host.to(cudaDevice(), stream).value();
    EXPECT_EQ(device.strides(), host.strides());
    EXPECT_EQ(fake->allocations, 1);
    Tensor twin = device.to(cudaDevice(), stream).value();
    int waits = fake->waits;
    EXPECT_EQ(waits, 1) << "only the copy from the host waits";
    Tensor back = twin.to(Cpu, stream).value();
    EXPECT_EQ(back.as<float>()[0], 8);
    EXPECT_EQ(back.as<float>()[-2], 6);
    EXPECT_EQ(back.as<float>()[3 - 2], 9);
    EXPECT_EQ(fake->allocations, 2);
  }
  EXPECT_EQ(fake->allocations, 0);
  EXPECT_TRUE(stream.synchronize());
  stream = {};
  EXPECT_EQ(fake->streams, 0);
  auto kept = static_cast<uint64_t *>(::dlsym(::dlopen(KPKG_TEST_FAKE_DRIVER, RTLD_NOW), "keptBytes"));
  EXPECT_EQ(*kept, UINT64_MAX) << "the pool keeps its memory over synchronisations";
  EXPECT_EQ(fake->depth, 0);
}

TEST_F(CudaMemory, AStreamLivesAsLongAsItsMemory) {
  Stream stream = Stream::create().value();
  auto memory = Tensor::empty(DType::Float32, {4}, cudaDevice(), stream);
  ASSERT_TRUE(memory);
  stream = {};
  EXPECT_EQ(fake->streams, 1);
  *memory = {};
  EXPECT_EQ(fake->streams, 0);
  EXPECT_EQ(fake->allocations, 0);
}

TEST_F(CudaMemory, FailuresAreDeviceErrorsWithCallNameAndText) {
  auto huge = Tensor::empty(DType::Float32, {int64_t(1) << 40}, cudaDevice());
  ASSERT_FALSE(huge);
  EXPECT_TRUE(huge.error().isDeviceError());
  EXPECT_THAT(
      huge.error().message,
      HasSubstr("cuMemAllocFromPoolAsync of 4398046511104 bytes failed: CUDA_ERROR_OUT_OF_MEMORY, out of memory"));
  EXPECT_THROW(huge.value(), DeviceError);
  auto across = Tensor::empty(DType::Float32, {4}, cudaDevice(0)).value().to(cudaDevice(1));
  ASSERT_FALSE(across);
  EXPECT_EQ(across.error().status, KPKG_ERROR_UNSUPPORTED);
  EXPECT_EQ(kpkg_memory_allocate({9, 0}, 4, nullptr, nullptr), KPKG_ERROR_USE);
  void *data = nullptr;
  EXPECT_EQ(kpkg_memory_allocate({9, 0}, 4, nullptr, &data), KPKG_ERROR_UNSUPPORTED);
  EXPECT_EQ(kpkg_memory_copy(Cpu, nullptr, Cpu, nullptr, 4, nullptr), KPKG_ERROR_USE);
}

} // namespace
