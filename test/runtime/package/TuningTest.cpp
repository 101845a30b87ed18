// Tests alternatives: the cost model, the tuning table, restrictions by a call, and refused tables.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Tuning.h"
#include "runtime/chips/Chips.h"
#include "runtime/package/Choice.h"
#include "runtime/package/CostModel.h"
#include "runtime/package/Devices.h"
#include "runtime/package/ReadTables.h"
#include "test/runtime/package/SamplePackage.h"

#include <gtest/gtest.h>
#include <kpkg/kpkg.hpp>
#include <nlohmann/json.hpp>

using namespace kpkg;
using namespace kpkg::package;
using nlohmann::json;

namespace {

json term(double count, json factors) { return {{"count", count}, {"factors", std::move(factors)}}; }

/// Returns an alternative that computes tiles of `rows` x `columns` of a square product.
json alternative(const char *type, int rows, int columns, const std::string &target) {
  json tiles = json::array({json{"tiles", 0, 0, rows}, json{"tiles", 0, 1, columns}});
  json bytes = json::array({term(4, {{"dim", 0, 0}, {"tiles", 0, 1, columns}, {"dim", 0, 1}}),
                            term(4, {{"tiles", 0, 0, rows}, {"dim", 0, 1}, {"dim", 0, 1}})});
  return {{"kernel", 0},
          {"params", {type, rows, columns}},
          {"variant", "unit"},
          {"facts", json::array()},
          {"target", target},
          {"section", "host/" + target},
          {"symbol", "tiles"},
          {"bytes", bytes},
          {"tiles", json::array({term(1, tiles)})},
          {"work",
           {{"flops", json::array({term(2.0 * rows * columns, {{"dim", 0, 1}})})},
            {"flops_per_cycle", 32},
            {"bytes_per_cycle", 16}}}};
}

json tunedManifest() {
  std::string target = test::runnableTarget();
  json params = {{{"name", "T"}, {"kind", "dtype"}},
                 {{"name", "BM"}, {"kind", "int"}, {"tuned", true}},
                 {{"name", "BN"}, {"kind", "int"}, {"tuned", true}}};
  json kernel = {{"name", "tiles"},
                 {"params", params},
                 {"args", {{{"name", "c"}, {"kind", "view"}, {"rank", 2}, {"dtype", "T"}, {"mut", true}}}},
                 {"persistent", true}};
  return {{"kernels", {kernel}},
          {"instances",
           {alternative("float32", 64, 64, target), alternative("float32", 16, 16, target),
            alternative("float64", 64, 64, target)}}};
}

std::shared_ptr<Tables> tables(const json &text = tunedManifest()) {
  auto read = readTables(json::parse(text.dump())); // numbers have the types that a reader gives them
  EXPECT_TRUE(read) << read.error().message;
  return *read;
}

/// Returns a launch that asks for at least `leastRows` as BM; with 0 it does not name BM.
plan::LaunchStep launchOf(int64_t extent, int64_t leastRows = 0) {
  plan::LaunchStep launch;
  launch.kernel = "tiles";
  launch.persistent = true;
  plan::LaunchParam type;
  type.name = "T";
  type.kind = plan::LaunchParam::Kind::DType;
  type.integer = int64_t(plan::DType::Float32);
  launch.params = {type};
  if (leastRows != 0) {
    plan::LaunchParam rows;
    rows.name = "BM";
    rows.kind = plan::LaunchParam::Kind::Int;
    rows.atLeast = true;
    rows.integer = leastRows;
    launch.params.push_back(rows);
  }
  plan::LaunchArg arg;
  arg.isMut = true;
  arg.view.buffer = 0;
  arg.view.dtype = plan::DType::Float32;
  arg.view.rank = 2;
  arg.view.shape = {extent, extent};
  arg.view.strides = {extent, 1};
  launch.args = {arg};
  return launch;
}

std::string choose(const Tables &tables, int64_t extent, const std::string &config = "{}",
                   ChoiceReport *report = nullptr, int64_t leastRows = 0) {
  auto restriction = readRestriction(config);
  const int64_t alignments[] = {16};
  plan::LaunchStep launch = launchOf(extent, leastRows);
  auto chosen = chooseInstance({tables, launch, "op", hostDevice(), alignments, restriction->get()}, report);
  return chosen ? std::to_string((*chosen)->params[1].integer) : chosen.error().message;
}

/// Returns a row for products of 1000 x 1000, modified by `change`.
json row(const std::function<void(json &)> &change = nullptr) {
  json row = {{"device", hostDevice().tuningName()}, {"kernel", "tiles"},
              {"params", {{"T", "float32"}}},        {"shapes", {{1024, 1024}, json::array()}},
              {"target", test::runnableTarget()},    {"variant", "unit"},
              {"choice", {{"BM", 16}, {"BN", 16}}}};
  if (change)
    change(row);
  return row;
}

std::string refusal(const json &rows) {
  auto read = tables();
  Status status = readTuning(json{{"format", 1}, {"rows", rows}}.dump(), *read);
  return status ? "" : status.error().message;
}

} // namespace

TEST(CostModel, TilesSideBySideHideWaiting) {
  json text = tunedManifest();
  text["instances"][0]["work"]["resident"] = 4;
  text["instances"][0]["work"]["flops_per_cycle_alone"] = 8;
  auto read = tables(text);
  const Instance &instance = read->instances[0];
  // One tile of 64 x 64 with depth 64, at the rate of a tile that runs alone, including its overhead.
  auto alone = estimateTime(instance, launchOf(64), 1);
  EXPECT_EQ(alone->rounds, 1);
  EXPECT_EQ(alone->cyclesPerRound, 2.0 * 64 * 64 * 64 / 8 + 2000);
  // Four tiles with depth 128, which one processor holds at once.
  auto together = estimateTime(instance, launchOf(128), 1);
  EXPECT_EQ(together->rounds, 4);
  EXPECT_EQ(together->cyclesPerRound, 2.0 * 64 * 64 * 128 / 32 + 500);
}

TEST(CostModel, CountsLinesOfCopies) {
  auto read = tables();
  Instance instance = read->instances[0];
  instance.bytes = instance.work->flops;
  instance.work->bytesPerCycle = 1; // operand bandwidth decides
  instance.launch = LaunchShape{.threads = 128};
  auto cycles = [&](int64_t stride, uint32_t sharedBy) {
    plan::LaunchStep launch = launchOf(64);
    launch.args[0].view.strides[0] = stride;
    instance.launch->tensorMaps = {TensorMap{.arg = 0, .box = {64, 32}, .unit = 1, .copies = 2, .sharedBy = sharedBy}};
    return estimateTime(instance, launch, 1)->cyclesPerRound - 2000;
  };
  const kpkg::chips::Heuristics &heuristics = kpkg::chips::reference.heuristics;
  double aligned = cycles(64, 1);
  EXPECT_DOUBLE_EQ(cycles(72, 1), heuristics.slownessOfLines * aligned) << "rows of 128 bytes over two lines each";
  EXPECT_DOUBLE_EQ(cycles(68, 1), heuristics.slownessOfSectors * aligned) << "and over five sectors";
  EXPECT_DOUBLE_EQ(cycles(68, 2), heuristics.slownessOfSectors / 2 * aligned) << "one of two blocks reads them";
}

TEST(CostModel, SharesDivide) {
  json text = tunedManifest();
  text["instances"][0]["flops"] = {term(6, {{"dim", 0, 0}, {"share", 0, 1}})};
  auto read = tables(text);
  EXPECT_EQ(estimateCost(read->instances[0], launchOf(100)).flops, 6);
  EXPECT_EQ(estimateCost(read->instances[0], launchOf(0)).flops, 0);
}

TEST(ShapeClass, HasThreeSignificantBits) {
  EXPECT_EQ(shapeClass(0), 0);
  for (int64_t extent : {1, 7, 8, 10, 16, 20, 4096, 5120, 7168})
    EXPECT_EQ(shapeClass(extent), extent);
  EXPECT_EQ(shapeClass(9), 10);
  EXPECT_EQ(shapeClass(4097), 5120);
  EXPECT_EQ(shapeClass(INT64_MAX), INT64_MAX);
}

TEST(CostModel, PrefersLargeTilesUnlessTheyAreMostlyEmpty) {
  auto read = tables();
  EXPECT_EQ(choose(*read, 4096), "64");
  EXPECT_EQ(choose(*read, 16), "16");
  ChoiceReport report;
  choose(*read, 4096, "{}", &report);
  ASSERT_TRUE(report.alternatives);
  EXPECT_EQ(report.alternatives->by, AlternativeChoice::By::Model);
  EXPECT_EQ(report.alternatives->instances.size(), 2u);
}

TEST(CostModel, HasNoSayWhereTheLaunchNamesATunedParameter) {
  auto read = tables();
  EXPECT_EQ(choose(*read, 4096), "64");
  EXPECT_EQ(choose(*read, 4096, "{}", nullptr, 8), "16");
  EXPECT_EQ(choose(*read, 4096, "{}", nullptr, 17), "64");
}

TEST(CostModel, CountsWholeRounds) {
  auto read = tables();
  plan::LaunchStep launch = launchOf(64 * 3);
  auto estimate = estimateTime(read->instances[0], launch, 8);
  ASSERT_TRUE(estimate);
  EXPECT_EQ(estimate->rounds, 2); // nine tiles on eight processors
  EXPECT_EQ(estimateTime(read->instances[0], launch, 9)->rounds, 1);
}

TEST(CostModel, WithoutItTheFirstIsTaken) {
  json text = tunedManifest();
  text["instances"][0].erase("work");
  EXPECT_EQ(choose(*tables(text), 16), "64");
}

TEST(Tuning, RowsDecideForTheirShapesAndDevice) {
  auto read = tables();
  ASSERT_TRUE(readTuning(json{{"format", 1}, {"rows", json::array({row()})}}.dump(), *read));
  EXPECT_EQ(choose(*read, 1000), "16");
  EXPECT_EQ(choose(*read, 4096), "64");
  ChoiceReport report;
  choose(*read, 1024, "{}", &report);
  EXPECT_EQ(report.alternatives->by, AlternativeChoice::By::Table);

  auto elsewhere = tables();
  ASSERT_TRUE(
      readTuning(json{{"format", 1}, {"rows", json::array({row([](json &row) { row["device"] = "another"; })})}}.dump(),
                 *elsewhere));
  EXPECT_EQ(choose(*elsewhere, 1000), "64");
}

TEST(Tuning, RowsOfNearExtentsDecideWhereTheModelHasNoOpinion) {
  auto measuredAt = [](int extent, int tile) {
    return row([=](json &row) {
      row["measured"] = {{extent, extent}, json::array()};
      row["choice"] = {{"BM", tile}, {"BN", tile}};
    });
  };
  auto read = tables();
  ASSERT_TRUE(readTuning(json{{"format", 1}, {"rows", json::array({measuredAt(1000, 16)})}}.dump(), *read));
  EXPECT_EQ(choose(*read, 1000), "16");
  ChoiceReport report;
  EXPECT_EQ(choose(*read, 1024, "{}", &report), "64"); // the model estimates it as much faster
  EXPECT_EQ(report.alternatives->by, AlternativeChoice::By::Model);

  json text = tunedManifest();
  for (json &instance : text["instances"]) { // all alternatives seem equal
    instance["work"]["flops"] = json::array({term(1, json::array())});
    instance["tiles"] = json::array({term(1, json::array())});
    instance["bytes"] = json::array({term(1, json::array())});
  }
  auto equal = tables(text);
  ASSERT_TRUE(readTuning(
      json{{"format", 1}, {"rows", json::array({measuredAt(1000, 16), measuredAt(1020, 64)})}}.dump(), *equal));
  ChoiceReport near;
  EXPECT_EQ(choose(*equal, 1001, "{}", &near), "16");
  EXPECT_EQ(near.alternatives->by, AlternativeChoice::By::Neighbour);
  EXPECT_EQ(choose(*equal, 1024), "64"); // the nearer row
  EXPECT_EQ(choose(*equal, 2000), "64"); // another class: the first of the equal alternatives
}

TEST(Tuning, CallsCanBeRestricted) {
  auto read = tables();
  auto only = [](const char *value) { return KernelConfig{{{"BM", {value}}}, {}}.json(); };
  EXPECT_EQ(choose(*read, 4096, only("16")), "16");
  EXPECT_EQ(choose(*read, 16, only("64")), "64");
  EXPECT_EQ(choose(*read, 16, KernelConfig{{{"BM", {"64", "16"}}}, {}}.json()), "16");
  EXPECT_EQ(choose(*read, 4096, KernelConfig{{}, {{"tiles", {{"BM", {"16"}}}}}}.json()), "16");
  EXPECT_EQ(choose(*read, 4096, KernelConfig{{}, {{"others", {{"BM", {"16"}}}}}}.json()), "64");
  EXPECT_NE(choose(*read, 16, only("32")).find("the configuration asks for 32"), std::string::npos);
  for (const Instance &instance : read->instances)
    if (read->kernels[instance.kernel].name == "tiles" && instance.params[1].integer == 16) {
      json config = {{"instances", {{"tiles", instance.label}}}};
      EXPECT_EQ(choose(*read, 4096, config.dump()), "16");
    }
  std::string pinned = choose(*read, 16, R"({"instances": {"tiles": "another"}})");
  EXPECT_NE(pinned.find("is not another, which the configuration asks for"), std::string::npos);
  EXPECT_FALSE(readRestriction("{\"instances\": {\"tiles\": 3}}"));
  EXPECT_FALSE(readRestriction("{\"kernels\": {\"tiles\": 3}}"));
  EXPECT_FALSE(readRestriction("{\"kernels\": {\"tiles\": {\"BM\": [3]}}}"));
}

TEST(Tuning, WrongRowsAreRefused) {
  EXPECT_EQ(refusal(json::array({row()})), "");
  auto wrong = [](const std::function<void(json &)> &change) { return refusal(json::array({row(change)})); };
  EXPECT_NE(wrong([](json &row) { row["kernel"] = "other"; }).find("row 0: the package has no kernel 'other'"),
            std::string::npos);
  EXPECT_NE(wrong([](json &row) { row["choice"]["BM"] = 32; }).find("no such instance"), std::string::npos);
  EXPECT_NE(wrong([](json &row) { row["target"] = "sm_90a"; }).find("no such instance"), std::string::npos);
  EXPECT_NE(wrong([](json &row) { row["choice"]["T"] = "float32"; }).find("are not the parameters"), std::string::npos);
  EXPECT_NE(wrong([](json &row) { row["choice"] = 3; }).find("`choice` is no object"), std::string::npos);
  EXPECT_NE(wrong([](json &row) { row.erase("device"); }).find("`device` is no string"), std::string::npos);
  EXPECT_NE(wrong([](json &row) { row["shapes"][0][0] = 1000; }).find("no classes of extents"), std::string::npos);
  EXPECT_NE(wrong([](json &row) { row["shapes"].erase(1); }).find("`shapes` are not those"), std::string::npos);
  EXPECT_NE(wrong([](json &row) { row["measured"] = {{1025, 1024}, json::array()}; }).find("is not of its `shapes`"),
            std::string::npos);
  EXPECT_NE(wrong([](json &row) { row["measured"] = 3; }).find("`measured` is no list"), std::string::npos);
  EXPECT_NE(refusal({row(), row([](json &row) { row["choice"] = {{"BM", 64}, {"BN", 64}}; })})
                .find("another one for the same calls"),
            std::string::npos);
  EXPECT_NE(refusal({row([](json &row) { row["device"] = "~"; }), row()}).find("behind a greater one"),
            std::string::npos);
  auto read = tables();
  EXPECT_NE(readTuning("{}", *read).error().message.find("no tuning table"), std::string::npos);
  EXPECT_NE(readTuning("{ }", *read).error().message.find("not canonical"), std::string::npos);
}

TEST(Tuning, WrongManifestsAreRefused) {
  auto refused = [](const std::function<void(json &)> &change) {
    json text = tunedManifest();
    change(text);
    auto read = readTables(json::parse(text.dump()));
    return read ? std::string() : read.error().message;
  };
  EXPECT_NE(refused([](json &m) { m["kernels"][0]["params"][0]["tuned"] = true; }).find("neither an int nor a bool"),
            std::string::npos);
  EXPECT_NE(refused([](json &m) {
              m["kernels"][0]["params"][1]["tuned"] = 1;
            }).find("params[1].tuned is 1, expected true or false"),
            std::string::npos);
  EXPECT_NE(refused([](json &m) {
              m["instances"][0]["work"]["flops_per_cycle"] = 0;
            }).find("flops_per_cycle is 0, expected a number above 0"),
            std::string::npos);
  EXPECT_NE(refused([](json &m) { m["instances"][0].erase("tiles"); }).find("how many tiles"), std::string::npos);
  EXPECT_NE(refused([](json &m) {
              m["instances"][0]["work"]["resident"] = 0;
            }).find("work.resident is 0, expected an integer from 1 to 64"),
            std::string::npos);
}
