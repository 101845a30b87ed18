// Tests the code that moves, reduces and scans tiles: runs it for all threads and compares elements with layouts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/Algebra.h"
#include "dialect/layout/Builders.h"
#include "dialect/lower/nvvm/AlongAxis.h"
#include "dialect/lower/nvvm/MoveRegisters.h"
#include "dialect/lower/nvvm/SharedMemory.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "test/dialect/layout/LayoutSamples.h"
#include "test/dialect/lower/nvvm/WarpInterpreter.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace kpkg;
using namespace kpkg::lower::nvvm;
using layout::Layout;
using layout::Part;
using layout::Place;

namespace {

Layout parse(StringRef text) { return llvm::cantFail(Layout::parse(text)); }

/// Thread code under construction, and its run.
class Code {
public:
  explicit Code(const Layout &layout) : layout(layout) {
    context.loadDialect<arith::ArithDialect, gpu::GPUDialect, LLVM::LLVMDialect, math::MathDialect, NVVM::NVVMDialect,
                        scf::SCFDialect, ub::UBDialect>();
    builder.emplace(UnknownLoc::get(&context), &context);
    builder->setInsertionPointToStart(&block);
    thread = {argument(builder->getI32Type()), argument(builder->getI32Type()), argument(builder->getI32Type())};
    base = argument(LLVM::LLVMPointerType::get(&context, 3));
  }
  ~Code() { block.clear(); }

  Value argument(Type type) { return block.addArgument(type, UnknownLoc::get(&context)); }
  unsigned threads() const { return layout.threads() * layout.blocks(); }
  Place place(unsigned number, unsigned reg) const {
    return {reg, number % layout.lanes(), number / layout.lanes() % layout.warps(), number / layout.threads()};
  }

  /// Returns an argument for each register of a tile of this layout, with `number` of its coordinates as the value.
  template <typename Number> SmallVector<Value> tile(Type type, Number number) {
    SmallVector<Value> registers;
    for (unsigned reg = 0; reg < layout.registers(); ++reg) {
      std::vector<uint64_t> lanes;
      for (unsigned i = 0; i < threads(); ++i)
        lanes.push_back(number(layout.coordinates(place(i, reg))));
      registers.push_back(argument(type));
      inputs.push_back({registers.back(), std::move(lanes)});
    }
    return registers;
  }

  test::WarpInterpreter run(size_t sharedBytes = 0) {
    test::WarpInterpreter interpreter(threads(), layout.lanes(), sharedBytes);
    std::vector<uint64_t> lane, warp, block;
    for (unsigned i = 0; i < threads(); ++i) {
      Place where = place(i, 0);
      lane.push_back(where.lane);
      // Sets a bit beyond those of the layout, which must have no effect.
      warp.push_back(where.warp | layout.warps());
      block.push_back(where.block);
    }
    interpreter.set(thread.lane, lane);
    interpreter.set(thread.warp, warp);
    interpreter.set(thread.block, block);
    interpreter.set(base, std::vector<uint64_t>(threads(), 0));
    for (auto &[value, lanes] : inputs)
      interpreter.set(value, lanes);
    interpreter.run(this->block);
    EXPECT_TRUE(interpreter.raceFree());
    return interpreter;
  }

  const Layout &layout;
  MLIRContext context;
  std::optional<ImplicitLocOpBuilder> builder;
  Block block;
  ThreadBits thread;
  Value base;
  std::vector<std::pair<Value, std::vector<uint64_t>>> inputs;
};

/// Returns a value that differs for every element of a test. Truncated to a byte it still detects most errors.
uint64_t markOf(ArrayRef<int64_t> coordinates, unsigned bytes) {
  uint64_t mark = 0x9e3779b97f4a7c15u;
  for (int64_t coordinate : coordinates)
    mark = (mark ^ uint64_t(coordinate)) * 0xff51afd7ed558ccdu;
  return bytes == 8 ? mark : mark >> 20 & ((uint64_t(1) << 8 * bytes) - 1);
}

/// Checks that `result` holds the tile in layout `to`, for the elements that `from` has.
void check(const test::WarpInterpreter &run, Code &code, const Layout &from, const Layout &to, ValueRange result,
           unsigned bytes) {
  ASSERT_EQ(result.size(), to.registers());
  unsigned differences = 0;
  for (unsigned reg = 0; reg < to.registers(); ++reg)
    for (unsigned i = 0; i < code.threads(); ++i) {
      layout::Coordinates where = to.coordinates(code.place(i, reg));
      if (from.placeOf(where))
        differences += run.get(result[reg])[i] != markOf(where, bytes);
    }
  EXPECT_EQ(differences, 0u) << from.str() << " -> " << to.str() << ", " << bytes << " bytes";
}

Type typeOf(MLIRContext &context, unsigned bytes) {
  // Uses float types where they exist, which are moved as bits.
  Builder b(&context);
  return bytes == 1   ? Type(b.getI8Type())
         : bytes == 2 ? Type(b.getBF16Type())
         : bytes == 4 ? Type(b.getF32Type())
                      : b.getIndexType();
}

unsigned shuffleTested = 0;

void checkMoves(const Layout &from, const Layout &to, unsigned bytes) {
  {
    Code code(from);
    SmallVector<Value> operand =
        code.tile(typeOf(code.context, bytes), [&](ArrayRef<int64_t> at) { return markOf(at, bytes); });
    SmallVector<Value> result;
    if (std::optional<layout::Rename> plan = layout::planRename(from, to))
      result = moveRegisters(*code.builder, *plan, operand);
    else if (std::optional<layout::ShufflePlan> shuffles = layout::planShuffles(from, to, bytes)) {
      result = moveRegisters(*code.builder, *shuffles, operand, code.thread, from.bits(Part::Warp));
      ++shuffleTested;
    }
    if (!result.empty())
      check(code.run(), code, from, to, result, bytes);
  }
  if (from.blocks() > 1)
    return;
  Code code(from);
  SmallVector<Value> operand =
      code.tile(typeOf(code.context, bytes), [&](ArrayRef<int64_t> at) { return markOf(at, bytes); });
  std::optional<layout::SharedPlan> plan = layout::planShared(from, to, bytes);
  ASSERT_TRUE(plan.has_value());
  Value first = isFirstReplica(*code.builder, code.thread, plan->storeLaneMask, plan->storeWarpMask);
  storeShared(*code.builder, plan->store, code.base, code.thread, operand, first);
  SmallVector<Value> result = loadShared(*code.builder, plan->load, code.base, code.thread, operand.front().getType());
  check(code.run(plan->memory.sizeBytes()), code, from, to, result, bytes);
}

TEST(ThreadCode, Conversions) {
  for (auto [rows, columns, bits] :
       {std::tuple(2u, 3u, layout::PartBits{2, 3, 0, 0}), std::tuple(3u, 3u, layout::PartBits{2, 3, 1, 0}),
        std::tuple(3u, 4u, layout::PartBits{2, 5, 0, 0}), std::tuple(2u, 2u, layout::PartBits{2, 4, 0, 0})}) {
    std::vector<Layout> layouts = layout::regularLayouts(rows, columns, bits);
    unsigned pair = 0;
    for (const Layout &from : layouts)
      for (const Layout &to : layouts)
        checkMoves(from, to, 1u << pair++ % 4);
  }
  std::mt19937 random(5);
  for (unsigned i = 0; i < 150; ++i) {
    unsigned lanes = 2 + random() % 4, free = random() % lanes, registers = 1 + random() % 3;
    int64_t repeats = 1 + 2 * (random() % 2);
    Layout from = layout::randomLayout(random, {registers, lanes, 1, 0}, free, 1, 2, {1, repeats});
    Layout to = layout::randomLayout(random, {registers, lanes, 1, 0}, free, 1, 2, {1, repeats});
    checkMoves(from, to, 1u << i % 4);
  }
  for (int64_t columns = 1; columns <= 6; ++columns) {
    Layout narrow = parse("reg 1:1 lane 1:2-4 0:1 rep 3x" + std::to_string(columns)),
           wide = parse("reg 1:1-2 lane 1:4-16 rep 6x" + std::to_string((columns + 3) / 4) + " order 0,1");
    checkMoves(narrow, wide, 2);
    checkMoves(wide, narrow, 4);
  }
  Layout accumulator = layout::wgmmaAccumulator(24);
  checkMoves(accumulator, layout::coalesced({64, 24}, 2, {32, 4}), 2);
  EXPECT_GT(shuffleTested, 300u);
}

/// Returns the sample layouts whose axis lies within a warp.
std::vector<Layout> layoutsAlong(unsigned axis) {
  std::vector<Layout> all = {parse("reg 1:1 lane 1:2-4 0:1-4 rep 1x3"), parse("reg 0:1-2 lane 0:4-16 rep 3x2"),
                             parse("lane * 1:1-2 0:1 rep 5x3 order 0,1"), layout::withinWarp({4, 40}, 4, {32, 2}, 1)};
  for (auto [rows, columns, bits] :
       {std::tuple(2u, 4u, layout::PartBits{2, 3, 1, 0}), std::tuple(3u, 3u, layout::PartBits{3, 3, 0, 0}),
        std::tuple(1u, 3u, layout::PartBits{2, 3, 1, 0})})
    for (const Layout &layout : layout::regularLayouts(rows, columns, bits))
      all.push_back(layout);
  llvm::erase_if(all, [&](const Layout &layout) { return !whyNotAlong(layout, axis).empty(); });
  return all;
}

TEST(ThreadCode, Reductions) {
  for (unsigned axis : {0u, 1u})
    for (const Layout &layout : layoutsAlong(axis)) {
      Code code(layout);
      auto number = [](ArrayRef<int64_t> at) { return markOf(at, 4); };
      Registers held = {code.tile(code.builder->getI32Type(), number)};
      Registers result = reduceAlong(*code.builder, layout, axis, held, [&](ValueRange left, ValueRange right) {
        return SmallVector<Value>{arith::AddIOp::create(*code.builder, left[0], right[0])};
      });
      test::WarpInterpreter run = code.run();
      Layout sliced = llvm::cantFail(layout::slice(layout, axis));
      ASSERT_EQ(result.front().size(), sliced.registers());
      unsigned differences = 0;
      for (unsigned reg = 0; reg < sliced.registers(); ++reg)
        for (unsigned i = 0; i < code.threads(); ++i) {
          layout::Coordinates where = sliced.coordinates(code.place(i, reg));
          uint32_t sum = 0;
          for (where[axis] = 0; where[axis] < layout.shape()[axis]; ++where[axis])
            sum += number(where);
          differences += run.get(result.front()[reg])[i] != sum;
        }
      EXPECT_EQ(differences, 0u) << layout.str() << " axis " << axis;
    }
}

/// x -> a x + b modulo 2^32, composed in order: associative, not commutative.
struct Line {
  uint32_t a = 1, b = 0;
  void then(uint32_t factor, uint32_t summand) {
    a *= factor;
    b = b * factor + summand;
  }
};

void checkScan(const Layout &layout, unsigned axis, ScanKind kind) {
  Code code(layout);
  auto factor = [](ArrayRef<int64_t> at) { return markOf(at, 4) | 1; };
  auto summand = [](ArrayRef<int64_t> at) { return markOf(at, 4) >> 3; };
  Type i32 = code.builder->getI32Type();
  Registers held = {code.tile(i32, factor), code.tile(i32, summand)};
  Scanned scanned = scanAlong(
      *code.builder, layout, axis, held, code.thread,
      [&](ValueRange left, ValueRange right) {
        Value product = arith::MulIOp::create(*code.builder, left[0], right[0]);
        Value shifted = arith::MulIOp::create(*code.builder, left[1], right[0]);
        return SmallVector<Value>{product, arith::AddIOp::create(*code.builder, shifted, right[1])};
      },
      kind);
  test::WarpInterpreter run = code.run();
  auto expected = [&](layout::Coordinates where, int64_t end) {
    Line line;
    for (where[axis] = 0; where[axis] < end; ++where[axis])
      line.then(uint32_t(factor(where)), uint32_t(summand(where)));
    return line;
  };
  auto differs = [&](const Registers &found, unsigned reg, unsigned thread, Line line) {
    return run.get(found[0][reg])[thread] != line.a || run.get(found[1][reg])[thread] != line.b;
  };
  unsigned differences = 0;
  for (unsigned i = 0; i < code.threads(); ++i)
    for (unsigned reg = 0; reg < layout.registers(); ++reg) {
      layout::Coordinates where = layout.coordinates(code.place(i, reg));
      int64_t end = where[axis] + (kind == ScanKind::Inclusive ? 1 : 0);
      differences += end != 0 && differs(scanned.results, reg, i, expected(where, end));
    }
  Layout sliced = llvm::cantFail(layout::slice(layout, axis));
  ASSERT_EQ(scanned.totals.front().size(), sliced.registers());
  for (unsigned i = 0; i < code.threads(); ++i)
    for (unsigned reg = 0; reg < sliced.registers(); ++reg)
      differences +=
          differs(scanned.totals, reg, i, expected(sliced.coordinates(code.place(i, reg)), layout.shape()[axis]));
  EXPECT_EQ(differences, 0u) << layout.str() << " axis " << axis << (kind == ScanKind::Inclusive ? "" : " exclusive");
}

TEST(ThreadCode, ScansKeepTheOrder) {
  for (unsigned axis : {0u, 1u})
    for (const Layout &layout : layoutsAlong(axis))
      for (ScanKind kind : {ScanKind::Inclusive, ScanKind::Exclusive})
        checkScan(layout, axis, kind);
}

} // namespace
