// Tests the interpreter's rules with one small kernel each; expected values are computed by hand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/sim/Interpreter.h"
#include "dialect/pipeline/Registration.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kpkg;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {
struct Interpreter : testing::Test {
  mlir::DialectRegistry registry = [] {
    mlir::DialectRegistry all;
    registerDialects(all);
    return all;
  }();
  mlir::MLIRContext context{registry, mlir::MLIRContext::Threading::DISABLED};
  sim::Options options;
  std::vector<float> y; // The output of `run`.

  /// Returns a dense row-major f32 view.
  sim::View view(std::vector<float> &data, llvm::ArrayRef<int64_t> shape) {
    sim::View view{reinterpret_cast<char *>(data.data()), mlir::Float32Type::get(&context),
                   llvm::SmallVector<int64_t>(shape), llvm::SmallVector<int64_t>(shape.size(), 1)};
    for (size_t d = shape.size(); d-- > 1;)
      view.strides[d - 1] = view.strides[d] * shape[d];
    return view;
  }

  /// Runs a kernel with this body. %x is the 1-D view of `x`, and %y is a 1-D output of `outputs` numbers, all -7
  /// before the run.
  std::string run(const std::string &body, std::vector<float> x, int64_t outputs,
                  std::array<int64_t, 3> grid = {1, 1, 1}) {
    std::string text =
        "tile.kernel @k(%x: !tile.view<1xf32>, %y: !tile.view<1xf32, mut>) {\n"
        "%0 = arith.constant 0 : index\n%1 = arith.constant 1 : index\n%zero = arith.constant 0.0 : f32\n" +
        body + "\ntile.return }";
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module)
      return "the test's own module does not parse";
    y.assign(outputs, -7);
    llvm::Error error = sim::run(*module->getOps<tile::KernelOp>().begin(),
                                 {view(x, {static_cast<int64_t>(x.size())}), view(y, {outputs})}, grid, options);
    return llvm::toString(std::move(error));
  }
};

TEST_F(Interpreter, LoadFillsAndStoreDropsOutside) {
  EXPECT_EQ(run(R"(
    %f = arith.constant 9.0 : f32
    %m = arith.constant -1 : index
    %t = tile.load %x[%m] fill %f : !tile.view<1xf32> -> tensor<4xf32>
    tile.store %t, %y[%1] : tensor<4xf32>, !tile.view<1xf32, mut>)",
                {1, 2}, 4),
            "");
  EXPECT_THAT(y, ElementsAre(-7, 9, 1, 2));
}

TEST_F(Interpreter, HugeOffsetsAreOutside) {
  EXPECT_EQ(run(R"(
    %h = arith.constant 9223372036854775806 : index
    %t = tile.load %x[%h] fill %zero : !tile.view<1xf32> -> tensor<4xf32>
    tile.store %t, %y[%0] : tensor<4xf32>, !tile.view<1xf32, mut>
    tile.store %t, %y[%h] : tensor<4xf32>, !tile.view<1xf32, mut>)",
                {1, 2}, 4),
            "");
  EXPECT_THAT(y, ElementsAre(0, 0, 0, 0));
}

TEST_F(Interpreter, DroppingOutOfRangeLeavesNoElement) {
  EXPECT_EQ(run(R"(
    %f = arith.constant 9.0 : f32
    %m = arith.constant -1 : index
    %in = tile.drop %x [0] at (%1) : !tile.view<1xf32> -> !tile.view<0xf32>
    %out = tile.drop %x [0] at (%m) : !tile.view<1xf32> -> !tile.view<0xf32>
    %a = tile.load %in[] fill %f : !tile.view<0xf32> -> f32
    %b = tile.load %out[] fill %f : !tile.view<0xf32> -> f32
    %ya = tile.drop %y [0] at (%0) : !tile.view<1xf32, mut> -> !tile.view<0xf32, mut>
    %yb = tile.drop %y [0] at (%1) : !tile.view<1xf32, mut> -> !tile.view<0xf32, mut>
    %yc = tile.drop %y [0] at (%m) : !tile.view<1xf32, mut> -> !tile.view<0xf32, mut>
    tile.store %a, %ya[] : f32, !tile.view<0xf32, mut>
    tile.store %b, %yb[] : f32, !tile.view<0xf32, mut>
    tile.store %b, %yc[] : f32, !tile.view<0xf32, mut>)",
                {1, 2}, 3),
            "");
  EXPECT_THAT(y, ElementsAre(2, 9, -7));
}

TEST_F(Interpreter, GatherAndScatterMask) {
  EXPECT_EQ(run(R"(
    %i = arith.constant dense<[3, 0, -1, 2]> : tensor<4xindex>
    %m = arith.constant dense<[true, false, true, true]> : tensor<4xi1>
    %t = tile.gather %x[%i] fill %zero mask %m : !tile.view<1xf32>, tensor<4xindex> -> tensor<4xf32>
    tile.scatter %t, %y[%i] mask %m : tensor<4xf32>, !tile.view<1xf32, mut>, tensor<4xindex>)",
                {1, 2, 3, 4}, 4),
            "");
  EXPECT_THAT(y, ElementsAre(-7, -7, 3, 4));
}

TEST_F(Interpreter, ReduceMaxPropagatesNaNAndArgReduceTakesTheFirst) {
  EXPECT_EQ(run(R"(
    %t = tile.load %x[%0] fill %zero : !tile.view<1xf32> -> tensor<4xf32>
    %a = tile.reshape %t : tensor<4xf32> -> tensor<2x2xf32>
    %m = tile.reduce max %a axis 1 : tensor<2x2xf32> -> tensor<2x1xf32>
    %n = tile.arg_reduce max %a axis 1 : tensor<2x2xf32> -> tensor<2x1xindex>
    %i = arith.index_cast %n : tensor<2x1xindex> to tensor<2x1xi32>
    %f = arith.sitofp %i : tensor<2x1xi32> to tensor<2x1xf32>
    %u = tile.reshape %m : tensor<2x1xf32> -> tensor<2xf32>
    %v = tile.reshape %f : tensor<2x1xf32> -> tensor<2xf32>
    %two = arith.constant 2 : index
    tile.store %u, %y[%0] : tensor<2xf32>, !tile.view<1xf32, mut>
    tile.store %v, %y[%two] : tensor<2xf32>, !tile.view<1xf32, mut>)",
                {3, 3, 1, NAN}, 4),
            "");
  EXPECT_EQ(y[0], 3);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[2], 0);
  EXPECT_EQ(y[3], 1);
}

TEST_F(Interpreter, NarrowArithmeticRoundsAfterEachOpAndSumsInF32) {
  // In bf16, 256 + 1 = 256. The f32 sum of 256, 1, 1, 1 is 259, which rounds to 260. From 256 on the spacing is 2, and
  // the tie between 258 and 260 goes to even.
  const char *body = R"(
    %t = tile.load %x[%0] fill %zero : !tile.view<1xf32> -> tensor<4xf32>
    %b = arith.truncf %t : tensor<4xf32> to tensor<4xbf16>
    %s = tile.reduce sum %b axis 0 : tensor<4xbf16> -> tensor<1xbf16>
    %one = arith.constant dense<1.0> : tensor<1xbf16>
    %r = arith.addf %s, %one : tensor<1xbf16>
    %e = arith.extf %s : tensor<1xbf16> to tensor<1xf32>
    %f = arith.extf %r : tensor<1xbf16> to tensor<1xf32>
    tile.store %e, %y[%0] : tensor<1xf32>, !tile.view<1xf32, mut>
    tile.store %f, %y[%1] : tensor<1xf32>, !tile.view<1xf32, mut>)";
  EXPECT_EQ(run(body, {256, 1, 1, 1}, 2), "");
  EXPECT_THAT(y, ElementsAre(260, 260));
}

TEST_F(Interpreter, OrderOfASumCanBeChosen) {
  const char *body = R"(
    %t = tile.load %x[%0] fill %zero : !tile.view<1xf32> -> tensor<4xf32>
    %s = tile.reduce sum %t axis 0 : tensor<4xf32> -> tensor<1xf32>
    tile.store %s, %y[%0] : tensor<1xf32>, !tile.view<1xf32, mut>)";
  EXPECT_EQ(run(body, {1e8, -1e8, 1, 2}, 1), "");
  EXPECT_THAT(y, ElementsAre(3));
  options.sumOrder = sim::SumOrder::Backward;
  EXPECT_EQ(run(body, {1e8, -1e8, 1, 2}, 1), "");
  EXPECT_THAT(y, ElementsAre(0));
}

TEST_F(Interpreter, CombineAndScanCallTheirFunction) {
  EXPECT_EQ(run(R"(
    %t = tile.load %x[%0] fill %zero : !tile.view<1xf32> -> tensor<4xf32>
    %one = arith.constant 1.0 : f32
    %ones = tile.splat %one : f32 -> tensor<4xf32>
    %c:2 = tile.combine (%t, %ones : tensor<4xf32>, tensor<4xf32>) axis 0 init (%zero, %zero : f32, f32) -> tensor<1xf32>, tensor<1xf32> {
    ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
      %s = arith.addf %a, %c : f32
      %n = arith.addf %b, %d : f32
      tile.yield %s, %n : f32, f32
    }
    %m = arith.divf %c#0, %c#1 : tensor<1xf32>
    %p = tile.scan (%t : tensor<4xf32>) axis 0 {
    ^bb0(%a: f32, %b: f32):
      %s = arith.mulf %a, %b : f32
      tile.yield %s : f32
    }
    tile.store %m, %y[%0] : tensor<1xf32>, !tile.view<1xf32, mut>
    tile.store %p, %y[%1] : tensor<4xf32>, !tile.view<1xf32, mut>)",
                {1, 2, 3, 4}, 5),
            "");
  EXPECT_THAT(y, ElementsAre(2.5, 1, 2, 6, 24));
}

TEST_F(Interpreter, DotAccumulatesPerBatch) {
  EXPECT_EQ(run(R"(
    %t = tile.load %x[%0] fill %zero : !tile.view<1xf32> -> tensor<4xf32>
    %a = tile.reshape %t : tensor<4xf32> -> tensor<2x1x2xf32>
    %b = tile.reshape %t : tensor<4xf32> -> tensor<2x2x1xf32>
    %ten = arith.constant dense<10.0> : tensor<2x1x1xf32>
    %c = tile.dot %a, %b, %ten : tensor<2x1x2xf32>, tensor<2x2x1xf32>, tensor<2x1x1xf32>
    %d = tile.reshape %c : tensor<2x1x1xf32> -> tensor<2xf32>
    tile.store %d, %y[%0] : tensor<2xf32>, !tile.view<1xf32, mut>)",
                {1, 2, 3, 4}, 2),
            "");
  EXPECT_THAT(y, ElementsAre(15, 35));
}

TEST_F(Interpreter, ControlFlowCarriesTiles) {
  EXPECT_EQ(run(R"(
    %n = tile.dim %x, 0 : !tile.view<1xf32>
    %init = arith.constant dense<1.0> : tensor<1xf32>
    %r = scf.for %i = %0 to %n step %1 iter_args(%t = %init) -> (tensor<1xf32>) {
      %v = tile.load %x[%i] fill %zero : !tile.view<1xf32> -> tensor<1xf32>
      %even = arith.andi %i, %1 : index
      %c = arith.cmpi eq, %even, %0 : index
      %u = scf.if %c -> (tensor<1xf32>) {
        %s = arith.addf %t, %v : tensor<1xf32>
        scf.yield %s : tensor<1xf32>
      } else {
        %s = arith.mulf %t, %v : tensor<1xf32>
        scf.yield %s : tensor<1xf32>
      }
      scf.yield %u : tensor<1xf32>
    }
    %w:2 = scf.while (%i = %0, %t = %r) : (index, tensor<1xf32>) -> (index, tensor<1xf32>) {
      %c = arith.cmpi slt, %i, %n : index
      scf.condition(%c) %i, %t : index, tensor<1xf32>
    } do {
    ^bb0(%i: index, %t: tensor<1xf32>):
      %j = arith.addi %i, %1 : index
      %s = arith.addf %t, %t : tensor<1xf32>
      scf.yield %j, %s : index, tensor<1xf32>
    }
    tile.store %w#1, %y[%0] : tensor<1xf32>, !tile.view<1xf32, mut>)",
                {2, 3, 4}, 1),
            "");
  EXPECT_THAT(y, ElementsAre(((1 + 2) * 3 + 4) * 8));
}

TEST_F(Interpreter, GridAndPersistentLoopCoverEveryIterationOnce) {
  const char *body = R"(
    %two = arith.constant 2 : index
    %three = arith.constant 3 : index
    tile.for_tiles (%i, %j) to (%two, %three) {
      %r = arith.muli %i, %three : index
      %p = arith.addi %r, %j : index
      %old = tile.drop %y [0] at (%p) : !tile.view<1xf32, mut> -> !tile.view<0xf32, mut>
      %v = tile.load %old[] fill %zero : !tile.view<0xf32, mut> -> f32
      %p32 = arith.index_cast %p : index to i32
      %pf = arith.sitofp %p32 : i32 to f32
      %w = arith.addf %v, %pf : f32
      tile.store %w, %old[] : f32, !tile.view<0xf32, mut>
    })";
  for (std::array<int64_t, 3> grid : {std::array<int64_t, 3>{1, 1, 1}, {4, 1, 1}, {2, 2, 2}}) {
    EXPECT_EQ(run(body, {0}, 6, grid), "");
    EXPECT_THAT(y, ElementsAre(-7, -6, -5, -4, -3, -2));
  }
}

TEST_F(Interpreter, DoubleModeDoesNotRound) {
  options.inDouble = true;
  EXPECT_EQ(run(R"(
    %big = arith.constant 16777216.0 : f32
    %one = arith.constant 1.0 : f32
    %a = arith.addf %big, %one : f32
    %b = arith.subf %a, %big : f32
    %t = tile.splat %b : f32 -> tensor<1xf32>
    tile.store %t, %y[%0] : tensor<1xf32>, !tile.view<1xf32, mut>)",
                {0}, 1),
            "");
  EXPECT_THAT(y, ElementsAre(1));
}

TEST_F(Interpreter, WrongProgramsEndWithAnErrorThatSaysWhere) {
  EXPECT_THAT(run("%q = arith.divsi %1, %0 : index", {0}, 1), HasSubstr("division by zero"));
  EXPECT_THAT(run("%f = arith.constant false\ntile.assert %f, \"the row must not be empty\" : i1", {0}, 1, {2, 1, 1}),
              HasSubstr("in block (0, 0, 0): the row must not be empty"));
  EXPECT_THAT(run("%v = ub.poison : f32", {0}, 1), HasSubstr("does not know this op"));
  options.maxSteps = 1000;
  EXPECT_THAT(run(R"(%t = arith.constant true
    scf.while : () -> () { scf.condition(%t) } do { scf.yield })",
                  {0}, 1),
              HasSubstr("more than 1000 steps"));
}

TEST_F(Interpreter, PrintFormatsValues) {
  std::string printed;
  options.print = [&](llvm::StringRef text) { printed = text.str(); };
  EXPECT_EQ(run(R"(
    %t = tile.load %x[%0] fill %zero : !tile.view<1xf32> -> tensor<2xf32>
    %true = arith.constant true
    tile.print "n={} t={} ok={}!" (%1, %t, %true) : index, tensor<2xf32>, i1)",
                {1.5, -2}, 1),
            "");
  EXPECT_EQ(printed, "n=1 t=[1.5, -2] ok=True!");
}

TEST_F(Interpreter, ArgumentsMustFitTheSignature) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      "tile.kernel @k(%x: !tile.view<1xf32, unit = 0>) { tile.return }", &context);
  tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
  std::vector<float> data(4);
  sim::View strided = view(data, {2});
  strided.strides = {2};
  EXPECT_THAT(llvm::toString(sim::run(kernel, {}, {1, 1, 1})), HasSubstr("takes 1 arguments, not 0"));
  EXPECT_THAT(llvm::toString(sim::run(kernel, {strided}, {1, 1, 1})),
              HasSubstr("argument 0 of kernel k has stride 1 in dimension 0"));
  EXPECT_THAT(llvm::toString(sim::run(kernel, {view(data, {2, 2})}, {1, 1, 1})), HasSubstr("has rank 1"));
}
} // namespace
