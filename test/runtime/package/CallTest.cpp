// Tests calls through the C++ API: results, defaults, instances, copies, outputs, errors, counters.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/package/SamplePackage.h"

#include <kpkg/kpkg.hpp>

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>

using namespace kpkg;
using namespace kpkg::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {
class Call : public testing::Test {
protected:
  void SetUp() override { library.emplace(std::move(Library::openMemory(bytes, "sample").value())); }
  Op op(const std::string &name) { return library->op(name).value(); }
  static Tensor filled(std::vector<int64_t> shape) {
    Tensor tensor = Tensor::empty(DType::Float32, std::move(shape));
    std::iota(tensor.as<float>(), tensor.as<float>() + tensor.elements(), 0.f);
    return tensor;
  }
  static std::vector<float> values(const Tensor &tensor) {
    return {tensor.as<float>(), tensor.as<float>() + tensor.elements()};
  }

  std::string bytes = samplePackage();
  std::optional<Library> library;
};
} // namespace

TEST_F(Call, GivesNewTensors) {
  auto result = op("test::scale").call({}, {filled({2, 3})}, {{"alpha", 10}});
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->size(), 1u);
  EXPECT_THAT(result->front().shape(), ElementsAre(2, 3));
  EXPECT_THAT(values(result->front()), ElementsAre(0, 10, 20, 30, 40, 50));
}

TEST_F(Call, FillsDefaultsAndFindsOpsWithoutNamespace) {
  auto result = op("scale").call({}, {filled({1, 3})});
  EXPECT_THAT(values(result.value().front()), ElementsAre(0, 2, 4));
}

TEST_F(Call, UsesTheCacheAndKeepsScalarsApart) {
  Op scale = op("scale");
  for (int i = 0; i < 5; ++i)
    EXPECT_THAT(values(scale.call({}, {filled({1, 3})}, {{"alpha", double(i)}}).value().front()),
                ElementsAre(0, i, 2 * i));
  EXPECT_EQ(scale.stats().calls, 5u);
  EXPECT_EQ(scale.stats().resolutions, 1u);
  EXPECT_EQ(scale.stats().launches, 5u);
  scale.call({}, {filled({2, 3})}).value();
  EXPECT_EQ(scale.stats().resolutions, 2u);
}

TEST_F(Call, TakesStridedTensors) {
  Tensor x = filled({3, 2});
  Tensor turned(x.data(), DType::Float32, {2, 3}, {1, 2}, Cpu, x.owner());
  Tensor y = std::move(op("scale").call({}, {turned}).value().front());
  // empty_like keeps the memory format.
  std::vector<float> row;
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 3; ++j)
      row.push_back(y.as<float>()[i * y.strides()[0] + j * y.strides()[1]]);
  EXPECT_THAT(row, ElementsAre(0, 4, 8, 2, 6, 10));
  EXPECT_THAT(op("scale").explain({turned}).value(), HasSubstr("+ scale_rows[T=float32, COLS=64] any"));
}

TEST_F(Call, CountsCopies) {
  Op transposed = op("scale_transposed");
  Tensor y = std::move(transposed.call({}, {filled({2, 3})}).value().front());
  EXPECT_THAT(y.shape(), ElementsAre(3, 2));
  EXPECT_THAT(values(y), ElementsAre(0, 6, 2, 8, 4, 10));
  EXPECT_EQ(transposed.stats().copies, 1u);
  EXPECT_EQ(transposed.stats().copied_bytes, 24u);
}

TEST_F(Call, RunsPersistentKernels) {
  auto result = op("number").call({}, {}, {{"n", 20000}});
  ASSERT_TRUE(result) << result.error().message;
  for (int64_t i = 0; i < 20000; ++i)
    ASSERT_EQ(result->front().as<int64_t>()[i], i / 8);
}

TEST_F(Call, ResultsMayBePartsOfAnAllocation) {
  Op tail = op("tail");
  Tensor y = std::move(tail.call({}, {}, {{"n", 20}}).value().front());
  EXPECT_THAT(y.shape(), ElementsAre(19));
  EXPECT_EQ(y.as<int64_t>()[6], 0);
  EXPECT_EQ(y.as<int64_t>()[7], 1);
  Tensor into = Tensor::empty(DType::Int64, {19});
  ASSERT_TRUE(tail.callInto({}, {}, {into}, {{"n", 20}}));
  EXPECT_EQ(into.as<int64_t>()[7], 1);
  EXPECT_EQ(into.as<int64_t>()[18], 2);
}

TEST_F(Call, HandlesEmptyTensors) {
  auto result = op("scale").call({}, {Tensor(nullptr, DType::Float32, {0, 3})});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(result->front().shape(), ElementsAre(0, 3));
}

TEST_F(Call, WritesInPlace) {
  Tensor x = filled({2, 2});
  auto result = op("scale_").call({}, {x}, {{"alpha", 3.0}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(values(x), ElementsAre(0, 3, 6, 9));
}

TEST_F(Call, RefusesWrittenMemoryThatOverlapsItself) {
  float one = 1;
  Tensor x(&one, DType::Float32, {2, 2}, {0, 0}, Cpu, nullptr);
  auto result = op("scale_").call({}, {x}, {{"alpha", 3.0}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().status, KPKG_ERROR_KERNEL);
  EXPECT_THAT(result.error().message, HasSubstr("share memory"));
}

TEST_F(Call, IntoTheCallersMemory) {
  Op scale = op("scale");
  Tensor x = filled({2, 2}), y = Tensor::empty(DType::Float32, {2, 2});
  auto result = scale.callInto({}, {x}, {y});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->front().data(), y.data());
  EXPECT_THAT(values(y), ElementsAre(0, 2, 4, 6));
  EXPECT_EQ(scale.stats().copies, 0u);
}

TEST_F(Call, IntoStridedOrSharedMemoryGoesThroughACopy) {
  Op scale = op("scale");
  Tensor x = filled({2, 2}), memory = filled({8});
  Tensor y(memory.data(), DType::Float32, {2, 2}, {4, 2}, Cpu, nullptr);
  ASSERT_TRUE(scale.callInto({}, {x}, {y}));
  EXPECT_THAT(values(memory), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(scale.stats().copies, 1u);
  ASSERT_TRUE(scale.callInto({}, {x}, {x}));
  EXPECT_THAT(values(x), ElementsAre(0, 2, 4, 6));
  EXPECT_EQ(scale.stats().copies, 2u);
}

TEST_F(Call, RefusesOutputsThatDoNotFit) {
  Op scale = op("scale");
  Tensor x = filled({2, 2});
  auto message = [&](Tensor output) { return scale.callInto({}, {x}, {output}).error().message; };
  EXPECT_THAT(message(filled({2, 3})), HasSubstr("output 0 has shape [2, 3], the result has [2, 2]"));
  EXPECT_THAT(message(Tensor::empty(DType::Int32, {2, 2})), HasSubstr("output 0 is int32, the result is float32"));
  EXPECT_THAT(message(Tensor(x.data(), DType::Float32, {2, 2}, {0, 1}, Cpu, nullptr)), HasSubstr("share memory"));
}

TEST_F(Call, InfersWithoutMemory) {
  auto result = op("scale_transposed").infer({Tensor(nullptr, DType::Float32, {5, 7})});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(result->front().shape(), ElementsAre(7, 5));
  EXPECT_EQ(result->front().data(), nullptr);
}

TEST_F(Call, ReportsWhatThePlanRaises) {
  auto result = op("scale").call({}, {filled({4})});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().status, KPKG_ERROR_KERNEL);
  EXPECT_TRUE(result.error().isKernelError());
  EXPECT_THAT(result.error().message, HasSubstr("test::scale: x must have rank 2, got 1"));
  EXPECT_EQ(result.error().op, "test::scale");
  EXPECT_THROW(result.value(), KernelError);
}

TEST_F(Call, RefusesArgumentsOfTheWrongKind) {
  auto message = [&](const std::vector<Tensor> &tensors, const std::vector<Named> &named) {
    return op("scale").call({}, tensors, named).error().message;
  };
  EXPECT_THAT(message({}, {}), HasSubstr("argument 'x' is missing"));
  EXPECT_THAT(message({}, {{"x", nullptr}}), HasSubstr("argument 'x' is None, expected a tensor"));
  EXPECT_THAT(message({filled({1, 1})}, {{"alpha", "two"}}),
              HasSubstr("argument 'alpha' is a string, expected a float"));
  EXPECT_THAT(message({filled({1, 1})}, {{"beta", 1}}), HasSubstr("it has no argument 'beta'"));
  EXPECT_THAT(message({filled({1, 1}), filled({1, 1})}, {}), HasSubstr("2 tensors given, it takes 1"));
  EXPECT_THAT(message({Tensor(nullptr, DType::Float32, {2, 2})}, {}), HasSubstr("argument 'x' has no memory"));
  alignas(8) char memory[16] = {};
  EXPECT_THAT(message({Tensor(memory + 1, DType::Float32, {1, 1})}, {}), HasSubstr("not aligned to its element size"));
}

TEST_F(Call, SaysThatTheBuildLeftOutDTypes) {
  nlohmann::json manifest = sampleManifest();
  manifest["producer"]["options"] = "-O0 --fast --dtypes=float32; -O2";
  std::string narrow = samplePackage(manifest);
  Library opened = Library::openMemory(narrow, "narrow").value();
  Error error = opened.op("scale").value().call({}, {Tensor::empty(DType::Int32, {1, 1})}).error();
  EXPECT_EQ(error.status, KPKG_ERROR_NO_INSTANCE);
  EXPECT_THAT(error.message, HasSubstr("(float32); the package was built with --dtypes=float32, which leaves out "
                                       "other dtypes of the same kind"));
}

TEST_F(Call, SaysWhyNoInstanceFits) {
  auto error = [&](Tensor x) { return op("scale").call({}, {std::move(x)}).error(); };
  Error dtype = error(Tensor::empty(DType::Int32, {1, 1}));
  EXPECT_EQ(dtype.status, KPKG_ERROR_NO_INSTANCE);
  EXPECT_THAT(dtype.message, HasSubstr("dtype int32 is not supported by test::scale (float32)"));
  Error large = error(filled({1, 2000}));
  EXPECT_EQ(large.status, KPKG_ERROR_NO_INSTANCE);
  EXPECT_THAT(large.message, HasSubstr("COLS = 2000 is more than test::scale supports (64, 1024)"));
  EXPECT_EQ(error(Tensor(nullptr, DType::None, {1, 1})).status, KPKG_ERROR_NO_INSTANCE);
  Error device = error(Tensor(&dtype, DType::Float32, {1, 1}, {KPKG_DEVICE_CUDA, 0}));
  EXPECT_EQ(device.status, KPKG_ERROR_DEVICE);
  EXPECT_THAT(device.message, HasSubstr("no NVIDIA driver"));
  Error foreign = error(Tensor(&dtype, DType::Float32, {1, 1}, {10, 0}));
  EXPECT_EQ(foreign.status, KPKG_ERROR_NO_INSTANCE);
  EXPECT_THAT(foreign.message, HasSubstr("is on a device of type 10"));
}

TEST_F(Call, ReportsFailedAssertsAndPrints) {
  std::vector<std::string> lines;
  kpkg_set_log([](void *context, kpkg_log_level level,
                  const char *message) { static_cast<std::vector<std::string> *>(context)->push_back(message); },
               &lines);
  auto result = op("complain").call({}, {});
  kpkg_set_log(nullptr, nullptr);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().status, KPKG_ERROR_KERNEL);
  EXPECT_THAT(result.error().message, HasSubstr("assertion failed: block is not 3"));
  EXPECT_THAT(result.error().instance, HasSubstr("complain[] any"));
  EXPECT_THAT(lines, ElementsAre("block 0", "block 1", "block 2", "block 3"));
}

TEST_F(Call, ExplainsEveryInstance) {
  std::string text = op("scale").explain({filled({2, 100})}).value();
  EXPECT_THAT(text, HasSubstr("test::scale: runs kernels of 'sample'"));
  EXPECT_THAT(text, HasSubstr("- scale_rows[T=float32, COLS=64] any " + runnableTarget() +
                              ": has COLS=64, wanted at least 100"));
  EXPECT_THAT(text, HasSubstr("+ scale_rows[T=float32, COLS=1024] unit " + runnableTarget() + ": chosen"));
  EXPECT_THAT(text, HasSubstr("any " + runnableTarget() + ": would do; scale_rows[T=float32, COLS=1024] unit"));
  EXPECT_THAT(text, HasSubstr("unit " + foreignTarget() + ": is for " + foreignTarget() + ", this CPU runs"));

  auto json = nlohmann::json::parse(op("scale").explain({filled({2, 10})}, {}, KPKG_JSON).value());
  EXPECT_EQ(json["flops"], 20.0);
  EXPECT_EQ(json["bytes"], 160.0);
  EXPECT_EQ(json["launches"][0]["grid"], nlohmann::json({2, 1, 1}));
  EXPECT_THAT(op("scale").explain({filled({2, 2000})}).value(), HasSubstr("fails: no instance can run it"));
  EXPECT_EQ(op("scale").stats().calls, 0u);
}

TEST_F(Call, TellsWhatRan) {
  Op scale = op("scale");
  scale.call({}, {filled({2, 3})}).value();
  scale.call({}, {filled({2, 3})}).value();
  auto info = nlohmann::json::parse(scale.kernelInfo());
  EXPECT_EQ(info["calls"], 2);
  EXPECT_EQ(info["instances"][0]["launches"], 2);
  EXPECT_EQ(info["instances"][0]["instance"], "scale_rows[T=float32, COLS=64] unit " + runnableTarget());
}

TEST_F(Call, DescribesSchemas) {
  Op scale = op("scale");
  EXPECT_EQ(scale.schema(), "scale(Tensor x, float alpha=2.0) -> Tensor");
  ASSERT_EQ(scale.arguments().size(), 2u);
  EXPECT_STREQ(scale.arguments()[1].name, "alpha");
  EXPECT_EQ(scale.arguments()[1].default_value.as.real, 2.0);
  EXPECT_TRUE(op("scale_").arguments()[0].mutates);
  EXPECT_EQ(library->ops().size(), 8u);
  EXPECT_TRUE(library->section("plan/test::scale"));
}

TEST_F(Call, SurvivesManySignatures) {
  Op scale = op("scale");
  for (int64_t rows = 0; rows < 6000; ++rows)
    ASSERT_TRUE(scale.call({}, {Tensor::empty(DType::Float32, {rows, 1})}));
  EXPECT_EQ(scale.stats().resolutions, 6000u);
}

TEST_F(Call, VerifiesAndPrewarms) {
  Status verified = library->verify();
  EXPECT_TRUE(verified) << verified.error().message;
  EXPECT_TRUE(library->prewarm());
  EXPECT_EQ(library->prewarm({10, 0}).error().status, KPKG_ERROR_UNSUPPORTED);
  EXPECT_EQ(library->prewarm({KPKG_DEVICE_CUDA, 0}).error().status, KPKG_ERROR_DEVICE);
}

TEST_F(Call, DlpackGoesInAndOut) {
  for (bool versioned : {false, true}) {
    Tensor x = filled({2, 3});
    std::weak_ptr<void> memory = x.owner();
    void *managed = x.toDlpack(versioned).value();
    x = Tensor();
    EXPECT_FALSE(memory.expired());
    // The layouts of DLManagedTensor and DLManagedTensorVersioned, as DLPack 1.0 defines them.
    struct Unversioned {
      char dl_tensor[48];
      void *context;
      void (*deleter)(Unversioned *);
    };
    struct Versioned {
      uint32_t major, minor;
      void *context;
      void (*deleter)(Versioned *);
      uint64_t flags;
      char dl_tensor[48];
    };
    auto check = [&](auto *typed) {
      auto back = Tensor::fromDlpack(typed);
      ASSERT_TRUE(back) << back.error().message;
      EXPECT_THAT(values(op("scale").call({}, {*back}).value().front()), ElementsAre(0, 2, 4, 6, 8, 10));
    };
    versioned ? check(static_cast<Versioned *>(managed)) : check(static_cast<Unversioned *>(managed));
    EXPECT_TRUE(memory.expired());
  }
}

TEST(Tensor, RefusesShapesThatNoMemoryHas) {
  for (const std::vector<int64_t> &shape : std::vector<std::vector<int64_t>>{
           {-1}, {2, -3}, {0, -1}, {int64_t(1) << 62}, {int64_t(1) << 40, int64_t(1) << 40}}) {
    EXPECT_THROW(Tensor::empty(DType::Float32, shape), Exception);
    auto onDevice = Tensor::empty(DType::Float32, shape, Cpu);
    ASSERT_FALSE(onDevice);
    EXPECT_EQ(onDevice.error().status, KPKG_ERROR_USE);
    EXPECT_THAT(onDevice.error().message, HasSubstr("negative or too large"));
  }
  EXPECT_EQ(Tensor::empty(DType::Float32, {0, int64_t(1) << 62, 8}).elements(), 0);
}
