// Tests lists of tensors in plans: reading, limits, names in errors, shared memory, and refused bytecode.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plan/Decoded.h"
#include "runtime/plan/Program.h"
#include <array>
#include <gtest/gtest.h>

namespace kpkg::plan {

namespace {

using Regs = std::vector<uint16_t>;
using Values = std::vector<int64_t>;

constexpr int64_t shape[] = {2, 3};

/// op(mut a: list, b: list, i: Int) -> b[i], after a launch that writes a[i] and reads b[i].
DecodedModule sample() {
  DecodedModule module;
  module.strings = {"ns::op", "a", "b", "i", "k", "{} and {}"};
  Function &f = module.functions.emplace_back();
  f.registerTypes = "vvitti";
  f.parameters = {{1, true}, {2, false}, {3, false}};
  f.resultTypes = "t";
  f.add(Opcode::tensors_get, Regs{3}, Regs{0, 2}, {});
  f.add(Opcode::tensors_get, Regs{4}, Regs{1, 2}, {});
  f.add(Opcode::launch, {}, Regs{3, 4}, Values{4, 0, 2, 1, 0});
  f.add(Opcode::ret, {}, Regs{4}, {});
  return module;
}

std::optional<Program> load(const DecodedModule &module, std::string &why) {
  Error error;
  auto program = Program::load(encode(module), error);
  why = error.message;
  return program;
}

Argument tensor() {
  Argument argument;
  argument.kind = Argument::Kind::Tensor;
  argument.tensor = {DType::Float32, 2, shape, nullptr};
  return argument;
}
Argument list(size_t first, size_t count) {
  Argument argument;
  argument.kind = Argument::Kind::TensorList;
  argument.first = first;
  argument.count = count;
  return argument;
}
Argument integer(int64_t value) {
  Argument argument;
  argument.kind = Argument::Kind::Int;
  argument.integer = value;
  return argument;
}

/// Two lists of these lengths and an index, with the tensors behind them.
std::vector<Argument> callOf(size_t a, size_t b, int64_t index) {
  std::vector<Argument> call{list(3, a), list(3 + a, b), integer(index)};
  call.resize(3 + a + b, tensor());
  return call;
}

std::string outcome(const DecodedModule &module, const std::vector<Argument> &call) {
  std::string why;
  auto program = load(module, why);
  EXPECT_TRUE(program) << why;
  Resolution resolution;
  auto error = evaluate(*program, call, resolution);
  return error ? error->message : describe(*program, resolution);
}

std::string refusal(const DecodedModule &module) {
  std::string why;
  return load(module, why) ? "accepted" : why;
}

} // namespace

TEST(PlanTensorLists, ElementsAreArgumentsOfTheirOwn) {
  EXPECT_EQ(outcome(sample(), callOf(2, 3, 1)), "launch k(mut a[1]: float32[2, 3], b[1]: float32[2, 3]) persistent\n"
                                                "copy (b[1]: float32[2, 3]) to (result2: float32[2, 3])\n"
                                                "output 0: result2: float32[2, 3]\n");
  EXPECT_NE(outcome(sample(), callOf(2, 2, -1)).find("mut a[1]"), std::string::npos);
}

TEST(PlanTensorLists, IndicesOutsideAreErrorsThatNameTheList) {
  EXPECT_EQ(outcome(sample(), callOf(2, 1, 1)), "index 1 is out of range for `b` of 1 tensors");
  EXPECT_EQ(outcome(sample(), callOf(0, 1, 0)), "index 0 is out of range for `a` of 0 tensors");
  EXPECT_EQ(outcome(sample(), callOf(2, 2, INT64_MIN)),
            "index -9223372036854775808 is out of range for `a` of 2 tensors");
}

TEST(PlanTensorLists, OnlyMutListsAreWritten) {
  DecodedModule module = sample();
  module.functions[0].parameters[0].isMut = false;
  EXPECT_EQ(outcome(module, callOf(1, 1, 0)), "launch of k: it writes `a[0]`, which is not `mut`");
}

TEST(PlanTensorLists, ListsAreMadeJoinedAndCut) {
  DecodedModule module;
  module.strings = {"ns::op", "a", "{} of {}"};
  Function &f = module.functions.emplace_back();
  f.registerTypes = "vvvvvtiii";
  f.parameters = {{1, false}};
  f.add(Opcode::const_int, Regs{6}, {}, Values{1});
  f.add(Opcode::const_int, Regs{7}, {}, Values{-1});
  f.add(Opcode::tensors_get, Regs{5}, Regs{0, 7}, {});
  f.add(Opcode::tensors, Regs{1}, Regs{5, 5}, {});
  f.add(Opcode::tensors_append, Regs{2}, Regs{1, 5}, {});
  f.add(Opcode::tensors_concat, Regs{3}, Regs{0, 2}, {});
  f.add(Opcode::tensors_slice, Regs{4}, Regs{3, 6, 7}, {});
  f.add(Opcode::tensors_len, Regs{8}, Regs{4}, {});
  f.add(Opcode::raise, {}, Regs{4, 8}, Values{2});
  std::vector<Argument> call{list(1, 2), tensor(), tensor()};
  EXPECT_EQ(outcome(module, call), "a list of 3 tensors of 3");
}

TEST(PlanTensorLists, LengthsAreLimited) {
  EXPECT_EQ(outcome(sample(), callOf(maxTensorList + 1, 1, 0)), "a list of 4097 tensors, more than 4096");
  // A loop that doubles a list.
  DecodedModule module;
  module.strings = {"ns::op"};
  Function &f = module.functions.emplace_back();
  f.registerTypes = "vtiii";
  f.add(Opcode::none, Regs{1}, {}, {});
  f.add(Opcode::tensors, Regs{0}, Regs{1, 1}, {});
  for (uint16_t reg : {2, 3, 4})
    f.add(Opcode::const_int, Regs{reg}, {}, Values{reg == 3 ? 1000 : reg == 4});
  f.add(Opcode::loop_for, {}, Regs{2, 3, 4}, Values{8});
  f.add(Opcode::tensors_concat, Regs{0}, Regs{0, 0}, {});
  f.add(Opcode::loop_end, {}, {}, Values{5});
  f.add(Opcode::ret, {}, {}, {});
  EXPECT_EQ(outcome(module, {}), "a list of 8192 tensors, more than 4096");
}

TEST(PlanTensorLists, CallsWithoutTheTensorsOfTheirListsAreErrors) {
  std::vector<Argument> call = callOf(2, 2, 0);
  call.pop_back();
  EXPECT_EQ(outcome(sample(), call), "argument `b` is a list without its tensors");
  call = callOf(2, 2, 0);
  call.push_back(tensor());
  EXPECT_EQ(outcome(sample(), call), "8 arguments, expected 7");
  call = callOf(2, 2, 0);
  call[1].first = 3;
  EXPECT_EQ(outcome(sample(), call), "argument `b` is a list without its tensors");
  call = callOf(2, 2, 0);
  call[0].count = SIZE_MAX;
  EXPECT_EQ(outcome(sample(), call), "argument `a` is a list without its tensors");
  call = callOf(2, 2, 0);
  call[6] = integer(1);
  EXPECT_EQ(outcome(sample(), call), "`b[1]` is Int, expected Tensor");
  call = callOf(2, 2, 0);
  call[0] = tensor();
  EXPECT_EQ(outcome(sample(), call), "argument `b` is a list without its tensors");
}

TEST(PlanTensorLists, KeysKnowWhichListATensorIsIn) {
  std::string why;
  auto program = load(sample(), why);
  auto keyOf = [&](size_t a, size_t b) {
    std::vector<uint64_t> key;
    std::vector<Argument> call = callOf(a, b, 0);
    appendKey(*program, call, key);
    return key;
  };
  EXPECT_EQ(keyOf(2, 1), keyOf(2, 1));
  EXPECT_NE(keyOf(2, 1), keyOf(1, 2));
  EXPECT_NE(keyOf(2, 1), keyOf(2, 2));
}

TEST(PlanTensorLists, WrittenListsShareNoMemory) {
  std::string why;
  auto program = load(sample(), why);
  std::vector<Argument> call = callOf(2, 2, 0);
  auto check = [&](uint64_t a0, uint64_t a1, uint64_t b0, uint64_t b1) {
    uint64_t addresses[] = {0, 0, 0, a0, a1, b0, b1};
    auto error = checkAliases(*program, call, addresses);
    EXPECT_TRUE(!error || error->argument == 0);
    return error ? error->message : "";
  };
  EXPECT_EQ(check(4096, 8192, 12288, 12288), "");
  EXPECT_EQ(check(8192, 8192 + 24, 4096, 8192 + 48), ""); // side by side
  EXPECT_EQ(check(4096, 8192, 12288, 8192), "argument `a[1]` is written and shares memory with argument `b[1]`");
  EXPECT_EQ(check(8192, 8196, 4096, 4096), "argument `a[0]` is written and shares memory with argument `a[1]`");
  EXPECT_EQ(check(8192, 8192, 8192, 8192), "argument `a[0]` is written and shares memory with argument `a[1]`");
}

TEST(PlanTensorLists, BytecodeThatConfusesTypesIsRefused) {
  auto change = [](auto edit) {
    DecodedModule module = sample();
    edit(module, module.functions[0]);
    return refusal(module);
  };
  auto expect = [](const std::string &found, const char *wanted) {
    EXPECT_NE(found.find(wanted), std::string::npos) << found;
  };
  EXPECT_EQ(refusal(sample()), "accepted");
  // Each register takes the place of another one: nothing but the types of the signature is accepted.
  for (uint16_t reg = 0; reg < 6; ++reg) {
    expect(change([=](DecodedModule &, Function &f) { f.registers[1] = reg; }),
           reg < 2 ? "accepted" : "has type"); // the list of tensors_get
    expect(change([=](DecodedModule &, Function &f) { f.registers[2] = reg; }),
           reg == 2   ? "accepted"
           : reg == 5 ? "not assigned"
                      : "has type"); // its index
    expect(change([=](DecodedModule &, Function &f) { f.registers[0] = reg; }),
           reg == 3   ? "accepted"
           : reg == 4 ? "not assigned"
                      : "has type"); // its result
  }
  expect(change([](DecodedModule &, Function &f) { f.registers[6] = 0; }), "launch operand 0 has type v");
  expect(change([](DecodedModule &, Function &f) { f.registers[8] = 0; }), "returns type v, expected t");
  expect(change([](DecodedModule &, Function &f) { f.resultTypes = "v", f.registers[8] = 0; }), "a result has type v");
  expect(change([](DecodedModule &, Function &f) { f.parameters[2].isMut = true; }), "parameter 2 is mut");
  expect(change([](DecodedModule &, Function &f) { f.code[0].op = Opcode::list_get; }), "has type");
  expect(change([](DecodedModule &, Function &f) { f.code[0].op = Opcode::dim; }), "has type");
  expect(change([](DecodedModule &, Function &f) { f.code[0].op = Opcode(119); }), "unknown opcode 119");
}

} // namespace kpkg::plan
