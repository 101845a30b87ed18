// Builds layouts for coalesced access and for mma, wgmma and ldmatrix fragments.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>

namespace kpkg::layout {
namespace {
using Order = llvm::SmallVector<unsigned, 4>;

Order orderOrDefault(llvm::ArrayRef<unsigned> order, unsigned rank) {
  if (!order.empty())
    return Order(order);
  Order result;
  for (unsigned dim = rank; dim-- > 0;)
    result.push_back(dim);
  return result;
}

/// Appends bits to the parts of a layout and tracks the extent covered in each dimension.
class Growing {
public:
  explicit Growing(unsigned rank) : covered(rank, 1) { fields.repeats.assign(rank, 1); }

  void add(Part part, unsigned dim, unsigned factor = 2) {
    for (; factor > 1; factor /= 2) {
      Layout::Basis basis(covered.size(), 0);
      basis[dim] = covered[dim];
      basesOf(part).push_back(basis);
      covered[dim] *= 2;
    }
  }
  void addFree(Part part) { basesOf(part).push_back(Layout::Basis(covered.size(), 0)); }
  void repeatOver(llvm::ArrayRef<int64_t> shape, Order order) {
    for (unsigned dim = 0; dim < covered.size(); ++dim)
      fields.repeats[dim] = llvm::divideCeil(shape[dim], covered[dim]);
    fields.order = std::move(order);
  }
  int64_t size(unsigned dim) const { return covered[dim]; }
  Layout finish() { return Layout::make(std::move(fields)); }
  Layout::Fields fields;

private:
  Layout::Bases &basesOf(Part part) { return fields.bases[static_cast<unsigned>(part)]; }
  llvm::SmallVector<int64_t, 4> covered;
};
} // namespace

Layout replicated(unsigned rank, Threads threads) {
  Growing result(rank);
  for (auto [part, count] : {std::pair(Part::Lane, threads.lanes), std::pair(Part::Warp, threads.warps),
                             std::pair(Part::Block, threads.blocks)})
    for (unsigned bit = 0; bit < bitsOf(count); ++bit)
      result.addFree(part);
  return result.finish();
}

Layout coalesced(llvm::ArrayRef<int64_t> shape, unsigned elementBytes, Threads threads, unsigned vectorBytes,
                 llvm::ArrayRef<unsigned> givenOrder) {
  unsigned rank = shape.size();
  Order order = orderOrDefault(givenOrder, rank);
  Growing result(rank);
  if (rank == 0)
    return replicated(0, threads);
  unsigned fastest = order.front();
  unsigned vector = std::max(1u, vectorBytes / elementBytes);
  result.add(Part::Register, fastest,
             std::min<uint64_t>(llvm::bit_floor(vector), llvm::bit_ceil(uint64_t(shape[fastest]))));

  // Dimensions before this position in `order` take no more thread bits.
  unsigned done = 0;
  auto othersLeft = [&] {
    return llvm::any_of(llvm::ArrayRef<unsigned>(order).drop_front(done + 1),
                        [&](unsigned dim) { return result.size(dim) < shape[dim]; });
  };
  auto wants = [&](unsigned dim) {
    int64_t size = result.size(dim);
    if (size >= shape[dim])
      return false;
    bool intoPadding = shape[dim] % (2 * size) != 0;
    bool enough = dim != fastest || size * elementBytes >= 64;
    return !(intoPadding && enough && othersLeft());
  };
  for (auto [part, count] : {std::pair(Part::Lane, threads.lanes), std::pair(Part::Warp, threads.warps),
                             std::pair(Part::Block, threads.blocks)})
    for (unsigned bit = 0; bit < bitsOf(count); ++bit) {
      while (done < rank && !wants(order[done]))
        ++done;
      if (done < rank)
        result.add(part, order[done]);
      else
        result.addFree(part);
    }
  result.repeatOver(shape, order);
  return result.finish();
}

Layout withinWarp(llvm::ArrayRef<int64_t> shape, unsigned elementBytes, Threads threads, unsigned axis) {
  Growing result(shape.size());
  Order order = orderOrDefault({}, shape.size());
  llvm::erase(order, axis);
  order.insert(order.begin(), axis);
  uint64_t extent = llvm::bit_ceil(uint64_t(shape[axis]));
  result.add(Part::Register, axis, std::clamp<uint64_t>(extent / threads.lanes, 1, std::max(1u, 16 / elementBytes)));
  for (auto [part, count] : {std::pair(Part::Lane, threads.lanes), std::pair(Part::Warp, threads.warps),
                             std::pair(Part::Block, threads.blocks)})
    for (unsigned bit = 0; bit < bitsOf(count); ++bit) {
      auto *dim = llvm::find_if(order, [&, part = part](unsigned dim) {
        return result.size(dim) < shape[dim] && (part == Part::Lane || dim != axis);
      });
      if (dim == order.end())
        result.addFree(part);
      else
        result.add(part, *dim);
    }
  result.repeatOver(shape, order);
  return result.finish();
}

/// Moves the bits of `value` upwards, past those of `held`.
static int32_t around(uint32_t value, uint32_t held) {
  uint32_t result = 0;
  for (unsigned bit = 0, to = 0; bit < 32 && value >> bit; ++bit, ++to) {
    while (to < 32 && (held >> to & 1))
      ++to;
    if (to < 32)
      result |= (value >> bit & 1) << to;
  }
  return int32_t(result);
}

std::optional<Layout> withinWarp(llvm::ArrayRef<int64_t> shape, unsigned elementBytes, const Layout &wide,
                                 unsigned axis) {
  llvm::SmallVector<int64_t> part(shape); // of a CTA
  llvm::SmallVector<uint32_t> held(shape.size());
  for (const Layout::Basis &basis : wide.bases(Part::Block)) {
    if (llvm::count_if(basis, [](int32_t value) { return value != 0; }) > 1)
      return std::nullopt;
    for (auto [dim, value] : llvm::enumerate(basis)) {
      if (value == 0)
        continue;
      if (!llvm::isPowerOf2_32(value) || dim == axis)
        return std::nullopt;
      held[dim] |= value;
      part[dim] = llvm::divideCeil(part[dim], 2);
    }
  }
  Layout local = withinWarp(part, elementBytes, Threads{wide.lanes(), wide.warps(), 1}, axis);
  Layout::Fields fields;
  fields.repeats.assign(local.repeats().begin(), local.repeats().end());
  fields.order.assign(local.order().begin(), local.order().end());
  for (Part of : {Part::Register, Part::Lane, Part::Warp})
    for (Layout::Basis basis : local.bases(of)) {
      for (auto [value, taken] : llvm::zip_equal(basis, held))
        value = around(value, taken);
      fields.bases[unsigned(of)].push_back(basis);
    }
  fields.bases[unsigned(Part::Block)].assign(wide.bases(Part::Block).begin(), wide.bases(Part::Block).end());
  return llvm::expectedToOptional(Layout::get(std::move(fields)));
}

llvm::Expected<Layout> blocked(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> perThread,
                               llvm::ArrayRef<int64_t> lanes, llvm::ArrayRef<int64_t> warps,
                               llvm::ArrayRef<int64_t> blocks, llvm::ArrayRef<unsigned> givenOrder) {
  unsigned rank = shape.size();
  Order order = orderOrDefault(givenOrder, rank);
  if (order.size() != rank)
    return llvm::createStringError("order and shape differ in rank");
  Growing result(rank);
  for (auto [part, sizes] : {std::pair(Part::Register, perThread), std::pair(Part::Lane, lanes),
                             std::pair(Part::Warp, warps), std::pair(Part::Block, blocks)}) {
    if (sizes.size() != rank)
      return llvm::createStringError("a list of sizes and the shape differ in rank");
    for (unsigned dim : order) {
      if (dim >= rank || sizes[dim] < 1 || !llvm::isPowerOf2_64(sizes[dim]))
        return llvm::createStringError("sizes must be powers of two");
      result.add(part, dim, sizes[dim]);
    }
  }
  result.repeatOver(shape, order);
  return Layout::get(std::move(result.fields));
}

Layout mmaAccumulator() {
  Growing result(2);
  result.add(Part::Register, 1);
  result.add(Part::Lane, 1, 4);
  result.add(Part::Lane, 0, 8);
  result.add(Part::Register, 0);
  return result.finish();
}

Layout mmaOperandA(unsigned elementBytes) {
  assert((elementBytes == 1 || elementBytes == 2 || elementBytes == 4) && "no such mma");
  Growing result(2);
  result.add(Part::Register, 1, 4 / elementBytes);
  result.add(Part::Lane, 1, 4);
  result.add(Part::Lane, 0, 8);
  result.add(Part::Register, 0);
  result.add(Part::Register, 1);
  return result.finish();
}

Layout mmaOperandB(unsigned elementBytes) {
  assert((elementBytes == 1 || elementBytes == 2 || elementBytes == 4) && "no such mma");
  Growing result(2);
  result.add(Part::Register, 0, 4 / elementBytes);
  result.add(Part::Lane, 0, 4);
  result.add(Part::Lane, 1, 8);
  result.add(Part::Register, 0);
  return result.finish();
}

Layout wgmmaAccumulator(unsigned n) {
  assert(n % 8 == 0 && n >= 8 && n <= 256 && "no such wgmma");
  Growing result(2);
  result.add(Part::Register, 1);
  result.add(Part::Lane, 1, 4);
  result.add(Part::Lane, 0, 8);
  result.add(Part::Register, 0);
  result.add(Part::Warp, 0, 4);
  result.repeatOver({64, n}, {1, 0});
  return result.finish();
}

Layout ldmatrix(unsigned count) {
  assert((count == 1 || count == 2 || count == 4) && "no such ldmatrix");
  Growing result(2);
  result.add(Part::Register, 1);
  result.add(Part::Lane, 1, 4);
  result.add(Part::Lane, 0, 8);
  result.add(Part::Register, 0, count);
  return result.finish();
}
} // namespace kpkg::layout
