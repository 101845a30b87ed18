// Tests the manifest's schema: writing, reading with limits, requirements, and descriptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/manifest/Describe.h"
#include "runtime/manifest/Read.h"
#include "runtime/manifest/Write.h"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kpkg::manifest;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace kpkg::manifest {
/// A record of a later version, with a field that its readers have to know.
struct Probe {
  int32_t plain = 0;
  int32_t sparse = 0;
  bool operator==(const Probe &) const = default;
};
template <> struct Schema<Probe> {
  static constexpr std::string_view name = "probe";
  template <class Visit> static void visit(Visit &&visit) {
    visit(Field<Probe, int32_t>{&Probe::plain, "plain", words::optional, words::any, ""});
    visit(Field<Probe, int32_t>{&Probe::sparse, "sparse", words::optional.since(9).essential(), words::any, ""});
  }
};
} // namespace kpkg::manifest

namespace {

/// Returns a manifest that has nearly every field.
Manifest fullManifest() {
  Manifest manifest;
  manifest.format = {1, 2};
  manifest.producer = {"0.1.0", "22", "-O2"};
  Kernel &kernel = manifest.kernels.emplace_back();
  kernel.name = "product", kernel.persistent = true;
  kernel.params = {{"T", ParamKind::DType}, {"F", ParamKind::String, true}, {"BM", ParamKind::Int, false, true}};
  kernel.args = {{"x", ArgumentKind::View, "T", 4, true}, {"n", ArgumentKind::Scalar, "int64"}};
  Instance &instance = manifest.instances.emplace_back();
  instance.paramValues = {"float32", "gelu", int64_t(64)};
  instance.facts = {{.arg = 0, .unit = 3, .align = 16, .divisible = 8, .index = 32, .outer = 1}};
  instance.target = "sm_90a", instance.section = "cubin/a", instance.symbol = "a";
  instance.flags = {"deterministic"};
  CostTerm term{2.5, {{FactorKind::Blocks}, {FactorKind::Tiles, 0, 1, 64}, {FactorKind::Share, 0, 2}}};
  term.factors.push_back(
      {FactorKind::Count, 0, 0, 0, {{StepKind::Value, 1}, {StepKind::Constant, -3}, {StepKind::Max}}});
  instance.flops = instance.tiles = {term};
  instance.work = Work{.flops = {term}, .flopsPerCycle = 8, .bytesPerCycle = 16, .resident = 2};
  instance.launch = Launch{.threads = 384, .registers = 168, .spills = 8, .shared = 65536, .cluster = 2, .counters = 4};
  TensorMap &map = instance.launch->tensorMaps.emplace_back(0, std::vector<uint32_t>{1, 8, 8, 64}, 128, 3, 2);
  map.window = Window{{1, 1}, {1, 1}, {1, 1}, {1, 1}, {{0, 1}, {0, 2}}};
  instance.launch->dropped = {{"occupancy=2", "no room"}};
  Op &op = manifest.ops.emplace_back();
  op.name = "test::f", op.schema = "f(Tensor x, int[] d=[1]) -> Tensor", op.plan = "plan/f";
  op.declared = {{"x", "Tensor"}, {"d", "int[]", false, std::vector<int64_t>{1}}, {"e", "int?", false, Value()}};
  op.backward = Backward{"test::g", {{BackwardSource::Gradient, 0}, {BackwardSource::Needs, 1}}};
  op.torch = TorchRules{.autocast = {"", "lower"}, .fallback = "x"};
  Section &section = manifest.sections.emplace_back();
  section.name = "plan/f", section.kind = "plan", section.size = section.stored = 64;
  section.sha256 = std::string(64, '0');
  return manifest;
}

std::string refusal(const std::function<void(json &)> &change) {
  json manifest = write(fullManifest());
  change(manifest);
  try {
    read<Manifest>(manifest);
  } catch (const Refusal &refusal) {
    return refusal.why;
  }
  return "read";
}

} // namespace

TEST(Manifest, IsReadAsItWasWritten) {
  Manifest manifest = fullManifest();
  json written = writeManifest(manifest);
  EXPECT_TRUE(read<Manifest>(written) == manifest);
  EXPECT_TRUE(read<Manifest>(json::parse(written.dump())) == manifest);
  EXPECT_EQ(written["instances"][0]["flops"][0],
            json::parse(R"({"count":2.5,"factors":[["blocks"],["tiles",0,1,64],["share",0,2],
                            ["count",["value",1],-3,"max"]]})"));
  EXPECT_EQ(written["ops"][0]["backward"]["arguments"], json::parse(R"([["gradient",0],["needs",1]])"));
}

TEST(Manifest, LeavesOutOptionalFieldsAlone) {
  EXPECT_EQ(write(Launch{.threads = 128}),
            json::parse(R"({"threads":128,"registers":0,"shared":0,"blocks":1,"cluster":1})"));
  EXPECT_EQ(write(KernelArgument{"n", ArgumentKind::Scalar, "int64"}),
            json::parse(R"({"name":"n","kind":"scalar","dtype":"int64"})"));
  EXPECT_TRUE(write(Op())["reference"].is_null());
  EXPECT_FALSE(write(Op()).contains("torch"));
}

TEST(Manifest, UnknownKeysAndNullAreIgnored) {
  EXPECT_EQ(refusal([](json &m) { m["instances"][0]["later"] = {{"x", 1}}; }), "read");
  EXPECT_EQ(refusal([](json &m) { m["instances"][0]["launch"] = nullptr; }), "read");
  EXPECT_EQ(refusal([](json &m) { m.erase("producer"); }), "read");
}

TEST(Manifest, RefusalsNamePlaceFoundAndExpected) {
  struct Case {
    const char *message;
    std::function<void(json &)> change;
  };
  const Case cases[] = {
      {"the manifest has no `sections`", [](json &m) { m.erase("sections"); }},
      {"kernels[0] has no `name`", [](json &m) { m["kernels"][0].erase("name"); }},
      {"kernels[0] has no `name`", [](json &m) { m["kernels"][0]["name"] = nullptr; }},
      {"kernels[0] is 7, expected an object", [](json &m) { m["kernels"][0] = 7; }},
      {"kernels[0].persistent is \"yes\", expected true or false",
       [](json &m) { m["kernels"][0]["persistent"] = "yes"; }},
      {"kernels[0].params[0].kind is \"str\", expected one of int, bool, float, dtype, string",
       [](json &m) { m["kernels"][0]["params"][0]["kind"] = "str"; }},
      {"instances[0].launch.threads is 2000, expected an integer from 1 to 1024",
       [](json &m) { m["instances"][0]["launch"]["threads"] = 2000; }},
      {"instances[0].launch.threads is 128.0, expected an integer from 1 to 1024",
       [](json &m) { m["instances"][0]["launch"]["threads"] = 128.0; }},
      {"instances[0].launch.dropped[0].hint is {}, expected a text of at most 4096 bytes",
       [](json &m) { m["instances"][0]["launch"]["dropped"][0]["hint"] = json::object(); }},
      {"instances[0].facts[0].align is 24, expected a power of two up to 4096",
       [](json &m) { m["instances"][0]["facts"][0]["align"] = 24; }},
      {"instances[0].work.flops_per_cycle is 0, expected a number above 0 and at most 1000000000",
       [](json &m) { m["instances"][0]["work"]["flops_per_cycle"] = 0; }},
      {"instances[0].launch.tensor_maps[0].box[3] is 257, expected an integer from 1 to 256",
       [](json &m) { m["instances"][0]["launch"]["tensor_maps"][0]["box"][3] = 257; }},
      {"instances[0].flops[0].factors[1] is [\"tiles\",0,1,0], expected a size above 0",
       [](json &m) { m["instances"][0]["flops"][0]["factors"][1][3] = 0; }},
      {"instances[0].params[0] is {}, expected a list of at most 4096 items",
       [](json &m) { m["instances"][0]["params"][0] = json::object(); }},
      {"expected a list of at most 256 items", [](json &m) { m["instances"][0]["params"] = std::vector<int>(257, 1); }},
      {"expected a text of at most 4096 bytes", [](json &m) { m["kernels"][0]["name"] = std::string(4097, 'x'); }},
      {"kernels[0].name is \"\\u001b[2J\\u00e9",
       [](json &m) { m["kernels"][0]["name"] = "\x1b[2Jé" + std::string(5000, 'x'); }},
  };
  for (const Case &test : cases)
    EXPECT_THAT(refusal(test.change), HasSubstr(test.message));
  EXPECT_LT(refusal(cases[std::size(cases) - 1].change).size(), 200u);
}

TEST(Manifest, RequiresOfReadersTheEssentialFieldsThatItUses) {
  Requirements requirements;
  EXPECT_EQ(write(Probe{.plain = 1}, requirements), json::parse(R"({"plain":1})"));
  EXPECT_THAT(requirements, IsEmpty());
  write(std::vector<Probe>{{1, 0}, {1, 1}}, requirements);
  EXPECT_THAT(requirements, ElementsAre("probe.sparse"));
  EXPECT_FALSE(writeManifest(fullManifest()).contains("requires"));
}

TEST(Manifest, RequirementsAreFieldsOfRecords) {
  auto unknown = [](const char *name) { return unknownRequirement({{"requires", {"launch.threads", name}}}); };
  EXPECT_EQ(unknown("manifest.requires"), std::nullopt);
  EXPECT_EQ(unknown("op_argument.default"), std::nullopt);
  for (const char *name :
       {"launch.sparse", "threads", "launch", "launch.", ".threads", "probe.sparse", "fact.threads", ""})
    EXPECT_EQ(unknown(name), name);
  EXPECT_EQ(unknownRequirement(json::object()), std::nullopt);
  EXPECT_THROW(unknownRequirement({{"requires", 1}}), Refusal);
  EXPECT_THROW(unknownRequirement(json::array()), Refusal);
}

TEST(Manifest, IsDescribedByTheLabelsOfItsFields) {
  const Instance instance = fullManifest().instances[0];
  EXPECT_THAT(describe(*instance.launch),
              ElementsAre("384 threads", "168 registers", "8 bytes of spills", "65536 bytes of shared memory",
                          "clusters of 2 CTAs", "takes tiles from a counter", "1 tensor maps", "without occupancy=2"));
  EXPECT_THAT(describe(Launch{.threads = 128}),
              ElementsAre("128 threads", "registers chosen by the driver", "spills unknown without ptxas"));
  EXPECT_THAT(describe(instance.facts[0]),
              ElementsAre("stride 1 in dimension 3", "address by 16 bytes", "sizes by 8 elements", "32-bit offsets"));
  EXPECT_EQ(figures(*instance.launch)["tensor_maps"], 1);
  EXPECT_EQ(figures(*instance.launch)["overlaps"], false);
}
