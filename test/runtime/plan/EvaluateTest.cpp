// Tests keys, aliases of arguments, and refused bytecode with hand-written programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plan/Decoded.h"
#include "runtime/plan/Program.h"
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

using namespace kpkg::plan;

namespace {

using Regs = std::vector<uint16_t>;
using Values = std::vector<int64_t>;

/// op(mut x, y, s: pass-through float, f: float) -> nothing, with one persistent launch.
DecodedModule sample() {
  DecodedModule module;
  module.strings = {"ns::op", "x", "y", "s", "f", "k"};
  Function &f = module.functions.emplace_back();
  f.registerTypes = "ttFf";
  f.parameters = {{1, true}, {2, false}, {3, false}, {4, false}};
  f.add(Opcode::launch, {}, Regs{0, 1, 2, 3}, Values{5, 0, 4, 1, 0, 0, 0});
  f.add(Opcode::ret, {}, {}, {});
  return module;
}

Program load(const DecodedModule &module) {
  Error error;
  auto program = Program::load(encode(module), error);
  EXPECT_TRUE(program) << error.message;
  return std::move(*program);
}

std::string refusal(const DecodedModule &module) {
  Error error;
  auto program = Program::load(encode(module), error);
  return program ? "accepted" : error.message;
}

Argument tensor(std::span<const int64_t> shape, const int64_t *strides = nullptr) {
  Argument argument;
  argument.kind = Argument::Kind::Tensor;
  argument.tensor = {DType::Float32, static_cast<int32_t>(shape.size()), shape.data(), strides};
  return argument;
}
Argument real(double value) {
  Argument argument;
  argument.kind = Argument::Kind::Float;
  argument.real = value;
  return argument;
}

std::vector<uint64_t> keyOf(const Program &program, CallSignature call) {
  std::vector<uint64_t> key;
  appendKey(program, call, key);
  return key;
}

TEST(PlanKey, LeavesPassThroughScalarsOutAndKnowsNaN) {
  Program program = load(sample());
  EXPECT_TRUE(program.arguments()[2].passThrough);
  EXPECT_FALSE(program.arguments()[3].passThrough);
  int64_t shape[] = {2, 3};
  double nan = std::numeric_limits<double>::quiet_NaN();
  auto call = [&](double s, double f) { return std::vector{tensor(shape), tensor(shape), real(s), real(f)}; };
  EXPECT_EQ(keyOf(program, call(1, 2)), keyOf(program, call(5, 2)));
  EXPECT_NE(keyOf(program, call(1, 2)), keyOf(program, call(1, 3)));
  EXPECT_EQ(keyOf(program, call(1, nan)), keyOf(program, call(1, nan)));
  EXPECT_NE(keyOf(program, call(1, 0.0)), keyOf(program, call(1, -0.0)));
}

TEST(PlanKey, DenseStridesNeedNotBeGiven) {
  Program program = load(sample());
  int64_t shape[] = {2, 3}, dense[] = {3, 1}, transposed[] = {1, 2};
  std::vector a{tensor(shape), tensor(shape), real(0), real(0)},
      b{tensor(shape, dense), tensor(shape), real(0), real(0)},
      c{tensor(shape, transposed), tensor(shape), real(0), real(0)};
  EXPECT_EQ(keyOf(program, a), keyOf(program, b));
  EXPECT_NE(keyOf(program, a), keyOf(program, c));
}

TEST(PlanAliases, WrittenMemoryIsNotShared) {
  Program program = load(sample());
  int64_t shape[] = {4, 4}, strides[] = {8, 1}, broadcast[] = {0, 1};
  std::vector call{tensor(shape, strides), tensor(shape, strides), real(0), real(0)};
  auto check = [&](uint64_t x, uint64_t y) {
    uint64_t addresses[] = {x, y, 0, 0};
    auto error = checkAliases(program, call, addresses);
    return error ? error->message : "";
  };
  EXPECT_EQ(check(4096, 8192), "");
  EXPECT_EQ(check(4096, 4096 + 16), ""); // the other half of the same rows
  EXPECT_EQ(check(4096, 4096), "argument `x` is written and shares memory with argument `y`");
  EXPECT_EQ(check(4096, 4096 - 12), "argument `x` is written and shares memory with argument `y`");
  call[0] = tensor(shape, broadcast);
  EXPECT_EQ(check(4096, 8192), "argument `x` is written, but its elements share memory: shape [4, 4], strides [0, 1]");
}

TEST(PlanVerifier, RefusesWhatCouldGoWrong) {
  auto change = [](auto edit) {
    DecodedModule module = sample();
    edit(module, module.functions[0]);
    return refusal(module);
  };
  EXPECT_EQ(change([](auto &, auto &) {}), "accepted");
  EXPECT_THAT(change([](auto &, Function &f) { f.code.pop_back(); }), testing::HasSubstr("without a return"));
  EXPECT_THAT(change([](auto &, Function &f) { f.registers[1] = 4; }), testing::HasSubstr("register 4 of 4"));
  EXPECT_THAT(change([](auto &, Function &f) {
                f.registerTypes += 'i';
                f.add(Opcode::abs_int, Regs{4}, Regs{4}, {});
                std::swap(f.code[0], f.code.back());
              }),
              testing::HasSubstr("register 4 is read but not assigned on every path"));
  EXPECT_THAT(change([](auto &, Function &f) { f.immediates[0] = 6; }), testing::HasSubstr("string 6 of 6"));
  EXPECT_THAT(change([](auto &, Function &f) { f.immediates[2] = 1; }),
              testing::HasSubstr("launch is not well-formed"));
  EXPECT_THAT(change([](auto &, Function &f) { f.immediates[5] = 1; }),
              testing::HasSubstr("argument 2 is mut but has type F"));
  EXPECT_THAT(change([](auto &, Function &f) { f.parameters[3].isMut = true; }),
              testing::HasSubstr("parameter 3 is mut"));
  EXPECT_THAT(change([](auto &, Function &f) { f.resultTypes = "f"; }), testing::HasSubstr("a result has type f"));
  EXPECT_THAT(change([](auto &, Function &f) {
                f.add(Opcode::jump, {}, {}, Values{0});
                std::swap(f.code[1], f.code[2]);
              }),
              testing::HasSubstr("jump to 0, expected 2 to 2"));
  EXPECT_THAT(change([](auto &, Function &f) {
                f.add(Opcode::call, {}, Regs{0, 1, 2, 3}, Values{0});
                std::swap(f.code[1], f.code[2]);
              }),
              testing::HasSubstr("function 0 calls 0"));
  EXPECT_THAT(change([](auto &, Function &f) {
                f.add(Opcode::loop_end, {}, {}, Values{0});
                std::swap(f.code[1], f.code[2]);
              }),
              testing::HasSubstr("the end of a loop does not fit its beginning"));
}

TEST(PlanVerifier, RefusesJumpsIntoLoops) {
  DecodedModule module = sample();
  Function &f = module.functions[0];
  f.code.clear();
  f.registerTypes += 'b';
  f.add(Opcode::const_bool, Regs{4}, {}, Values{1});
  f.add(Opcode::branch_unless, {}, Regs{4}, Values{3});
  f.add(Opcode::loop_while, {}, {}, Values{5});
  f.add(Opcode::break_unless, {}, Regs{4}, {});
  f.add(Opcode::loop_end, {}, {}, Values{2});
  f.add(Opcode::ret, {}, {}, {});
  EXPECT_THAT(refusal(module), testing::HasSubstr("a jump leads into the loop, to 3"));
}

TEST(PlanDecoder, RefusesOtherVersionsAndRests) {
  std::vector<uint8_t> bytes = encode(sample());
  Error error;
  auto refused = [&](std::vector<uint8_t> changed) {
    return Program::load(changed, error) ? "accepted" : error.message;
  };
  EXPECT_EQ(refused(bytes), "accepted");
  auto longer = bytes;
  longer.push_back(0);
  EXPECT_THAT(refused(longer), testing::HasSubstr("bytes after the end"));
  auto newer = bytes;
  newer[4] = 2;
  EXPECT_THAT(refused(newer), testing::HasSubstr("version 2.0, this runtime reads 1.x"));
  auto minor = bytes;
  minor[6] = 9;
  EXPECT_EQ(refused(minor), "accepted");
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(refused({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size)}), "accepted") << size;
}

TEST(PlanEvaluate, RefusesImpossibleArguments) {
  Program program = load(sample());
  Resolution resolution;
  auto message = [&](Argument x) {
    std::vector call{x, x, real(0), real(0)};
    auto error = evaluate(program, call, resolution);
    return error ? error->message : "";
  };
  int64_t negative[] = {2, -3}, huge[] = {INT64_MAX, 2}, shape[] = {2, 2}, far[] = {INT64_MAX, 1};
  EXPECT_THAT(message(tensor(negative)), testing::HasSubstr("argument `x`: shape [2, -3] is negative or too large"));
  EXPECT_THAT(message(tensor(huge)), testing::HasSubstr("too large"));
  EXPECT_THAT(message(tensor(shape, far)), testing::HasSubstr("reach too far"));
  Argument untyped = tensor(shape);
  untyped.tensor.dtype = static_cast<DType>(99);
  EXPECT_THAT(message(untyped), testing::HasSubstr("it has no dtype"));
  for (DType dtype : {DType::Int4, DType::UInt4, DType::Float4_e2m1fn}) {
    untyped.tensor.dtype = dtype;
    EXPECT_THAT(message(untyped), testing::HasSubstr(fmt::format("there are no tensors of {}", dtypeName(dtype))));
  }
  Argument deep = tensor(shape);
  deep.tensor.rank = 17;
  EXPECT_THAT(message(deep), testing::HasSubstr("rank 17, expected 0 to 16"));
}

TEST(PlanEvaluate, AllocatesNoElementsOfLessThanAByte) {
  for (DType dtype : {DType::Float8_e8m0fnu, DType::Int4, DType::Float4_e2m1fn}) {
    DecodedModule module;
    module.strings = {"ns::op"};
    Function &f = module.functions.emplace_back();
    f.registerTypes = "ldt";
    f.resultTypes = "t";
    f.add(Opcode::list, Regs{0}, {}, {});
    f.add(Opcode::const_dtype, Regs{1}, {}, Values{static_cast<int64_t>(dtype)});
    f.add(Opcode::empty, Regs{2}, Regs{0, 1}, {});
    f.add(Opcode::ret, {}, Regs{2}, {});
    Resolution resolution;
    auto error = evaluate(load(module), {}, resolution);
    EXPECT_EQ(bool(error), dtypeBits(dtype) < 8);
    if (error)
      EXPECT_THAT(error->message, testing::HasSubstr(fmt::format("there are no tensors of {}", dtypeName(dtype))));
  }
}

TEST(PlanEvaluate, TakesAbsentDTypes) {
  DecodedModule module;
  module.strings = {"ns::op", "d"};
  Function &f = module.functions.emplace_back();
  f.registerTypes = "dldbdt";
  f.parameters = {{1, false}};
  f.resultTypes = "t";
  f.add(Opcode::list, Regs{1}, {}, {});
  f.add(Opcode::const_dtype, Regs{2}, {}, Values{0});
  f.add(Opcode::eq_dtype, Regs{3}, Regs{0, 2}, {});
  f.add(Opcode::const_dtype, Regs{4}, {}, Values{static_cast<int64_t>(DType::Int8)});
  f.add(Opcode::select, Regs{4}, Regs{3, 4, 0}, {});
  f.add(Opcode::empty, Regs{5}, Regs{1, 4}, {});
  f.add(Opcode::ret, {}, Regs{5}, {});
  Program program = load(module);
  Argument given;
  given.kind = Argument::Kind::DType;
  given.integer = static_cast<int64_t>(DType::Float16);
  for (const Argument &argument : {Argument(), given}) {
    Resolution resolution;
    std::vector<Argument> call = {argument};
    ASSERT_FALSE(evaluate(program, call, resolution));
    EXPECT_EQ(resolution.outputs[0].dtype, argument.kind == given.kind ? DType::Float16 : DType::Int8);
  }
  DecodedModule unguarded;
  unguarded.strings = {"ns::op", "d"};
  Function &g = unguarded.functions.emplace_back();
  g.registerTypes = "dlt";
  g.parameters = {{1, false}};
  g.resultTypes = "t";
  g.add(Opcode::list, Regs{1}, {}, {});
  g.add(Opcode::empty, Regs{2}, Regs{1, 0}, {});
  g.add(Opcode::ret, {}, Regs{2}, {});
  Resolution resolution;
  std::vector<Argument> absent(1);
  auto error = evaluate(load(unguarded), absent, resolution);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, testing::HasSubstr("it has no dtype"));
}

TEST(PlanEvaluate, SeesTheProcessorsOfTheDevice) {
  DecodedModule module;
  module.strings = {"ns::op"};
  Function &f = module.functions.emplace_back();
  f.registerTypes = "ildt";
  f.resultTypes = "t";
  f.add(Opcode::processors, Regs{0}, {}, {});
  f.add(Opcode::list, Regs{1}, Regs{0}, {});
  f.add(Opcode::const_dtype, Regs{2}, {}, Values{static_cast<int64_t>(DType::Float32)});
  f.add(Opcode::empty, Regs{3}, Regs{1, 2}, {});
  f.add(Opcode::ret, {}, Regs{3}, {});
  Program program = load(module);
  EXPECT_TRUE(program.usesProcessors());
  EXPECT_FALSE(load(sample()).usesProcessors());
  Resolution resolution;
  auto extent = [&](auto... processors) {
    EXPECT_FALSE(evaluate(program, {}, resolution, processors...));
    return resolution.outputs[0].shape[0];
  };
  EXPECT_EQ(extent(), 16);
  EXPECT_EQ(extent(132), 132);
  EXPECT_EQ(extent(0), 1);
  EXPECT_EQ(extent(1 << 20), 65535);
}

TEST(PlanEvaluate, TakesRemaindersOfTheSmallestIntegers) {
  auto remainder = [](int64_t a, int64_t b, int64_t expected) {
    DecodedModule module;
    module.strings = {"ns::op"};
    Function &f = module.functions.emplace_back();
    f.registerTypes = "iiiildt";
    f.resultTypes = "t";
    f.add(Opcode::const_int, Regs{0}, {}, Values{a});
    f.add(Opcode::const_int, Regs{1}, {}, Values{b});
    f.add(Opcode::const_int, Regs{2}, {}, Values{expected});
    f.add(Opcode::mod_int, Regs{3}, Regs{0, 1}, {});
    f.add(Opcode::sub_int, Regs{3}, Regs{3, 2}, {});
    f.add(Opcode::list, Regs{4}, Regs{3}, {});
    f.add(Opcode::const_dtype, Regs{5}, {}, Values{static_cast<int64_t>(DType::Float32)});
    f.add(Opcode::empty, Regs{6}, Regs{4, 5}, {});
    f.add(Opcode::ret, {}, Regs{6}, {});
    Resolution resolution;
    auto error = evaluate(load(module), {}, resolution);
    return error ? -1 : resolution.outputs[0].shape[0];
  };
  EXPECT_EQ(remainder(7, INT64_MIN, INT64_MIN + 7), 0); // UndefinedBehaviorSanitizer sees products that overflow
  EXPECT_EQ(remainder(-7, INT64_MIN, -7), 0);
  EXPECT_EQ(remainder(INT64_MIN, INT64_MAX, INT64_MAX - 1), 0);
  EXPECT_EQ(remainder(INT64_MIN, INT64_MIN, 0), 0);
  EXPECT_EQ(remainder(INT64_MIN, -1, 0), 0);
}

/// Returns a loop of `turns` iterations that do `work`; `registers` are the op's registers after 0 to 2.
DecodedModule loopOf(int64_t turns, const std::string &registers, auto work) {
  DecodedModule module;
  module.strings = {"ns::op", "inner"};
  Function f;
  f.registerTypes = "iii" + registers;
  f.add(Opcode::const_int, Regs{0}, {}, Values{0});
  f.add(Opcode::const_int, Regs{1}, {}, Values{turns});
  f.add(Opcode::const_int, Regs{2}, {}, Values{1});
  work(module, f, /*isBody=*/false);
  size_t begin = f.code.size();
  f.add(Opcode::loop_for, {}, Regs{0, 1, 2}, Values{static_cast<int64_t>(begin) + 3});
  work(module, f, /*isBody=*/true);
  f.add(Opcode::loop_end, {}, {}, Values{static_cast<int64_t>(begin)});
  f.add(Opcode::ret, {}, {}, {});
  module.functions.insert(module.functions.begin(), std::move(f));
  return module;
}

TEST(PlanEvaluate, BoundsWorkAndNotOnlyInstructions) {
  auto message = [](const DecodedModule &module) {
    Program program = load(module);
    Resolution resolution;
    auto error = evaluate(program, {}, resolution);
    return error ? error->message : "";
  };
  auto calls = [](size_t registers) {
    return [registers](DecodedModule &module, Function &f, bool isBody) {
      if (isBody)
        return f.add(Opcode::call, {}, {}, Values{1});
      Function inner;
      inner.name = 1;
      inner.registerTypes = std::string(registers, 'i');
      inner.add(Opcode::ret, {}, {}, {});
      module.functions.push_back(std::move(inner));
    };
  };
  EXPECT_EQ(message(loopOf(2000, "", calls(16))), "");
  EXPECT_THAT(message(loopOf(2000, "", calls(16384))), testing::HasSubstr("more than 1048576 instructions"));

  auto comparisons = [](size_t bytes) {
    return [bytes](DecodedModule &module, Function &f, bool isBody) {
      if (isBody)
        return f.add(Opcode::eq_string, Regs{5}, Regs{3, 4}, {});
      module.strings.insert(module.strings.end(), 2, std::string(bytes, 'x'));
      f.add(Opcode::const_string, Regs{3}, {}, Values{2});
      f.add(Opcode::const_string, Regs{4}, {}, Values{3});
    };
  };
  EXPECT_EQ(message(loopOf(10000, "ssb", comparisons(16))), "");
  EXPECT_THAT(message(loopOf(10000, "ssb", comparisons(65536))), testing::HasSubstr("more than 1048576 instructions"));
}

TEST(Timing, EvaluatePlan) {
  Program program = load(sample());
  int64_t shape[] = {64, 64};
  std::vector call{tensor(shape), tensor(shape), real(0), real(0)};
  Resolution resolution;
  auto begin = std::chrono::steady_clock::now();
  for (int k = 0; k < 1000; ++k)
    ASSERT_FALSE(evaluate(program, call, resolution));
  double each = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / 1000;
  RecordProperty("microseconds", std::to_string(each));
  EXPECT_LT(each, 100); // 1 to 2 on an idle machine
}

} // namespace
