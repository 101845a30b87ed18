// Plans conversions within a warp, with at most one shuffle round for each result register.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Result slot R of thread t (lane L, warp and block bits) needs operand slot r of lane l. Both are linear in R and t:
//   r = rR R + rT t        l = lR R + lT t
// In round k, lane L receives result slot R = k + Q L. The sender is l = M t + lR k with M = lT + lR Q. The sender must
// know which slot to send, so r must be a function of l. Hence N = rT + rR Q must map the null space of M to zero.
//
// Q = 0 may fail this: some vector v has M v = 0 but N v != 0. Then v gets a free lane bit of the operand, so that
// receivers read different replicas. Or it gets a slot Q v for which lR Q v is new. Enough of these exist because every
// element has a place.
//
// Sender l then offers slot r = F l + G (warp and block bits) + constant, which gives the slot exchanges before the
// rounds. Q gives the exchanges after them.
#include "dialect/layout/CommonAtom.h"
#include "dialect/layout/Conversion.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

namespace kpkg::layout {
namespace {
/// Returns unit vectors that complete `known` to a basis of the space of `bits` bits.
llvm::SmallVector<uint64_t, 8> complete(llvm::ArrayRef<uint64_t> known, unsigned bits) {
  BitSpan span;
  for (uint64_t vector : known)
    span.add(vector);
  llvm::SmallVector<uint64_t, 8> result;
  for (unsigned i = 0; i < bits; ++i)
    if (span.add(uint64_t(1) << i))
      result.push_back(uint64_t(1) << i);
  return result;
}

/// Returns vectors of `left`'s null space that, together with the intersection of both null spaces, span it. These are
/// the bits that `left` discards and `right` needs.
llvm::SmallVector<uint64_t, 8> forgotten(const BitMatrix &left, const BitMatrix &right) {
  BitSpan harmless;
  for (uint64_t vector : left.above(right).kernel())
    harmless.add(vector);
  llvm::SmallVector<uint64_t, 8> result;
  for (uint64_t vector : left.kernel())
    if (harmless.add(vector))
      result.push_back(vector);
  return result;
}

/// Returns the matrix that maps arguments[i] to images[i]. The arguments are a basis of `size` bits.
BitMatrix mapping(unsigned rows, unsigned size, llvm::ArrayRef<uint64_t> arguments, llvm::ArrayRef<uint64_t> images) {
  return BitMatrix(rows, images).compose(*BitMatrix(size, arguments).rightInverse());
}

/// Implements slot ^= matrix * thread bits by exchanges. Their number is the rank of the matrix.
llvm::SmallVector<ShufflePlan::Exchange> exchangesOf(const BitMatrix &matrix) {
  llvm::SmallVector<ShufflePlan::Exchange> result;
  llvm::SmallVector<uint64_t, 8> masks;
  BitSpan span;
  for (unsigned i = 0; i < matrix.columns(); ++i)
    if (span.add(matrix.column(i)))
      masks.push_back(matrix.column(i));
  BitMatrix basis(matrix.rows(), masks);
  for (uint64_t mask : masks)
    result.push_back({static_cast<unsigned>(mask), 0});
  for (unsigned i = 0; i < matrix.columns(); ++i) {
    uint64_t parts = *basis.solve(matrix.column(i));
    for (unsigned j = 0; j < masks.size(); ++j)
      result[j].threadMask |= (parts >> j & 1) << i;
  }
  return result;
}

BitMatrix add(BitMatrix left, const BitMatrix &right) {
  for (unsigned i = 0; i < left.columns(); ++i)
    left.setColumn(i, left.column(i) ^ right.column(i));
  return left;
}
/// The place of the element of result slot R in thread t: operand slot slotOfSlot R + slotOfThread t, in lane
/// laneOfSlot R + laneOfThread t.
struct Sources {
  BitMatrix slotOfSlot, slotOfThread, laneOfSlot, laneOfThread;

  unsigned laneBits() const { return laneOfThread.rows(); }
  /// Returns the number of thread bits above the lane bits.
  unsigned otherBits() const { return laneOfThread.columns() - laneBits(); }
  unsigned operandBits() const { return slotOfSlot.rows(); }
  unsigned resultBits() const { return slotOfSlot.columns(); }
};

/// Returns nothing if an element would leave its warp or block.
std::optional<Sources> sourcesOf(const Layout &from, const WideLayout &operand, const WideLayout &result) {
  unsigned laneBits = from.bits(Part::Lane), operandBits = operand.slotBits(), resultBits = result.slotBits();
  unsigned threadBits = operand.matrix().columns() - operandBits, otherBits = threadBits - laneBits;
  BitMatrix moves = operand.inverse().compose(result.matrix());
  unsigned fixed = from.freeBits(Part::Warp) | from.freeBits(Part::Block) << from.bits(Part::Warp);
  for (unsigned bit = 0; bit < otherBits; ++bit)
    if (!(fixed >> bit & 1) && moves.row(operandBits + laneBits + bit) != uint64_t(1) << (resultBits + laneBits + bit))
      return std::nullopt;
  BitMatrix slots = moves.rowRange(0, operandBits), lanes = moves.rowRange(operandBits, laneBits);
  return Sources{slots.columnRange(0, resultBits), slots.columnRange(resultBits, threadBits),
                 lanes.columnRange(0, resultBits), lanes.columnRange(resultBits, threadBits)};
}

/// Gives a free lane or a result slot to each vector of lane bits that no sender distinguishes but receivers must.
/// Changes `sources` to read from these lanes, and returns Q. Returns nothing if one round is not enough: the warp
/// number selects among lanes, so fewer lanes hold a needed element than there are receivers.
std::optional<BitMatrix> separateReceivers(Sources &sources, unsigned freeLanes) {
  unsigned laneBits = sources.laneBits(), resultBits = sources.resultBits();
  BitMatrix laneOfLane = sources.laneOfThread.columnRange(0, laneBits);
  llvm::SmallVector<uint64_t, 8> needy = forgotten(laneOfLane, sources.slotOfThread.columnRange(0, laneBits));
  llvm::SmallVector<uint64_t, 8> arguments(needy.begin(), needy.end());
  arguments.append(complete(needy, laneBits));
  llvm::SmallVector<uint64_t, 8> slotImages(laneBits, 0), laneImages(laneBits, 0);
  BitSpan reached;
  for (unsigned i = 0; i < laneBits; ++i)
    reached.add(laneOfLane.column(i));
  for (unsigned i = 0; i < needy.size(); ++i) {
    bool found = false;
    for (unsigned bit = 0; bit < laneBits && !found; ++bit)
      if ((freeLanes >> bit & 1) && (found = reached.add(uint64_t(1) << bit)))
        laneImages[i] = uint64_t(1) << bit;
    for (unsigned slot = 0; slot < resultBits && !found; ++slot)
      if ((found = reached.add(sources.laneOfSlot.column(slot))))
        slotImages[i] = uint64_t(1) << slot;
    if (!found)
      return std::nullopt;
  }
  BitMatrix spread = mapping(resultBits, laneBits, arguments, slotImages);
  laneOfLane =
      add(add(laneOfLane, mapping(laneBits, laneBits, arguments, laneImages)), sources.laneOfSlot.compose(spread));
  sources.laneOfThread = laneOfLane.beside(sources.laneOfThread.columnRange(laneBits, sources.otherBits()));
  return spread;
}

/// Chooses the replica that each lane reads, and returns Q. Prefers the replica in the receiver's own lane, with Q = 0.
std::optional<BitMatrix> chooseSenders(Sources &sources, unsigned freeLanes) {
  unsigned laneBits = sources.laneBits();
  BitMatrix own = sources.laneOfThread;
  for (unsigned bit = 0; bit < laneBits; ++bit)
    if (freeLanes >> bit & 1)
      own.setColumn(bit, own.column(bit) | uint64_t(1) << bit);
  if (!forgotten(own.columnRange(0, laneBits), sources.slotOfThread.columnRange(0, laneBits)).empty())
    return separateReceivers(sources, freeLanes);
  sources.laneOfThread = own;
  return BitMatrix(sources.resultBits(), laneBits);
}

/// Returns the slot that a sender offers as a function of its thread bits, F beside G. It is zero for lanes that no
/// receiver reads from.
BitMatrix offeredSlots(const Sources &sources, const BitMatrix &spread) {
  unsigned laneBits = sources.laneBits(), otherBits = sources.otherBits();
  BitMatrix laneOfLane = sources.laneOfThread.columnRange(0, laneBits);
  BitMatrix wanted = add(sources.slotOfThread.columnRange(0, laneBits), sources.slotOfSlot.compose(spread));
  llvm::SmallVector<uint64_t, 8> senders, offers;
  BitSpan asked;
  for (unsigned i = 0; i < laneBits; ++i)
    if (asked.add(laneOfLane.column(i))) {
      senders.push_back(laneOfLane.column(i));
      offers.push_back(wanted.column(i));
    }
  senders.append(complete(senders, laneBits));
  offers.resize(laneBits, 0);
  BitMatrix offer = mapping(sources.operandBits(), laneBits, senders, offers);
  return offer.beside(add(sources.slotOfThread.columnRange(laneBits, otherBits),
                          offer.compose(sources.laneOfThread.columnRange(laneBits, otherBits))));
}

/// Collects the moves of slots into rounds of one shuffle each.
llvm::SmallVector<ShufflePlan::Round> roundsOf(const Sources &sources, const BitMatrix &offer, unsigned resultSlots,
                                               unsigned elementBytes) {
  llvm::SmallVector<ShufflePlan::Round> rounds;
  std::map<unsigned, ShufflePlan::Round> open;
  unsigned movesInRound = elementBytes >= 4 ? 1 : 4 / elementBytes;
  for (unsigned slot = 0; slot < resultSlots; ++slot) {
    unsigned laneXor = sources.laneOfSlot.apply(slot);
    unsigned source = sources.slotOfSlot.apply(slot) ^ offer.apply(laneXor);
    ShufflePlan::Round &round = open.try_emplace(laneXor, ShufflePlan::Round{laneXor, {}}).first->second;
    round.moves.push_back({source, slot});
    if (round.moves.size() == movesInRound) {
      rounds.push_back(std::move(round));
      open.erase(laneXor);
    }
  }
  for (auto &[laneXor, round] : open)
    rounds.push_back(std::move(round));
  return rounds;
}

/// Adds one group of registers for each repeat that both layouts have.
void addGroups(ShufflePlan &plan, const WideLayout &operand, const WideLayout &result) {
  llvm::SmallVector<int64_t, 4> repeat(operand.repeats().size(), 0), ends;
  for (auto [a, b] : llvm::zip_equal(operand.repeats(), result.repeats()))
    ends.push_back(std::min(a, b));
  for (bool more = true; more;) {
    auto &operands = plan.operands.emplace_back(), &results = plan.results.emplace_back();
    for (unsigned slot = 0; slot < plan.operandSlots; ++slot)
      operands.push_back(operand.registerAt(repeat, slot).value_or(noRegister));
    for (unsigned slot = 0; slot < plan.resultSlots; ++slot)
      results.push_back(result.registerAt(repeat, slot).value_or(noRegister));
    more = false;
    for (unsigned dim = repeat.size(); dim-- > 0 && !more;)
      more = ++repeat[dim] < ends[dim] || (repeat[dim] = 0);
  }
}
} // namespace

std::optional<ShufflePlan> planShuffles(const Layout &from, const Layout &to, unsigned elementBytes) {
  if (from.rank() != to.rank() || from.bits(Part::Lane) != to.bits(Part::Lane) ||
      from.bits(Part::Warp) != to.bits(Part::Warp) || from.bits(Part::Block) != to.bits(Part::Block))
    return std::nullopt;
  WideLayout operand(from, commonAtom(from, to)), result(to, commonAtom(from, to));
  std::optional<Sources> sources = sourcesOf(from, operand, result);
  if (!sources)
    return std::nullopt;
  std::optional<BitMatrix> spread = chooseSenders(*sources, from.freeBits(Part::Lane));
  if (!spread)
    return std::nullopt;
  BitMatrix offer = offeredSlots(*sources, *spread);

  ShufflePlan plan;
  plan.laneBits = sources->laneBits();
  plan.threadBits = offer.columns();
  plan.operandSlots = operand.slots();
  plan.resultSlots = result.slots();
  plan.resultRegisters = to.registers();
  plan.laneMap = sources->laneOfThread;
  plan.butterfly =
      plan.laneMap == BitMatrix::identity(plan.laneBits).beside(BitMatrix(plan.laneBits, sources->otherBits()));
  plan.before = exchangesOf(offer);
  plan.after = exchangesOf(*spread);
  plan.rounds = roundsOf(*sources, offer.columnRange(0, plan.laneBits), plan.resultSlots, elementBytes);
  addGroups(plan, operand, result);
  return plan;
}
} // namespace kpkg::layout
