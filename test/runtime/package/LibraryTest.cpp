// Tests opening packages: refused manifests, trust, digest checks before use, and registries.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/OutputFile.h"
#include "runtime/format/Reader.h"
#include "runtime/format/Writer.h"
#include "test/runtime/package/SamplePackage.h"

#include <kpkg/kpkg.hpp>

#include <filesystem>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kpkg;
using namespace kpkg::test;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Library, RefusesManifestsThatDoNotFitTogether) {
  struct Case {
    const char *message;
    std::function<void(json &)> change;
  };
  const Case cases[] = {
      {"kernels[0] has no `name`", [](json &m) { m["kernels"][0].erase("name"); }},
      {"kernels[0].args[0] has no `rank`", [](json &m) { m["kernels"][0]["args"][0].erase("rank"); }},
      {"kernels is 3, expected a list of at most 65536 items", [](json &m) { m["kernels"] = 3; }},
      {"producer is \"kpkg\", expected an object", [](json &m) { m["producer"] = "kpkg"; }},
      {"instances[0] has no `symbol`", [](json &m) { m["instances"][0]["symbol"] = nullptr; }},
      {"kernel 'complain' is listed twice", [](json &m) { m["kernels"][1]["name"] = "complain"; }},
      {"kernels[0].args[0].kind is \"pointer\", expected one of view, scalar",
       [](json &m) { m["kernels"][0]["args"][0]["kind"] = "pointer"; }},
      {"has the unknown dtype 'float31'", [](json &m) { m["kernels"][0]["args"][0]["dtype"] = "float31"; }},
      {"does not say the dtype of scalar 'alpha'", [](json &m) { m["kernels"][0]["args"][2]["dtype"] = ""; }},
      {"has 1 dtypes, its kernel 3 arguments", [](json &m) { m["instances"][0]["dtypes"] = {"float32"}; }},
      {"as dtype, which is none", [](json &m) { m["kernels"][0]["args"][0]["dtype"] = "COLS"; }},
      {"kernels[0].args[0].rank is 17, expected an integer from 0 to 16",
       [](json &m) { m["kernels"][0]["args"][0]["rank"] = 17; }},
      {"instances[0].kernel is 4, but there are 4 kernels", [](json &m) { m["instances"][0]["kernel"] = 4; }},
      {"has 1 params, its kernel 2", [](json &m) { m["instances"][0]["params"] = {"float32"}; }},
      {"names functions, but its kind is not 'string'",
       [](json &m) { m["kernels"][0]["params"][1]["function"] = true; }},
      {"a parameter of the wrong kind", [](json &m) { m["instances"][0]["params"][1] = "64"; }},
      {"has `unit` 2 for a view of rank 2", [](json &m) { m["instances"][1]["facts"][0]["unit"] = 2; }},
      {"instances[0].scratch is -1, expected an integer from 0 to 1073741824",
       [](json &m) { m["instances"][0]["scratch"] = -1; }},
      {"instances[1].flops[0].factors[0][0] is \"cubes\", expected one of blocks, dim, tiles, clip, share, count",
       [](json &m) { m["instances"][1]["flops"][0]["factors"][0][0] = "cubes"; }},
      {"a factor of no view's dimension", [](json &m) { m["instances"][1]["flops"][0]["factors"][0][2] = 2; }},
      {"said to be in section 'host/none', which is missing",
       [](json &m) { m["instances"][0]["section"] = "host/none"; }},
      {"has the unknown type 'Tensors'", [](json &m) { m["ops"][0]["arguments"][0]["type"] = "Tensors"; }},
      {"a default that does not fit its type", [](json &m) { m["ops"][0]["arguments"][1]["default"] = "x"; }},
      {"op 'test::scale' is listed twice", [](json &m) { m["ops"][1] = m["ops"][0]; }},
  };
  for (const Case &test : cases) {
    json manifest = sampleManifest();
    test.change(manifest);
    std::string bytes = samplePackage(manifest);
    auto library = Library::openMemory(bytes, "sample");
    ASSERT_FALSE(library) << test.message;
    EXPECT_EQ(library.error().status, KPKG_ERROR_FORMAT);
    EXPECT_THAT(library.error().message, HasSubstr("'sample' is refused: "));
    EXPECT_THAT(library.error().message, HasSubstr(test.message));
  }
}

TEST(Library, RefusesSchemasThatAreNotThoseOfTheTables) {
  const char *const schemas[] = {
      "scale(Tensor x, float alpha=2.0) -> (Tensor, Tensor)", // the number of results differs
      "scale(Tensor x, float alpha=2.0) -> int",
      "scale(Tensor? x, float alpha=2.0) -> Tensor",
      "scale(int x, float alpha=2.0) -> Tensor", // an integer would be used as an address
      "scale(Tensor x) -> Tensor",               // an argument would be read beyond the call's arguments
      "scale(Tensor x, float alpha=3.0) -> Tensor",
      "scale(Tensor(a!) x, float alpha=2.0) -> Tensor",
      "scale(Tensor x,  float alpha=2.0) -> Tensor",
      "other(Tensor x, float alpha=2.0) -> Tensor",
      "",
  };
  for (std::string schema : schemas) {
    json manifest = sampleManifest();
    manifest["ops"][0]["schema"] = schema;
    auto library = Library::openMemory(samplePackage(manifest), "sample");
    ASSERT_FALSE(library) << schema;
    EXPECT_EQ(library.error().status, KPKG_ERROR_FORMAT);
    EXPECT_THAT(
        library.error().message,
        HasSubstr("op 'test::scale' has the schema '" + schema +
                  "', but its arguments and results are those of 'scale(Tensor x, float alpha=2.0) -> Tensor'"));
  }
  json manifest = sampleManifest();
  manifest["ops"][0]["schema"] = std::string(5000, '(');
  auto library = Library::openMemory(samplePackage(manifest), "sample");
  ASSERT_FALSE(library);
  EXPECT_LT(library.error().message.size(), 1000u);
}

TEST(Library, SpellsDefaultsOfEveryTypeAsTheCompilerDoes) {
  json manifest = sampleManifest();
  json arguments = json::array();
  auto add = [&](const char *name, const char *type, json value) {
    arguments.push_back({{"name", name}, {"type", type}, {"mut", false}, {"default", std::move(value)}});
  };
  add("a", "float", 1e-5);
  add("b", "float?", nullptr);
  add("c", "int[]", json::array({1, -2}));
  add("d", "str", "mean");
  add("e", "bool", true);
  add("f", "ScalarType", "float32");
  add("g", "int", -1);
  add("h", "float", 1e+22);
  arguments.insert(arguments.begin(), json{{"name", "out"}, {"type", "Tensor?"}, {"mut", true}});
  arguments.insert(arguments.begin(), json{{"name", "x"}, {"type", "Tensor"}, {"mut", true}});
  manifest["ops"][0]["arguments"] = arguments;
  std::string schema = "scale(Tensor(a!) x, Tensor(b!)? out, float a=1e-05, float? b=None, int[] c=[1, -2], "
                       "str d=\"mean\", bool e=True, ScalarType f=float32, int g=-1, float h=1e+22) -> Tensor";
  manifest["ops"][0]["schema"] = schema;
  std::string bytes = samplePackage(manifest);
  auto library = Library::openMemory(bytes, "sample");
  ASSERT_TRUE(library) << library.error().message;
  EXPECT_EQ(library->op("scale").value().schema(), schema);
}

TEST(Library, RefusesNamesThatPyTorchOrPythonDoNotTake) {
  struct Case {
    const char *message;
    std::function<void(json &)> change;
  };
  const Case cases[] = {
      {"is in a namespace of PyTorch's own ops", [](json &op) { op["name"] = "aten::scale"; }},
      {"is no name of the form `namespace::name`", [](json &op) { op["name"] = "scale"; }},
      {"is no name of the form", [](json &op) { op["name"] = "test::scale::x"; }},
      {"is no name of the form", [](json &op) { op["name"] = "test::__class__"; }},
      {"is no name of the form", [](json &op) { op["name"] = "test::scale.out"; }},
      {"is no name of the form", [](json &op) { op["name"] = "te st::scale"; }},
      {"an argument 'x y', which is no name", [](json &op) { op["arguments"][0]["name"] = "x y"; }},
      {"an argument '', which is no name", [](json &op) { op["arguments"][0]["name"] = ""; }},
      {"two arguments 'alpha'", [](json &op) { op["arguments"][0]["name"] = "alpha"; }},
      {"'alpha', which is no tensor", [](json &op) { op["arguments"][1]["mut"] = true; }},
      {"is its own reference", [](json &op) { op["reference"] = "test::scale"; }},
      {"ops[0].arguments is [{",
       [](json &op) {
         for (int i = 2; i < 300; ++i)
           op["arguments"].push_back({{"name", "i" + std::to_string(i)}, {"type", "int"}});
       }},
      {"expected a list of at most 64 items", [](json &op) { op["results"] = std::vector<std::string>(65, "Tensor"); }},
      {"quotes, backslashes",
       [](json &op) {
         op["arguments"][1]["type"] = "str";
         op["arguments"][1]["default"] = "a\" b";
       }},
  };
  for (const Case &test : cases) {
    json manifest = sampleManifest();
    test.change(manifest["ops"][0]);
    auto library = Library::openMemory(samplePackage(manifest), "sample");
    ASSERT_FALSE(library) << test.message;
    EXPECT_EQ(library.error().status, KPKG_ERROR_FORMAT);
    EXPECT_THAT(library.error().message, HasSubstr(test.message));
  }
}

/// Braces would turn pairs that begin with a string into an object.
static json backward(const char *op, std::initializer_list<json> arguments) {
  json list = json::array();
  for (const json &argument : arguments)
    list.push_back(argument);
  return {{"op", op}, {"arguments", std::move(list)}};
}

TEST(Library, RefusesBackwardsThatDoNotFitTheirOps) {
  struct Case {
    const char *message;
    size_t op;
    json backward;
  };
  auto pair = [](const char *source, int64_t index) { return json::array({source, index}); };
  const json gradient = pair("gradient", 0);
  const Case cases[] = {
      {"ops[0].backward is \"test::scale_transposed\", expected an object", 0, "test::scale_transposed"},
      {"ops[0].backward has no `arguments`", 0, {{"op", "test::scale_transposed"}}},
      {"arguments[0][1] is -1, expected an integer", 0, backward("test::scale_transposed", {pair("gradient", -1)})},
      {"expected a list of a name and 1 numbers", 0, backward("test::scale_transposed", {json::array({"gradient"})})},
      {"is 0.5, expected an integer", 0, backward("test::scale_transposed", {json::array({"gradient", 0.5})})},
      {"is \"input\", expected one of gradient, result,", 0, backward("test::scale_transposed", {pair("input", 0)})},
      {"which is no op of the package", 0, backward("test::scale_grad", {gradient})},
      {"which has one itself", 0, backward("test::scale", {gradient, pair("argument", 1)})},
      {"writes to its arguments", 0, backward("test::scale_", {gradient, pair("argument", 1)})},
      {"writes to its arguments", 1, backward("test::scale_transposed", {gradient})},
      {"1 arguments, 'test::scale' has 2", 2, backward("test::scale", {gradient})},
      {"not one for each tensor", 3, backward("test::scale_transposed", {gradient})},
      {"number 1, which it does not have", 0, backward("test::scale_transposed", {pair("gradient", 1)})},
      {"number 9223372036854775807, which", 0, backward("test::scale_transposed", {pair("argument", INT64_MAX)})},
      {"another kind", 0, backward("test::scale_transposed", {pair("argument", 1)})},
      {"another kind", 0, backward("test::scale_transposed", {pair("needs", 0)})},
      {"whether it has to be deterministic, but", 0, backward("test::scale_transposed", {pair("deterministic", 0)})},
      {"that takes no gradient", 0, backward("test::scale_transposed", {pair("result", 0)})},
  };
  for (const Case &test : cases) {
    json manifest = sampleManifest();
    manifest["ops"][test.op]["backward"] = test.backward;
    auto library = Library::openMemory(samplePackage(manifest), "sample");
    ASSERT_FALSE(library) << test.message;
    EXPECT_EQ(library.error().status, KPKG_ERROR_FORMAT);
    EXPECT_THAT(library.error().message, HasSubstr(test.message));
  }
}

TEST(Library, SaysHowPyTorchTreatsAnOp) {
  auto opened = [](const json &rules) {
    json manifest = sampleManifest();
    manifest["ops"][0]["torch"] = rules;
    return Library::openMemory(samplePackage(manifest), "sample");
  };
  const json rules = {
      {"autocast", {{"cpu", "lower"}}}, {"dimensions", "of a later version"}, {"fallback", "x * alpha"}};
  auto library = opened(rules).value();
  EXPECT_EQ(json::parse(library.op("scale").value().info().torch), rules);
  EXPECT_STREQ(library.op("number").value().info().torch, "");
  for (const auto &[message, wrong] : std::initializer_list<std::pair<const char *, json>>{
           {"ops[0].torch is \"lower\", expected an object", "lower"},
           {"ops[0].torch.autocast is \"lower\", expected an object", {{"autocast", "lower"}}},
           {"autocast.cuda is 1, expected a text", {{"autocast", {{"cuda", 1}}}}},
           {"torch.promotion is true, expected a text", {{"promotion", true}}},
           {"expected a text of at most 256 bytes", {{"dimensions", std::string(257, 'x')}}},
           {"expected a text of at most 65536 bytes", {{"fallback", std::string(65537, 'x')}}}}) {
    auto refused = opened(wrong);
    ASSERT_FALSE(refused) << message;
    EXPECT_THAT(refused.error().message, HasSubstr(message));
  }
}

TEST(Library, SaysWhatTheBackwardOfAnOpIs) {
  json manifest = sampleManifest();
  manifest["ops"][0]["backward"] = backward("test::scale_transposed", {json::array({"gradient", 0})});
  std::string bytes = samplePackage(manifest);
  auto library = Library::openMemory(bytes, "sample").value();
  auto op = library.op("scale").value();
  EXPECT_STREQ(op.info().backward, "test::scale_transposed");
  EXPECT_EQ(json::parse(op.kernelInfo())["backward"],
            json::parse(R"({"op":"test::scale_transposed","arguments":[["gradient",0]]})"));
  EXPECT_STREQ(library.op("number").value().info().backward, "");
  EXPECT_FALSE(json::parse(library.op("number").value().kernelInfo()).contains("backward"));
}

TEST(Library, InstancesMaySayTheirArgumentsDTypes) {
  json manifest = sampleManifest();
  // The dtype is empty if a parameter determines it.
  manifest["kernels"][0]["args"][1]["dtype"] = "";
  for (json &instance : manifest["instances"])
    if (instance["kernel"] == 0)
      instance["dtypes"] = {"float32", "float64", "float32"};
  std::string bytes = samplePackage(manifest);
  auto library = Library::openMemory(bytes, "sample").value();
  auto result = library.op("scale").value().call({}, {Tensor::empty(DType::Float32, {1, 1})});
  EXPECT_EQ(result.error().status, KPKG_ERROR_KERNEL);
  EXPECT_THAT(result.error().message, HasSubstr("'y' is float32, expected float64"));
}

TEST(Library, RefusesPlansThatDoNotFitTheirSchema) {
  json manifest = sampleManifest();
  manifest["ops"][0]["arguments"][1]["type"] = "int";
  manifest["ops"][0]["arguments"][1]["default"] = 2;
  manifest["ops"][0]["schema"] = "scale(Tensor x, int alpha=2) -> Tensor";
  std::string bytes = samplePackage(manifest);
  auto library = Library::openMemory(bytes, "sample").value();
  EXPECT_THAT(library.verify().error().message, HasSubstr("takes another kind of argument 'alpha' than its schema"));
}

TEST(Library, MissingKernelsAreFoundBeforeTheyRun) {
  json manifest = sampleManifest();
  manifest["instances"][6]["symbol"] = "missing";
  std::string bytes = samplePackage(manifest);
  auto library = Library::openMemory(bytes, "sample").value();
  auto result = library.op("number").value().call({}, {}, {{"n", 3}});
  EXPECT_THAT(result.error().message, HasSubstr("has no function 'missing'"));
}

TEST(Library, DamagedCodeIsNotUsed) {
  std::string bytes = samplePackage();
  std::string plan = "x must have rank 2";
  // Sections are compressed; the last byte belongs to the last section, a plan.
  bytes.back() ^= 1;
  auto library = Library::openMemory(bytes, "sample").value();
  Error error = library.op("complain").value().call({}, {}).error();
  EXPECT_EQ(error.status, KPKG_ERROR_FORMAT);
  EXPECT_THAT(error.message, HasSubstr("is damaged (SHA-256"));
  EXPECT_FALSE(library.verify());
}

TEST(Library, UsesSectionsOfTheRightKindOnly) {
  struct Case {
    const char *section;
    const char *kind;
    const char *message;
  };
  std::string here = "host/" + runnableTarget();
  const Case cases[] = {
      {here.c_str(), "docs", "which is of kind 'docs', expected 'host-object'"},
      {here.c_str(), "cubin", "which is of kind 'cubin', expected 'host-object'"},
      {here.c_str(), "fpga", "which is missing"}, // readers skip kinds of later versions
      {"plan/test::number", "source",
       "the plan of test::number is said to be in section 'plan/test::number', which is "
       "of kind 'source', expected 'plan'"},
      {"tuning", "docs", "the tuning table is said to be in section 'tuning', which is of kind 'docs'"},
  };
  for (const Case &test : cases) {
    std::string bytes = samplePackage();
    format::Reader sample = std::move(format::Reader::fromMemory(bytes, "sample").value());
    format::Writer writer;
    bool isChanged = false;
    for (const format::Section &section : sample.sections()) {
      bool isThis = section.name == test.section;
      isChanged |= isThis;
      ASSERT_TRUE(writer.add(section.name, isThis ? test.kind : section.kind,
                             std::string(sample.read(section, true).value().bytes), section.compression, !isThis));
    }
    if (!isChanged)
      ASSERT_TRUE(writer.add(test.section, test.kind, "{}", format::Compression::None, false));
    std::string changed = writer.finish(sample.manifest()).value();
    auto library = Library::openMemory(changed, "sample");
    ASSERT_FALSE(library) << test.section << " " << test.kind;
    EXPECT_EQ(library.error().status, KPKG_ERROR_FORMAT);
    EXPECT_THAT(library.error().message, HasSubstr(test.message));
  }
}

TEST(Registry, AddsFolders) {
  std::string folder = testing::TempDir() + "kpkg-registry-test";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(format::writeFile(folder + "/a.kpkg", samplePackage()));
  Registry registry;
  EXPECT_TRUE(registry.addPath(folder));
  EXPECT_EQ(registry.ops().size(), 8u);
  EXPECT_EQ(registry.addPath(folder + "/b.kpkg").error().status, KPKG_ERROR_FILE);
  std::filesystem::remove_all(folder);
  EXPECT_THAT(registry.op("missing").error().message, HasSubstr("the registry has no op 'missing' (test::scale,"));
}
