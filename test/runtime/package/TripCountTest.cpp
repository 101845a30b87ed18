// Tests computed factors of cost formulas: their values, and refused ones.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/TripCount.h"
#include "runtime/manifest/Read.h"
#include "runtime/package/CostModel.h"
#include "runtime/package/Tables.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace kpkg::package;
using nlohmann::json;
namespace plan = kpkg::plan;

namespace {

/// Returns a launch with x [7, 1000], n = 130, and a scalar that is not part of the call's signature.
plan::LaunchStep launch() {
  plan::LaunchStep launch;
  plan::LaunchArg view, number, passed;
  view.view.rank = 2;
  view.view.shape = {7, 1000};
  number.kind = plan::LaunchArg::Kind::Int;
  number.integer = 130;
  passed.kind = plan::LaunchArg::Kind::PassThrough;
  launch.args = {view, number, passed};
  launch.grid = {4, 5, 6};
  return launch;
}

Kernel kernel() {
  Kernel kernel;
  kernel.args.resize(3);
  kernel.args[0].rank = 2;
  kernel.args[1].kind = kernel.args[2].kind = kpkg::manifest::ArgumentKind::Scalar;
  return kernel;
}

std::vector<TripCountStep> read(const char *steps, std::string *refusal = nullptr) {
  json term = {{"count", 1}, {"factors", json::array({json::parse(steps)})}};
  std::vector<TripCountStep> result;
  std::string why;
  try {
    result = kpkg::manifest::read<CostTerm>(term).factors[0].steps;
    why = checkTripCount(result, kernel());
  } catch (const kpkg::manifest::Refusal &malformed) {
    why = malformed.why;
  }
  if (refusal)
    *refusal = why;
  else
    EXPECT_EQ(why, "");
  return result;
}

std::optional<double> value(const char *steps) { return evaluate(read(steps), launch()); }

/// Returns the tiles of an instance that has as many as `steps` compute.
std::optional<double> tiles(const char *steps) {
  Instance instance;
  CostFactor factor;
  factor.kind = CostFactor::Kind::Count;
  factor.steps = read(steps);
  instance.tiles = {{1, {factor}}};
  return countTiles(instance, launch());
}

std::string refusal(const char *steps) {
  std::string why;
  read(steps, &why);
  return why;
}

} // namespace

TEST(TripCount, AreComputed) {
  EXPECT_EQ(value(R"(["count", ["dim", 0, 1]])"), 1000);
  EXPECT_EQ(value(R"(["count", ["value", 1], 3, -1, "*", "+", 5, "ceildiv"])"), 26); // (130 - 3) / 5, rounded up
  EXPECT_EQ(value(R"(["count", ["dim", 0, 1], 128, "ceildiv", ["grid", 1], "//"])"), 1);
  EXPECT_EQ(value(R"(["count", ["dim", 0, 0], ["value", 1], "min", ["grid", 2], "max", 2, "*"])"), 14);
}

TEST(TripCount, LoopsDoNotRunLessThanNever) {
  EXPECT_EQ(value(R"(["count", ["dim", 0, 0], -9, "+"])"), 0);
  EXPECT_EQ(value(R"(["count", ["dim", 0, 0], 0, "//"])"), 0);
  EXPECT_EQ(value(R"(["count", ["dim", 0, 0], -2, "ceildiv"])"), 0);
}

TEST(TripCount, NumbersThatAreNotPartOfTheSignatureAreNotKnown) {
  EXPECT_EQ(value(R"(["count", ["value", 2], 1, "+"])"), std::nullopt);
}

// A launch of 0 tiles would not run. One of unknown tiles gets as many blocks as the device holds.
TEST(TripCount, UnknownTilesAreNotNone) {
  EXPECT_EQ(tiles(R"(["count", ["value", 1], 16, "ceildiv"])"), 9);
  EXPECT_EQ(tiles(R"(["count", ["value", 2], 16, "ceildiv"])"), std::nullopt);
  EXPECT_EQ(countTiles(Instance(), launch()), std::nullopt);
}

TEST(TripCount, OthersAreRefused) {
  EXPECT_EQ(refusal(R"(["count"])"), "factors[0] is [\"count\"], expected a count of 1 to 64 steps");
  EXPECT_EQ(refusal(R"(["count", "+"])"), "has a count whose step 1 finds too few or too many numbers");
  EXPECT_EQ(refusal(R"(["count", 1, 2])"), "has a count that leaves 2 numbers");
  for (const char *step : {R"(["dim", 0, 2])", R"(["dim", 1, 0])", R"(["dim", 9, 0])", R"(["value", 0])",
                           R"(["value", 3])", R"(["grid", 3])", R"(["dim", 4294967296, 0])"})
    EXPECT_EQ(refusal(("[\"count\", " + std::string(step) + "]").c_str()),
              "has a count whose step 1 is no number of a launch")
        << step;
  for (const char *step : {R"(["dim", 0])", R"(["value", -1])", R"(["shape", 0, 0])", R"("-")", R"("dim")", "1.5",
                           "null", "[]", "{}", "9223372036854775808"})
    EXPECT_TRUE(refusal(("[\"count\", " + std::string(step) + "]").c_str()).starts_with("factors[0][1]")) << step;
  json many = json::array({"count"});
  for (int i = 0; i < 33; ++i)
    many.push_back(1);
  EXPECT_EQ(refusal(many.dump().c_str()), "has a count whose step 33 finds too few or too many numbers");
}
