// A sample op with GPU instances, called through a stand-in for the driver.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_TEST_CUDACALL_H
#define KPKG_TEST_CUDACALL_H

#include "runtime/device/cuda/CudaDevice.h"
#include "test/runtime/device/cuda/fake_driver.h"
#include "test/runtime/package/SamplePackage.h"

#include <kpkg/kpkg.hpp>

#include <cstdlib>
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace kpkg::test {

class CudaCall : public testing::Test {
protected:
  static void SetUpTestSuite() {
    setenv("KPKG_CUDA_DRIVER", KPKG_TEST_FAKE_DRIVER, 1);
    setenv("KPKG_CUPTI", KPKG_TEST_FAKE_CUPTI, 1);
  }

  CudaCall() {
    fake = static_cast<FakeDriver *>(::dlsym(::dlopen(KPKG_TEST_FAKE_DRIVER, RTLD_NOW), "fake"));
    *fake = {};
    fake->major = 9, fake->devices = 2, fake->clusters = 8, fake->wordCount = 14;
    cuda::forgetDevices();
    manifest = sampleManifest();
    nlohmann::json any = manifest["instances"][0];
    any["section"] = sampleImage, any["target"] = "sm_90a", any["symbol"] = "any_kernel";
    any["params"] = {"float32", 1024};
    any["launch"] = {{"threads", 128}};
    nlohmann::json vector = any;
    vector["variant"] = "vector", vector["symbol"] = "vector_kernel";
    vector["launch"] = {{"threads", 128}, {"blocks", 4}, {"shared", 65536}};
    vector["facts"] = {{{"arg", 0}, {"unit", 1}, {"align", 16}, {"divisible", 4}, {"index", 32}},
                       {{"arg", 1}, {"unit", 1}, {"align", 16}, {"divisible", 4}, {"index", 32}}};
    manifest["instances"].push_back(any);
    manifest["instances"].push_back(vector);
    reload(manifest);
  }

  Tensor onDevice(float *data, std::vector<int64_t> shape, int32_t device = 0) {
    return Tensor(data, DType::Float32, std::move(shape), {KPKG_DEVICE_CUDA, device});
  }
  Result<std::vector<Tensor>> scale(Tensor x, Tensor y) {
    return library->op("test::scale")->callInto({stream}, {x}, {y});
  }
  void reload(const nlohmann::json &changed) {
    bytes = samplePackage(changed);
    library.emplace(Library::openMemory(bytes, "sample.kpkg").value());
  }

  FakeDriver *fake = nullptr;
  nlohmann::json manifest;
  std::string bytes;
  std::optional<Library> library;
  void *stream = &bytes;
  alignas(64) float x[1024], y[1024];
};

} // namespace kpkg::test
#endif
