// Tests fallbacks for calls without an instance and for ops without a package, late packages, and packaged references.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/package/SamplePackage.h"

#include <kpkg/kpkg.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kpkg;
using namespace kpkg::test;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {
class LateFallbacks : public testing::Test {
protected:
  void SetUp() override {
    kpkg_set_log([](void *context, kpkg_log_level,
                    const char *message) { static_cast<LateFallbacks *>(context)->warnings.push_back(message); },
                 this);
  }
  void TearDown() override { kpkg_set_log(nullptr, nullptr); }

  /// Returns 100 times a float vector or matrix, times argument 1 if the call has it.
  static kpkg_status fallback(const kpkg_op *, kpkg_call &call) {
    const kpkg_tensor &x = *call.arguments[0].as.tensor;
    int64_t count = 1;
    for (int32_t d = 0; d < x.rank; ++d)
      count *= x.shape[d];
    kpkg_allocation wanted = {sizeof wanted, 0, x.rank, x.dtype, x.device, x.shape, x.strides, size_t(4 * count)};
    void *data = nullptr;
    if (kpkg_status status = call.allocate(call.allocate_context, &wanted, &data); status != KPKG_OK)
      return status;
    double factor = call.argument_count > 1 ? call.arguments[1].as.real : 1.0;
    for (int64_t i = 0; i < count; ++i)
      static_cast<float *>(data)[i] = float(100 * factor) * static_cast<const float *>(x.data)[i];
    kpkg_result &result = call.results[0];
    result = {};
    result.kind = KPKG_TENSOR;
    result.dtype = x.dtype;
    result.rank = x.rank;
    result.data = data;
    for (int32_t d = 0; d < x.rank; ++d)
      result.shape[d] = x.shape[d], result.strides[d] = x.strides[d];
    return KPKG_OK;
  }
  Tensor row() { return Tensor(numbers, DType::Float32, {1, 2}); }

  static constexpr const char *scaleSchema = "test::scale(Tensor x, float alpha=2.0) -> Tensor";
  std::string bytes = samplePackage();
  float numbers[2] = {3, 4};
  Registry registry;
  std::vector<std::string> warnings;
};
} // namespace

TEST_F(LateFallbacks, RunWithoutAnyPackage) {
  ASSERT_TRUE(registry.setFallback("test::scale", fallback));
  Op scale = registry.op("scale").value();
  EXPECT_EQ(scale.name(), "test::scale");
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(scale.call({}, {row()}).value().front().as<float>()[1], 400);
  EXPECT_THAT(warnings, ElementsAre("op test::scale runs its fallback: no package of the registry has test::scale"));
  auto info = json::parse(scale.kernelInfo());
  EXPECT_EQ(info["fallbacks"], 3);
  EXPECT_TRUE(info["packages"].empty());
  EXPECT_THAT(scale.explain({row()}).value(), HasSubstr("runs the fallback: no package has it"));
  EXPECT_THAT(scale.call({}, {row()}, {{"alpha", 2.0}}).error().message, HasSubstr("give setFallback its schema"));
  EXPECT_EQ(scale.infer({row()}).error().status, KPKG_ERROR_UNSUPPORTED);
}

TEST_F(LateFallbacks, WithASchemaTakeNamesAndDefaults) {
  ASSERT_TRUE(registry.setFallback(scaleSchema, fallback));
  Op scale = registry.op("test::scale").value();
  EXPECT_EQ(scale.schema(), "scale(Tensor x, float alpha=2.0) -> Tensor");
  EXPECT_EQ(scale.call({}, {row()}).value().front().as<float>()[0], 600);
  EXPECT_EQ(scale.call({}, {row()}, {{"alpha", 0.5}}).value().front().as<float>()[0], 150);
  EXPECT_THAT(scale.call({}, {row()}, {{"beta", 0.5}}).error().message, HasSubstr("no argument 'beta'"));
  EXPECT_EQ(scale.call({}, {}).error().status, KPKG_ERROR_KERNEL);
}

TEST_F(LateFallbacks, PackagesThatComeLaterGoFirst) {
  ASSERT_TRUE(registry.setFallback(scaleSchema, fallback));
  Op early = registry.op("test::scale").value();
  EXPECT_EQ(early.call({}, {row()}).value().front().as<float>()[0], 600);
  ASSERT_TRUE(registry.add(Library::openMemory(bytes, "sample").value()));
  for (const Op &op : {early, registry.op("test::scale").value()})
    EXPECT_EQ(op.call({}, {row()}).value().front().as<float>()[0], 6);
  EXPECT_EQ(registry.ops().size(), 8u);
  Tensor wide = Tensor::empty(DType::Float32, {1, 2000});
  EXPECT_TRUE(early.call({}, {wide})) << "no instance has 2000 columns";
  EXPECT_EQ(early.stats().fallbacks, 2u);
}

TEST_F(LateFallbacks, GoFromANameToAPackage) {
  ASSERT_TRUE(registry.setFallback("test::scale", fallback));
  Op early = registry.op("test::scale").value();
  ASSERT_TRUE(registry.add(Library::openMemory(bytes, "sample").value()));
  EXPECT_EQ(early.call({}, {row()}).value().front().as<float>()[0], 6);
  Op late = registry.op("test::scale").value();
  EXPECT_EQ(late.call({}, {row()}, {{"alpha", 3.0}}).value().front().as<float>()[0], 9);
}

TEST_F(LateFallbacks, GetTheirSchemaLater) {
  ASSERT_TRUE(registry.setFallback("test::scale", fallback));
  ASSERT_TRUE(registry.setFallback(scaleSchema, fallback));
  EXPECT_EQ(registry.op("scale").value().call({}, {row()}, {{"alpha", 0.5}}).value().front().as<float>()[0], 150);
}

TEST_F(LateFallbacks, StrictRefuses) {
  ASSERT_TRUE(registry.setFallback("test::scale", fallback));
  ASSERT_TRUE(registry.setPolicy(Policy::Strict));
  auto error = registry.op("scale").value().call({}, {row()}).error();
  EXPECT_EQ(error.status, KPKG_ERROR_NO_INSTANCE);
  EXPECT_THAT(error.message,
              HasSubstr("no package of the registry has test::scale (there is a fallback, but the policy is strict)"));
}

TEST_F(LateFallbacks, AreForgottenWhenTheyAreRemoved) {
  kpkg_registry *plain = nullptr;
  ASSERT_EQ(kpkg_registry_create(&plain), KPKG_OK);
  auto run = [](void *, const kpkg_op *, kpkg_call *) { return KPKG_OK; };
  const kpkg_op *op = nullptr;
  EXPECT_EQ(kpkg_registry_set_fallback(plain, "a::b", nullptr, nullptr, nullptr), KPKG_ERROR_NOT_FOUND);
  EXPECT_EQ(kpkg_registry_set_fallback(plain, "a::b", run, nullptr, nullptr), KPKG_OK);
  EXPECT_EQ(kpkg_registry_op(plain, "a::b", &op), KPKG_OK);
  EXPECT_EQ(kpkg_registry_set_fallback(plain, "a::b", nullptr, nullptr, nullptr), KPKG_OK);
  EXPECT_EQ(kpkg_registry_op(plain, "a::b", &op), KPKG_ERROR_NOT_FOUND);
  kpkg_registry_destroy(plain);
}

TEST_F(LateFallbacks, RefuseWhatIsNoSchema) {
  struct Case {
    const char *op, *message;
  };
  for (auto [op, message] : {Case{"scale", "'scale' has no namespace"}, Case{"::scale", "has no namespace"},
                             Case{"a::b(Tensor x", "expected 'name(arguments) -> results'"},
                             Case{"a::b(x) -> Tensor", "expected a type and a name"},
                             Case{"a::b(Matrix x) -> Tensor", "has the unknown type 'Matrix'"},
                             Case{"a::b(int n=two) -> Tensor", "has the default 'two', which is no value"},
                             Case{"a::b(int n=2.5) -> Tensor", "a default that does not fit its type"},
                             Case{"a::b(int n) -> int", "has the result type 'int'"}}) {
    Status status = registry.setFallback(op, fallback);
    ASSERT_FALSE(status) << op;
    EXPECT_EQ(status.error().status, KPKG_ERROR_USE);
    EXPECT_THAT(status.error().message, HasSubstr(message));
  }
}

TEST_F(LateFallbacks, ReadEveryTypeOfASchema) {
  ASSERT_TRUE(
      registry.setFallback("a::b(Tensor x, Tensor? y=None, *, int[] dim=[1, -2], str s=\"a, b\", bool flag=True, "
                           "ScalarType dtype=float32, float eps=1e-5) -> (Tensor, Tensor?)",
                           [](const kpkg_op *, kpkg_call &call) {
                             EXPECT_EQ(call.arguments[1].kind, KPKG_NONE);
                             EXPECT_EQ(call.arguments[2].as.list[1], -2);
                             EXPECT_STREQ(call.arguments[3].as.string, "a, b");
                             EXPECT_EQ(call.arguments[4].as.integer, 1);
                             EXPECT_EQ(call.arguments[5].as.integer, KPKG_FLOAT32);
                             EXPECT_EQ(call.arguments[6].as.real, 1e-5);
                             call.results[0] = call.results[1] = {};
                             return KPKG_OK;
                           }));
  Op op = registry.op("a::b").value();
  EXPECT_EQ(op.arguments().size(), 7u);
  EXPECT_EQ(op.info().result_count, 2);
  EXPECT_TRUE(op.call({}, {row()}));
}

TEST_F(LateFallbacks, DisagreeWithPackagesOfAnotherSchema) {
  ASSERT_TRUE(registry.setFallback("test::scale(Tensor x, float beta=2.0) -> Tensor", fallback));
  EXPECT_THAT(registry.add(Library::openMemory(bytes, "sample").value()).error().message,
              HasSubstr("its fallback was registered with 'scale(Tensor x, float beta=2.0) -> Tensor'"));
  Registry other;
  ASSERT_TRUE(other.add(Library::openMemory(bytes, "sample").value()));
  EXPECT_THAT(other.setFallback("test::scale(Tensor x, float alpha=3.0) -> Tensor", fallback).error().message,
              HasSubstr("op test::scale has 'scale(Tensor x, float alpha=2.0) -> Tensor'"));
  EXPECT_TRUE(other.setFallback("test::scale(Tensor x, *, float alpha = 2) -> Tensor", fallback));
}

namespace {
/// Makes test::spread, which has the arguments of test::scale, its reference. Calls with 100 columns have no instance.
class LastResort : public LateFallbacks {
protected:
  void SetUp() override {
    LateFallbacks::SetUp();
    json manifest = sampleManifest();
    manifest["ops"][0]["reference"] = "test::spread";
    bytes = samplePackage(manifest);
    ASSERT_TRUE(registry.add(Library::openMemory(bytes, "sample").value()));
    ASSERT_TRUE(registry.restrict("scale", R"({"params": {"COLS": ["64"]}})"));
    std::fill_n(x.as<float>(), 1600, 3.0f);
  }
  Result<std::vector<Tensor>> call() { return registry.op("scale").value().call({}, {x}); }
  Tensor x = Tensor::empty(DType::Float32, {16, 100});
};
} // namespace

TEST_F(LastResort, IsThePackagedReference) {
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(call().value().front().as<float>()[1599], 6);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("op test::scale runs its last fallback, the reference 'test::spread', which is "
                                     "slow: test::scale: no instance"));
  Op scale = registry.op("scale").value();
  EXPECT_EQ(scale.stats().references, 2u);
  EXPECT_EQ(json::parse(scale.kernelInfo())["references"], 2);
  EXPECT_EQ(json::parse(scale.kernelInfo())["fallback_reasons"].begin().value(), 2);
  EXPECT_THAT(scale.explain({x}).value(), HasSubstr("runs the reference 'test::spread'"));
}

TEST_F(LastResort, WritesIntoOutputs) {
  Tensor out = Tensor::empty(DType::Float32, {16, 100});
  ASSERT_TRUE(registry.op("scale").value().callInto({}, {x}, {out}));
  EXPECT_EQ(out.as<float>()[1599], 6);
}

TEST_F(LastResort, IsAnErrorUnderStrict) {
  ASSERT_TRUE(registry.setPolicy(Policy::Strict));
  EXPECT_THAT(call().error().message, HasSubstr("(the package has a reference, but the policy is strict)"));
}

TEST_F(LastResort, ComesAfterTheFallback) {
  ASSERT_TRUE(registry.setFallback("test::scale", fallback));
  EXPECT_EQ(call().value().front().as<float>()[0], 600);
  ASSERT_TRUE(registry.setFallback("test::scale", [](const kpkg_op *, kpkg_call &) {
    return kpkg_set_error(KPKG_ERROR_NO_INSTANCE, "not for such calls");
  }));
  EXPECT_EQ(call().value().front().as<float>()[0], 6);
  EXPECT_THAT(warnings.back(), HasSubstr("its fallback: not for such calls"));
}

TEST_F(LastResort, SaysWhyTheReferenceCannotRunEither) {
  Tensor wide = Tensor::empty(DType::Float32, {16, 2000});
  EXPECT_THAT(registry.op("scale").value().call({}, {wide}).error().message, HasSubstr("; its reference: "));
}

TEST_F(LastResort, IsNoOpThatTakesOtherArguments) {
  json manifest = sampleManifest();
  manifest["ops"][0]["reference"] = "test::scale_transposed";
  std::string other = samplePackage(manifest);
  Registry fresh;
  ASSERT_TRUE(fresh.add(Library::openMemory(other, "other").value()));
  Tensor wide = Tensor::empty(DType::Float32, {16, 2000});
  EXPECT_THAT(fresh.op("scale").value().call({}, {wide}).error().message, HasSubstr("there is no fallback"));
}

TEST_F(LastResort, IsNotForOpsOfALibraryAlone) {
  auto library = Library::openMemory(bytes, "sample").value();
  EXPECT_EQ(library.op("scale").value().call({}, {Tensor::empty(DType::Float32, {16, 2000})}).error().status,
            KPKG_ERROR_NO_INSTANCE);
}

namespace {
class Fallbacks : public testing::Test {
protected:
  void SetUp() override {
    kpkg_set_log([](void *context, kpkg_log_level,
                    const char *message) { static_cast<Fallbacks *>(context)->warnings.push_back(message); },
                 this);
    ASSERT_TRUE(registry.add(Library::openMemory(bytes, "sample").value()));
  }
  void TearDown() override { kpkg_set_log(nullptr, nullptr); }
  /// Doubles int32 tensors.
  static kpkg_status fallback(const kpkg_op *, kpkg_call &call) {
    const kpkg_tensor &x = *call.arguments[0].as.tensor;
    kpkg_allocation wanted = {sizeof wanted, 0,       2,         x.dtype,
                              x.device,      x.shape, x.strides, size_t(4 * x.shape[0] * x.shape[1])};
    void *data = nullptr;
    if (kpkg_status status = call.allocate(call.allocate_context, &wanted, &data); status != KPKG_OK)
      return status;
    for (int64_t i = 0; i < x.shape[0] * x.shape[1]; ++i)
      static_cast<int32_t *>(data)[i] = 2 * static_cast<int32_t *>(x.data)[i];
    kpkg_result &result = call.results[0];
    result = {};
    result.kind = KPKG_TENSOR;
    result.dtype = x.dtype;
    result.rank = 2;
    result.data = data;
    for (int d = 0; d < 2; ++d)
      result.shape[d] = x.shape[d], result.strides[d] = x.strides[d];
    return KPKG_OK;
  }
  Result<std::vector<Tensor>> callInt() {
    return registry.op("scale").value().call({}, {Tensor(numbers, DType::Int32, {1, 2})});
  }

  std::string bytes = samplePackage();
  int32_t numbers[2] = {3, 4};
  Registry registry;
  std::vector<std::string> warnings;
};
} // namespace

TEST_F(Fallbacks, RunWhatNoInstanceCanAndWarnOnce) {
  EXPECT_EQ(callInt().error().status, KPKG_ERROR_NO_INSTANCE);
  ASSERT_TRUE(registry.setFallback("test::scale", fallback));
  for (int i = 0; i < 3; ++i) {
    auto result = callInt();
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->front().as<int32_t>()[1], 8);
  }
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("op test::scale runs its fallback: dtype int32 is not supported"));
  auto info = json::parse(registry.op("scale").value().kernelInfo());
  EXPECT_EQ(info["fallbacks"], 3);
  EXPECT_EQ(info["fallback_reasons"].begin().value(), 3);
}

TEST_F(Fallbacks, StrictNeverFallsBackAndSilentDoesNotWarn) {
  ASSERT_TRUE(registry.setFallback("test::scale", fallback));
  ASSERT_TRUE(registry.setPolicy(Policy::Strict));
  EXPECT_THAT(callInt().error().message, HasSubstr("the policy is strict"));
  ASSERT_TRUE(registry.setPolicy(Policy::Silent));
  EXPECT_TRUE(callInt());
  EXPECT_TRUE(warnings.empty());
}

TEST_F(Fallbacks, AreNotForCallsOfPackagesAlone) {
  ASSERT_TRUE(registry.setFallback("test::scale", fallback));
  Op scale = registry.op("scale").value();
  int64_t shape[2] = {1, 2};
  float inputs[2] = {3, 4}, outputs[2] = {};
  kpkg_tensor x = {numbers, shape, nullptr, 2, KPKG_INT32, Cpu}, y = {outputs, shape, nullptr, 2, KPKG_FLOAT32, Cpu};
  const kpkg_tensor *out = &y;
  kpkg_value argument = {};
  argument.kind = KPKG_TENSOR;
  argument.as.tensor = &x;
  kpkg_result result;
  kpkg_call call = {};
  call.struct_size = sizeof call;
  call.arguments = &argument;
  call.argument_count = 1;
  call.results = &result;
  call.result_capacity = 1;
  call.outputs = &out;
  auto counts = [&] {
    kpkg_op_stats stats = {};
    stats.struct_size = sizeof stats;
    EXPECT_EQ(kpkg_op_get_stats(scale.get(), &stats), KPKG_OK);
    return std::vector<uint64_t>{stats.calls, stats.launches, stats.fallbacks, stats.errors};
  };
  EXPECT_EQ(kpkg_op_call_packaged(scale.get(), &call), KPKG_ERROR_NO_INSTANCE);
  EXPECT_THAT(counts(), ElementsAre(0, 0, 0, 0));
  x.data = inputs, x.dtype = KPKG_FLOAT32;
  EXPECT_EQ(kpkg_op_call_packaged(scale.get(), &call), KPKG_OK);
  EXPECT_EQ(outputs[1], 8);
  EXPECT_THAT(counts(), ElementsAre(1, 1, 0, 0));
  x.rank = -1;
  EXPECT_EQ(kpkg_op_call_packaged(scale.get(), &call), KPKG_ERROR_KERNEL);
  EXPECT_THAT(counts(), ElementsAre(2, 1, 0, 1));
  EXPECT_EQ(kpkg_op_call_packaged(nullptr, &call), KPKG_ERROR_USE);
}

TEST_F(Fallbacks, DoNotHideWrongArguments) {
  ASSERT_TRUE(registry.setFallback("test::scale", fallback));
  float x[3] = {};
  auto result = registry.op("scale").value().call({}, {Tensor(x, DType::Float32, {3})});
  EXPECT_EQ(result.error().status, KPKG_ERROR_KERNEL);
}

TEST_F(Fallbacks, ErrorsComeThrough) {
  ASSERT_TRUE(registry.setFallback("test::scale", [](const kpkg_op *, kpkg_call &) {
    return kpkg_set_error(KPKG_ERROR_DEVICE, "the fallback's own");
  }));
  EXPECT_EQ(callInt().error().message, "the fallback's own");
  EXPECT_THROW(callInt().value(), DeviceError);
}

TEST_F(Fallbacks, LaterLibrariesHelpEarlierOnes) {
  // The first library runs at most 1024 columns, the second up to 4096.
  json manifest = sampleManifest();
  for (json &instance : manifest["instances"])
    if (instance["params"].size() == 2 && instance["params"][1] == 1024)
      instance["params"][1] = 4096;
  std::string second = samplePackage(manifest);
  ASSERT_TRUE(registry.add(Library::openMemory(second, "second").value()));
  Op scale = registry.op("scale").value();
  EXPECT_TRUE(scale.call({}, {Tensor::empty(DType::Float32, {1, 3000})}));
  auto error = scale.call({}, {Tensor::empty(DType::Float32, {1, 5000})}).error();
  EXPECT_THAT(error.message, HasSubstr("; 'second': COLS = 5000"));

  manifest["ops"][0]["schema"] = "scale(Tensor y, float alpha=2.0) -> Tensor";
  manifest["ops"][0]["arguments"][0]["name"] = "y";
  std::string other = samplePackage(manifest);
  EXPECT_THAT(registry.add(Library::openMemory(other, "other").value()).error().message,
              HasSubstr("'other' is not added"));
}

TEST_F(Fallbacks, OpsOutliveTheRegistryObject) {
  std::optional<Op> op;
  {
    Registry local;
    ASSERT_TRUE(local.add(Library::openMemory(bytes, "sample").value()));
    op.emplace(local.op("scale").value());
  }
  float x[1] = {3};
  EXPECT_EQ(*op->call({}, {Tensor(x, DType::Float32, {1, 1})}).value().front().as<float>(), 6);
}
