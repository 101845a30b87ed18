// Chooses between register renaming, warp shuffles and shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/Conversion.h"
#include "dialect/layout/Algebra.h"
#include "dialect/layout/CommonAtom.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace kpkg::layout {
namespace {
/// Costs in quarter cycles; see Conversion::cost.
constexpr unsigned slowUnit = 4, shuffleLatency = 20, warpRoundTrip = 80, ctaRoundTrip = 160;

bool sameThreads(const Layout &from, const Layout &to) {
  return llvm::all_of(std::array{Part::Lane, Part::Warp, Part::Block},
                      [&](Part part) { return from.bits(part) == to.bits(part); });
}

/// Returns whether each element of `to` is already held by the warp (or block) of the same number in `from`. Free bits
/// of `from` are ignored.
bool staysInside(const Layout &from, const Layout &to, Part part) {
  llvm::SmallVector<int64_t, 4> atom = commonAtom(from, to);
  WideLayout wideFrom(from, atom), wideTo(to, atom);
  BitMatrix moves = wideFrom.inverse().compose(wideTo.matrix());
  unsigned rowBase = wideFrom.slotBits() + from.firstColumn(part) - from.bits(Part::Register);
  unsigned columnBase = wideTo.slotBits() + to.firstColumn(part) - to.bits(Part::Register);
  for (unsigned bit = 0; bit < from.bits(part); ++bit)
    if (!(from.freeBits(part) >> bit & 1) && moves.row(rowBase + bit) != uint64_t(1) << (columnBase + bit))
      return false;
  return true;
}

/// Returns the layout in the coordinates of one CTA, without the coordinate bits that only block bits move.
Layout withinBlock(const Layout &layout) {
  Layout::Fields fields;
  fields.repeats.assign(layout.repeats().begin(), layout.repeats().end());
  fields.order.assign(layout.order().begin(), layout.order().end());
  Layout::Basis gone(layout.rank(), 0);
  for (const Layout::Basis &basis : layout.bases(Part::Block))
    for (unsigned dim = 0; dim < layout.rank(); ++dim)
      gone[dim] |= basis[dim];
  for (Part part : {Part::Register, Part::Lane, Part::Warp})
    for (const Layout::Basis &basis : layout.bases(part)) {
      Layout::Basis kept(layout.rank(), 0);
      for (unsigned dim = 0; dim < layout.rank(); ++dim)
        for (unsigned bit = 0, place = 0; bit < 31; ++bit)
          if (!(gone[dim] >> bit & 1))
            kept[dim] |= (basis[dim] >> bit & 1) << place++;
      fields.bases[static_cast<unsigned>(part)].push_back(kept);
    }
  return Layout::make(std::move(fields));
}

/// Checks the precondition of withinBlock(): no other bit shares coordinate bits with block bits, and both layouts
/// agree.
bool blocksSeparate(const Layout &from, const Layout &to) {
  if (from.bases(Part::Block) != to.bases(Part::Block))
    return false;
  for (const Layout *layout : {&from, &to})
    for (const Layout::Basis &own : layout->bases(Part::Block))
      for (unsigned dim = 0; dim < layout->rank(); ++dim) {
        if (own[dim] & (own[dim] - 1))
          return false;
        for (Part part : parts)
          for (const Layout::Basis &other : layout->bases(part))
            if (&other != &own && (other[dim] & own[dim]))
              return false;
      }
  return true;
}
} // namespace

std::optional<Rename> planRename(const Layout &from, const Layout &to) {
  if (from.rank() != to.rank() || !sameThreads(from, to))
    return std::nullopt;
  llvm::SmallVector<int64_t, 4> atom = commonAtom(from, to);
  WideLayout wideFrom(from, atom), wideTo(to, atom);
  unsigned threadBits = wideFrom.matrix().columns() - wideFrom.slotBits();
  if (wideFrom.matrix().columnRange(wideFrom.slotBits(), threadBits) !=
      wideTo.matrix().columnRange(wideTo.slotBits(), threadBits))
    return std::nullopt;
  Rename rename;
  for (unsigned reg = 0, count = to.registers(); reg < count; ++reg) {
    Coordinates where = to.coordinates({reg, 0, 0, 0});
    std::optional<Place> place = from.placeOf(where);
    // Thread bases are equal. So if thread 0 holds an element itself, or it is padding there, the same is true of every
    // thread.
    if (place && (place->lane || place->warp || place->block))
      return std::nullopt;
    rename.source.push_back(place ? place->reg : noRegister);
  }
  return rename;
}

std::optional<SharedPlan> planShared(const Layout &from, const Layout &to, unsigned elementBytes) {
  if (from.rank() != to.rank() || !sameThreads(from, to) || !blocksSeparate(from, to))
    return std::nullopt;
  Layout store = withinBlock(from), load = withinBlock(to);
  SharedLayout memory = SharedLayout::conflictFree(store, load, elementBytes);
  SharedAccess write = llvm::cantFail(planAccess(store, memory)), read = llvm::cantFail(planAccess(load, memory));
  bool warpLocal = from.freeBits(Part::Warp) == 0 && staysInside(from, to, Part::Warp);
  return SharedPlan{std::move(memory),         std::move(write),          std::move(read),
                    from.freeBits(Part::Lane), from.freeBits(Part::Warp), warpLocal};
}

unsigned costOf(const ShufflePlan &plan, unsigned elementBytes) {
  unsigned words = elementBytes <= 4 ? 1 : elementBytes / 4;
  unsigned selects = plan.before.size() * plan.operandSlots + plan.after.size() * plan.resultSlots, shuffles = 0;
  for (const ShufflePlan::Round &round : plan.rounds)
    if (!plan.butterfly || round.laneXor != 0)
      // Elements that share a word are packed before the shuffle and unpacked after it.
      shuffles += slowUnit * words + (round.moves.size() > 1 ? 2 * round.moves.size() : 0);
  return plan.operands.size() * (selects * words + shuffles) + shuffleLatency;
}

unsigned costOf(const SharedPlan &plan) {
  return slowUnit * (countWavefronts(plan.store) + countWavefronts(plan.load)) + plan.store.vectors.size() +
         plan.load.vectors.size() + (plan.warpLocal ? warpRoundTrip : ctaRoundTrip);
}

llvm::Expected<Conversion> planConversion(const Layout &from, const Layout &to, unsigned elementBytes) {
  auto wrong = [&](llvm::StringRef why) {
    return llvm::createStringError(
        llvm::formatv("no conversion from layout \"{0}\" to \"{1}\": {2}", from.str(), to.str(), why).str());
  };
  if (from.rank() != to.rank())
    return wrong("they differ in rank");
  if (!sameThreads(from, to))
    return wrong("they differ in the number of threads or blocks");
  if (std::optional<Rename> rename = planRename(from, to))
    return Conversion{std::move(*rename), 0};
  if (!staysInside(from, to, Part::Block))
    return wrong("a block needs elements of another block of the cluster");
  std::optional<Conversion> best;
  auto offer = [&](auto plan, unsigned cost) {
    if (!best || cost < best->cost)
      best = Conversion{std::move(plan), cost};
  };
  if (std::optional<ShufflePlan> plan = planShuffles(from, to, elementBytes)) {
    unsigned cost = costOf(*plan, elementBytes);
    offer(std::move(*plan), cost);
  }
  if (std::optional<SharedPlan> plan = planShared(from, to, elementBytes)) {
    unsigned cost = costOf(*plan);
    offer(std::move(*plan), cost);
  }
  if (!best)
    return wrong("blocks of the cluster share coordinate bits with threads");
  return std::move(*best);
}
} // namespace kpkg::layout
