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
} // namespace

std::optional<ShufflePlan> planShuffles(const Layout &from, const Layout &to, unsigned elementBytes) {
  if (from.rank() != to.rank() || from.bits(Part::Lane) != to.bits(Part::Lane) ||
      from.bits(Part::Warp) != to.bits(Part::Warp) || from.bits(Part::Block) != to.bits(Part::Block))
    return std::nullopt;
  WideLayout operand(from, commonAtom(from, to)), result(to, commonAtom(from, to));
  unsigned laneBits = from.bits(Part::Lane), operandBits = operand.slotBits(), resultBits = result.slotBits();
  unsigned threadBits = operand.matrix().columns() - operandBits, otherBits = threadBits - laneBits;
  BitMatrix moves = operand.inverse().compose(result.matrix());

  // Elements must stay in their warp and block.
  unsigned fixed = from.freeBits(Part::Warp) | from.freeBits(Part::Block) << from.bits(Part::Warp);
  for (unsigned bit = 0; bit < otherBits; ++bit)
    if (!(fixed >> bit & 1) && moves.row(operandBits + laneBits + bit) != uint64_t(1) << (resultBits + laneBits + bit))
      return std::nullopt;

  BitMatrix slotOfSlot = moves.rowRange(0, operandBits).columnRange(0, resultBits);
  BitMatrix slotOfThread = moves.rowRange(0, operandBits).columnRange(resultBits, threadBits);
  BitMatrix laneOfSlot = moves.rowRange(operandBits, laneBits).columnRange(0, resultBits);
  BitMatrix laneOfThread = moves.rowRange(operandBits, laneBits).columnRange(resultBits, threadBits);

  // Free lanes of the operand: prefer the replica in the receiver's own lane.
  unsigned freeLanes = from.freeBits(Part::Lane);
  BitMatrix own = laneOfThread;
  for (unsigned bit = 0; bit < laneBits; ++bit)
    if (freeLanes >> bit & 1)
      own.setColumn(bit, own.column(bit) | uint64_t(1) << bit);
  BitMatrix slotOfLane = slotOfThread.columnRange(0, laneBits);
  BitMatrix spread(resultBits, laneBits); // Q
  if (forgotten(own.columnRange(0, laneBits), slotOfLane).empty()) {
    laneOfThread = own;
  } else {
    BitMatrix laneOfLane = laneOfThread.columnRange(0, laneBits);
    llvm::SmallVector<uint64_t, 8> needy = forgotten(laneOfLane, slotOfLane);
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
        if ((found = reached.add(laneOfSlot.column(slot))))
          slotImages[i] = uint64_t(1) << slot;
      // The warp number selects among lanes, so fewer lanes hold a needed element than there are receivers. One round
      // is not enough.
      if (!found)
        return std::nullopt;
    }
    spread = mapping(resultBits, laneBits, arguments, slotImages);
    laneOfLane = add(add(laneOfLane, mapping(laneBits, laneBits, arguments, laneImages)), laneOfSlot.compose(spread));
    laneOfThread = laneOfLane.beside(laneOfThread.columnRange(laneBits, otherBits));
  }

  // The slot that a sender offers, as a function of its lane: zero for lanes that no receiver reads from.
  BitMatrix laneOfLane = laneOfThread.columnRange(0, laneBits);
  BitMatrix wanted = add(slotOfLane, slotOfSlot.compose(spread));
  llvm::SmallVector<uint64_t, 8> senders, offers;
  BitSpan asked;
  for (unsigned i = 0; i < laneBits; ++i)
    if (asked.add(laneOfLane.column(i))) {
      senders.push_back(laneOfLane.column(i));
      offers.push_back(wanted.column(i));
    }
  senders.append(complete(senders, laneBits));
  offers.resize(laneBits, 0);
  BitMatrix offer = mapping(operandBits, laneBits, senders, offers);
  BitMatrix offerOfOthers =
      add(slotOfThread.columnRange(laneBits, otherBits), offer.compose(laneOfThread.columnRange(laneBits, otherBits)));

  ShufflePlan plan;
  plan.laneBits = laneBits;
  plan.threadBits = threadBits;
  plan.operandSlots = operand.slots();
  plan.resultSlots = result.slots();
  plan.resultRegisters = to.registers();
  plan.laneMap = laneOfThread;
  plan.butterfly = laneOfThread == BitMatrix::identity(laneBits).beside(BitMatrix(laneBits, otherBits));
  plan.before = exchangesOf(offer.beside(offerOfOthers));
  plan.after = exchangesOf(spread);
  std::map<unsigned, ShufflePlan::Round> open;
  unsigned movesInRound = elementBytes >= 4 ? 1 : 4 / elementBytes;
  for (unsigned slot = 0; slot < plan.resultSlots; ++slot) {
    unsigned laneXor = laneOfSlot.apply(slot);
    unsigned source = slotOfSlot.apply(slot) ^ offer.apply(laneXor);
    ShufflePlan::Round &round = open.try_emplace(laneXor, ShufflePlan::Round{laneXor, {}}).first->second;
    round.moves.push_back({source, slot});
    if (round.moves.size() == movesInRound) {
      plan.rounds.push_back(std::move(round));
      open.erase(laneXor);
    }
  }
  for (auto &[laneXor, round] : open)
    plan.rounds.push_back(std::move(round));

  // One group for each repeat that both layouts have.
  llvm::SmallVector<int64_t, 4> repeat(from.rank(), 0), ends;
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
  return plan;
}
} // namespace kpkg::layout
