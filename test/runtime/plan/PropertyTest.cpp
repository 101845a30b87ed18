// Tests random programs and damaged bytecode: nothing crashes, and accepted programs keep the invariants.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/plan/CheckResolution.h"
#include "test/runtime/plan/RandomProgram.h"
#include <gtest/gtest.h>

using namespace kpkg::plan;

namespace {

/// Evaluates with random arguments; returns the number of calls that resolved.
int evaluateSome(const Program &program, std::mt19937_64 &random, int calls) {
  int resolved = 0;
  for (int k = 0; k < calls; ++k) {
    RandomCall call = randomCall(program, random);
    Resolution resolution;
    auto error = evaluate(program, call.arguments, resolution);
    if (error) {
      EXPECT_FALSE(error->message.empty());
      EXPECT_EQ(error->message.find("internal error"), std::string::npos) << error->message;
      EXPECT_NE(error->kind, Error::Kind::Malformed);
      continue;
    }
    ++resolved;
    EXPECT_EQ(checkResolution(program, call.arguments, resolution), "") << describe(program, resolution);
    Resolution again;
    EXPECT_FALSE(evaluate(program, call.arguments, again));
    EXPECT_EQ(describe(program, again), describe(program, resolution));
  }
  return resolved;
}

TEST(PlanProperty, RandomProgramsVerifyAndEvaluate) {
  int resolved = 0, total = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    std::mt19937_64 random(seed);
    DecodedModule module = randomProgram(random);
    std::vector<uint8_t> bytes = encode(module);
    Error error;
    auto program = Program::load(bytes, error);
    ASSERT_TRUE(program) << "seed " << seed << ": " << error.message << "\n" << dumpText(module);
    EXPECT_EQ(encode(program->decoded()), bytes);
    EXPECT_FALSE(dumpJson(program->decoded()).empty());
    resolved += evaluateSome(*program, random, 4);
    total += 4;
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << dumpText(module);
  }
  // Otherwise too few calls resolve to test anything.
  EXPECT_GT(resolved, total / 10) << "of " << total;
}

TEST(PlanProperty, DamagedBytesAreRefusedOrEvaluateWithinLimits) {
  int accepted = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<uint8_t> bytes = encode(randomProgram(random));
    for (uint64_t k = 1 + random() % 3; k > 0; --k) {
      size_t at = random() % bytes.size();
      switch (random() % 4) {
      case 0:
        bytes[at] = static_cast<uint8_t>(random());
        break;
      case 1:
        bytes[at] ^= static_cast<uint8_t>(1u << random() % 8);
        break;
      case 2:
        bytes.erase(bytes.begin() + static_cast<ptrdiff_t>(at));
        break;
      default:
        bytes.resize(at);
        break;
      }
      if (bytes.empty())
        break;
    }
    Error error;
    auto program = Program::load(bytes, error);
    if (!program) {
      EXPECT_EQ(error.kind, Error::Kind::Malformed);
      continue;
    }
    ++accepted;
    evaluateSome(*program, random, 1);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(accepted, 50);
}

} // namespace
