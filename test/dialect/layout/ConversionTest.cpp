// Tests conversions: runs the plans on elements that record their coordinates.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/Conversion.h"
#include "dialect/layout/Algebra.h"
#include "dialect/layout/Builders.h"
#include "test/dialect/layout/LayoutSamples.h"
#include "llvm/ADT/bit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <map>

using namespace kpkg::layout;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {
Layout parse(llvm::StringRef text) { return llvm::cantFail(Layout::parse(text)); }

constexpr int64_t nothing = -1;

/// The registers of all threads; thread = lane + lanes * (warp + warps * block).
using Registers = std::vector<std::vector<int64_t>>;

unsigned threadsOf(const Layout &layout) { return layout.threads() * layout.blocks(); }
Place placeOf(const Layout &layout, unsigned thread, unsigned reg) {
  return {reg, thread % layout.lanes(), thread / layout.lanes() % layout.warps(), thread / layout.threads()};
}

/// Fills every register with the number of its element in a large row-major frame.
Registers fill(const Layout &layout) {
  Registers result(threadsOf(layout), std::vector<int64_t>(layout.registers()));
  std::vector<int64_t> frame(layout.rank(), 1 << 20);
  for (unsigned thread = 0; thread < result.size(); ++thread)
    for (unsigned reg = 0; reg < layout.registers(); ++reg)
      result[thread][reg] = numberOf(layout.coordinates(placeOf(layout, thread, reg)), frame);
  return result;
}

Registers run(const Rename &plan, const Registers &operand, const Layout &to) {
  Registers result(operand.size(), std::vector<int64_t>(to.registers(), nothing));
  for (unsigned thread = 0; thread < operand.size(); ++thread)
    for (unsigned reg = 0; reg < plan.source.size(); ++reg)
      if (plan.source[reg] != noRegister)
        result[thread][reg] = operand[thread][plan.source[reg]];
  return result;
}

void exchange(std::vector<int64_t> &slots, const ShufflePlan::Exchange &step, unsigned thread) {
  if (llvm::popcount(thread & step.threadMask) % 2 == 0)
    return;
  for (unsigned slot = 0; slot < slots.size(); ++slot)
    if (slot < (slot ^ step.slotMask))
      std::swap(slots[slot], slots[slot ^ step.slotMask]);
}

Registers run(const ShufflePlan &plan, const Registers &operand, const Layout &to) {
  Registers result(operand.size(), std::vector<int64_t>(to.registers(), nothing));
  unsigned lanes = 1u << plan.laneBits;
  for (unsigned group = 0; group < plan.operands.size(); ++group) {
    Registers before, after(operand.size(), std::vector<int64_t>(plan.resultSlots, nothing));
    for (unsigned thread = 0; thread < operand.size(); ++thread) {
      std::vector<int64_t> &slots = before.emplace_back();
      for (unsigned reg : plan.operands[group])
        slots.push_back(reg == noRegister ? nothing : operand[thread][reg]);
      for (const ShufflePlan::Exchange &step : plan.before)
        exchange(slots, step, thread);
    }
    for (const ShufflePlan::Round &round : plan.rounds)
      for (unsigned thread = 0; thread < operand.size(); ++thread) {
        unsigned lane = plan.laneMap.apply(thread) ^ round.laneXor;
        if (plan.butterfly)
          EXPECT_EQ(lane, (thread % lanes) ^ round.laneXor);
        for (auto [from, to] : round.moves)
          after[thread][to] = before[thread / lanes * lanes + lane][from];
      }
    for (unsigned thread = 0; thread < operand.size(); ++thread) {
      for (const ShufflePlan::Exchange &step : plan.after)
        exchange(after[thread], step, thread);
      for (unsigned slot = 0; slot < plan.resultSlots; ++slot)
        if (plan.results[group][slot] != noRegister)
          result[thread][plan.results[group][slot]] = after[thread][slot];
    }
  }
  return result;
}

int64_t addressOf(const SharedAccess &access, const SharedAccess::Vector &vector, const Place &place) {
  uint32_t offset = vector.xorOffset;
  auto add = [&](llvm::ArrayRef<uint32_t> bases, unsigned bits) {
    for (unsigned bit = 0; bit < bases.size(); ++bit)
      offset ^= (bits >> bit & 1) ? bases[bit] : 0;
  };
  add(access.laneBases, place.lane);
  add(access.warpBases, place.warp);
  add(access.blockBases, place.block);
  return offset + vector.addOffset;
}

Registers run(const SharedPlan &plan, const Registers &operand, const Layout &to) {
  Registers result(operand.size(), std::vector<int64_t>(to.registers(), nothing));
  unsigned bytes = plan.memory.elementBytes();
  // The writer of each byte address of a block, and the value.
  std::map<std::pair<unsigned, int64_t>, std::pair<unsigned, int64_t>> memory;
  for (unsigned thread = 0; thread < operand.size(); ++thread) {
    Place place = placeOf(to, thread, 0);
    if ((place.lane & plan.storeLaneMask) || (place.warp & plan.storeWarpMask))
      continue;
    for (const SharedAccess::Vector &vector : plan.store.vectors) {
      int64_t address = addressOf(plan.store, vector, place);
      EXPECT_EQ(address % plan.store.vectorBytes, 0);
      for (unsigned reg : vector.registers) {
        bool fresh = memory.insert({{place.block, address}, {place.warp, operand[thread][reg]}}).second;
        EXPECT_TRUE(fresh) << "written twice";
        EXPECT_LE(address + bytes, plan.memory.sizeBytes());
        address += bytes;
      }
    }
  }
  for (unsigned thread = 0; thread < operand.size(); ++thread) {
    Place place = placeOf(to, thread, 0);
    for (const SharedAccess::Vector &vector : plan.load.vectors) {
      int64_t address = addressOf(plan.load, vector, place);
      for (unsigned reg : vector.registers) {
        auto found = memory.find({place.block, address});
        if (found != memory.end()) {
          result[thread][reg] = found->second.second;
          if (plan.warpLocal)
            EXPECT_EQ(found->second.first, place.warp);
        }
        EXPECT_LE(address + bytes, plan.memory.sizeBytes());
        address += bytes;
      }
    }
  }
  return result;
}

/// Checks that every place of `to` received its element, if `from` has it.
template <typename Plan> void check(const Layout &from, const Layout &to, const Plan &plan) {
  Registers result = run(plan, fill(from), to), wanted = fill(to);
  unsigned differences = 0;
  for (unsigned thread = 0; thread < result.size(); ++thread)
    for (unsigned reg = 0; reg < to.registers(); ++reg)
      if (from.placeOf(to.coordinates(placeOf(to, thread, reg))))
        differences += result[thread][reg] != wanted[thread][reg];
  EXPECT_EQ(differences, 0u) << from.str() << " -> " << to.str();
}

struct Counts {
  unsigned renames = 0, shuffles = 0, shared = 0, refused = 0;
};

/// Checks that all possible plans give the right result, and counts the kinds of plans.
void checkAll(const Layout &from, const Layout &to, unsigned bytes, Counts &counts) {
  if (std::optional<Rename> plan = planRename(from, to)) {
    check(from, to, *plan);
    ++counts.renames;
  }
  if (std::optional<ShufflePlan> plan = planShuffles(from, to, bytes)) {
    check(from, to, *plan);
    ++counts.shuffles;
  }
  if (std::optional<SharedPlan> plan = planShared(from, to, bytes)) {
    check(from, to, *plan);
    ++counts.shared;
  }
  llvm::Expected<Conversion> best = planConversion(from, to, bytes);
  if (!best) {
    llvm::consumeError(best.takeError());
    ++counts.refused;
  }
}

TEST(Conversion, RegularPairs) {
  Counts counts;
  for (auto [rows, columns, bits] :
       {std::tuple(2u, 3u, PartBits{2, 3, 0, 0}), std::tuple(3u, 3u, PartBits{2, 3, 1, 0}),
        std::tuple(2u, 4u, PartBits{2, 3, 1, 0}), std::tuple(5u, 1u, PartBits{1, 4, 1, 0}),
        std::tuple(4u, 3u, PartBits{4, 3, 0, 0}), std::tuple(2u, 2u, PartBits{2, 4, 0, 0}),
        std::tuple(3u, 4u, PartBits{2, 3, 1, 1}), std::tuple(4u, 4u, PartBits{3, 5, 0, 0}),
        std::tuple(3u, 4u, PartBits{2, 5, 0, 0}), std::tuple(4u, 3u, PartBits{3, 3, 1, 0}),
        std::tuple(1u, 6u, PartBits{2, 4, 1, 0}), std::tuple(6u, 6u, PartBits{6, 5, 1, 0})}) {
    std::vector<Layout> layouts = regularLayouts(rows, columns, bits);
    // Every 5th pair of the large layouts, which have 4096 elements each.
    unsigned step = rows + columns > 8 ? 5 : 1, pair = 0;
    for (const Layout &from : layouts)
      for (const Layout &to : layouts)
        if (pair++ % step == 0)
          checkAll(from, to, 2, counts);
  }
  EXPECT_GT(counts.renames, 50u);
  EXPECT_GT(counts.shuffles, 500u);
  EXPECT_GT(counts.shared, 1000u);
  EXPECT_GT(counts.refused, 0u) << "blocks exchange nothing";
}

TEST(Conversion, IrregularPairs) {
  std::mt19937 random(17);
  Counts counts;
  for (unsigned i = 0; i < 1500; ++i) {
    unsigned lanes = 2 + random() % 4, warps = random() % 2, freeFrom = random() % lanes, freeTo = random() % lanes;
    unsigned registersFrom = 1 + random() % 2 + (freeFrom > freeTo ? freeFrom - freeTo : 0);
    unsigned elements = registersFrom + lanes - freeFrom;
    if (elements < lanes - freeTo)
      continue;
    unsigned registersTo = elements - (lanes - freeTo), rows = random() % (elements + 1);
    Layout from = randomLayout(random, {registersFrom, lanes, warps, 0}, freeFrom, warps, rows, {1, 1});
    Layout to = randomLayout(random, {registersTo, lanes, warps, 0}, freeTo, warps, rows, {1, 1});
    ASSERT_TRUE(planShuffles(from, to, 4).has_value()) << from.str() << " -> " << to.str();
    checkAll(from, to, 4, counts);
  }
  EXPECT_GT(counts.shuffles, 800u);
}

TEST(Conversion, WarpDependentSources) {
  // The operand's lanes and registers depend on the warp as well.
  std::mt19937 random(29);
  Counts counts;
  for (unsigned i = 0; i < 200; ++i) {
    Layout from = randomLayout(random, {2, 3, 1, 0}, 0, 0, 3, {1, 1});
    // Mixes register and lane bits among themselves, and adds some of them to the warp's basis.
    Layout::Fields fields;
    fields.repeats = {1, 1};
    BitMatrix mixed = from.matrix();
    for (unsigned step = 0; step < 12; ++step) {
      unsigned a = random() % 5, b = random() % 6;
      if (a != b)
        mixed.setColumn(b, mixed.column(b) ^ mixed.column(a));
    }
    for (unsigned column = 0; column < 6; ++column) {
      uint64_t image = mixed.column(column), rows = bitsOf(from.atom()[0]);
      fields.bases[column < 2   ? 0
                   : column < 5 ? 1
                                : 2]
          .push_back({int32_t(image & ((1 << rows) - 1)), int32_t(image >> rows)});
    }
    Layout to = Layout::make(fields);
    checkAll(from, to, 4, counts);
  }
  EXPECT_EQ(counts.shuffles, 200u);
}

TEST(Conversion, RepeatsAndPadding) {
  Counts counts;
  for (int64_t columns = 1; columns <= 12; ++columns)
    for (int64_t rows : {1, 3, 4}) {
      auto withRepeats = [&](const char *text, int64_t rowRepeats, int64_t columnRepeats, const char *order) {
        return parse(std::string(text) + " rep " + std::to_string(rowRepeats) + "x" + std::to_string(columnRepeats) +
                     order);
      };
      Layout narrow = withRepeats("reg 1:1 lane 1:2-4 0:1", rows, columns, ""),
             wide = withRepeats("reg 1:1-2 lane 1:4-16", rows * 2, (columns + 3) / 4, " order 0,1"),
             tall = withRepeats("reg 0:1 lane 0:2-8", (rows + 7) / 8, columns * 8, "");
      for (const Layout *from : {&narrow, &wide, &tall})
        for (const Layout *to : {&narrow, &wide, &tall})
          checkAll(*from, *to, 2, counts);
    }
  EXPECT_EQ(counts.refused, 0u);
  EXPECT_EQ(counts.shuffles, 12u * 3 * 9);
}

TEST(Conversion, Replicas) {
  Counts counts;
  Layout all = parse("reg 0:1-8 lane *3 rep 1"), spread = parse("reg 0:1 lane 0:2-8 rep 1"),
         pairs = parse("reg 0:1-2 lane * 0:4-8 rep 1"), others = parse("reg 0:4-8 lane 0:1-2 * rep 1");
  for (const Layout *from : {&all, &spread, &pairs, &others})
    for (const Layout *to : {&all, &spread, &pairs, &others})
      checkAll(*from, *to, 4, counts);
  EXPECT_EQ(counts.shuffles, 16u);
  // Threads that hold all elements only select; no shuffle is needed.
  ShufflePlan pick = *planShuffles(all, spread, 4);
  EXPECT_TRUE(pick.butterfly);
  for (const ShufflePlan::Round &round : pick.rounds)
    EXPECT_EQ(round.laneXor, 0u);
  // Replication needs no selects: each round reads from one lane.
  ShufflePlan give = *planShuffles(parse("lane 0:1-16 rep 1"), parse("reg 0:1-16 lane *5 rep 1"), 4);
  EXPECT_TRUE(give.before.empty() && give.after.empty());
  EXPECT_EQ(give.rounds.size(), 32u);
}

TEST(Conversion, Choices) {
  auto kind = [](llvm::StringRef from, llvm::StringRef to, unsigned bytes) {
    return llvm::cantFail(planConversion(parse(from), parse(to), bytes)).plan.index();
  };
  EXPECT_EQ(kind("reg 0:1-2 lane 0:4-64 rep 1", "reg 0:2 0:1 lane 0:4-64 rep 1", 4), 0u);
  EXPECT_EQ(kind("reg 0:1 lane 0:2-32 rep 1", "reg 0:2 lane 0:1 0:4-32 rep 1", 4), 1u);
  EXPECT_EQ(kind("reg 0:1-2 lane 0:4-64 warp 0:128 rep 1", "reg 0:1-2 lane 0:8-128 warp 0:4 rep 1", 4), 2u);
  // Transposing 32 registers per lane in one warp is cheaper through memory than by five exchanges on both sides.
  EXPECT_EQ(kind("reg 0:1-16 lane 1:1-16 rep 1x1", "reg 1:1-16 lane 0:1-16 rep 1x1", 4), 2u);
}

TEST(Conversion, SwapOfARegisterAndALaneBitIsHalfAButterfly) {
  ShufflePlan plan = *planShuffles(parse("reg 0:1-2 lane 0:4-64 rep 1"), parse("reg 0:4 0:2 lane 0:1 0:8-64 rep 1"), 4);
  EXPECT_TRUE(plan.butterfly);
  EXPECT_EQ(plan.before.size(), 1u);
  EXPECT_EQ(plan.after.size(), 1u);
  unsigned shuffles = 0;
  for (const ShufflePlan::Round &round : plan.rounds)
    shuffles += round.laneXor != 0;
  EXPECT_EQ(shuffles, 2u);
  // Two elements of 2 bytes share a shuffle.
  plan = *planShuffles(parse("reg 0:1-2 lane 0:4-64 rep 1"), parse("reg 0:4 0:2 lane 0:1 0:8-64 rep 1"), 2);
  EXPECT_EQ(plan.rounds.size(), 2u);
}

TEST(Conversion, ClusterBlocksHaveTheirOwnMemory) {
  Layout from = parse("reg 1:1-2 lane 1:4-64 warp 1:128 block 1:256 rep 1x3"),
         to = parse("reg 1:1-2 lane 1:8-128 warp 1:4 block 1:256 rep 1x3");
  Conversion conversion = llvm::cantFail(planConversion(from, to, 4));
  const SharedPlan &plan = std::get<SharedPlan>(conversion.plan);
  check(from, to, plan);
  EXPECT_EQ(plan.memory.sizeBytes(), 3 * 256 * 4);
}

TEST(Conversion, TooFewSendersInAWarp) {
  // Every warp holds all elements, but the 32 elements that a warp keeps are in 16 of its lanes.
  Layout from = parse("reg 0:1-2 lane 0:4-32 * warp * rep 1"), to = parse("lane 0:1-16 warp 0:32 rep 1");
  EXPECT_FALSE(planShuffles(from, to, 4).has_value());
  Counts counts;
  checkAll(from, to, 4, counts);
  EXPECT_EQ(counts.shared, 1u);
  EXPECT_EQ(counts.refused, 0u);
}

TEST(Conversion, RefusalsSayWhy) {
  auto whyNot = [](llvm::StringRef from, llvm::StringRef to) {
    llvm::Expected<Conversion> conversion = planConversion(parse(from), parse(to), 4);
    return conversion ? "planned" : llvm::toString(conversion.takeError());
  };
  EXPECT_THAT(whyNot("lane 0:1 rep 1", "lane 0:1 rep 1x1"), HasSubstr("differ in rank"));
  EXPECT_THAT(whyNot("lane 0:1 rep 1", "lane 0:1-2 rep 1"), HasSubstr("differ in the number of threads"));
  EXPECT_THAT(whyNot("lane 0:1 block 0:2 rep 1", "lane 0:2 block 0:1 rep 1"),
              HasSubstr("another block of the cluster"));
}

TEST(Conversion, HardwareLayouts) {
  Counts counts;
  for (unsigned n : {8u, 24u, 64u, 96u}) {
    Layout accumulator = wgmmaAccumulator(n), rows = coalesced({64, n}, 2, {32, 4});
    checkAll(accumulator, rows, 2, counts);
    checkAll(rows, accumulator, 2, counts);
  }
  // An accumulator converts to operand A within each thread.
  Layout twoAccumulators = llvm::cantFail(product(mmaAccumulator(), parse("reg 1:1 rep 1x1")));
  EXPECT_THAT(planRename(twoAccumulators, mmaOperandA(2))->source, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(counts.shared, 8u);
}
} // namespace
