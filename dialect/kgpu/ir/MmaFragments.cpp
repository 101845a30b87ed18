// Defines the register layouts of operands and accumulators of mma.sync.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/MmaFragments.h"
#include "llvm/ADT/STLExtras.h"
#include <array>
#include <cassert>

namespace kpkg::kgpu {
using layout::Layout;
using layout::Part;

namespace {
/// Chooses how many warps divide the rows and the columns of an accumulator of 16x8 blocks. Of the grids that divide
/// it, a warp reads least in the chosen one.
std::pair<unsigned, unsigned> warpGrid(int64_t rowBlocks, int64_t columnBlocks, unsigned warps) {
  std::pair<unsigned, unsigned> best = {1, 1};
  int64_t least = std::numeric_limits<int64_t>::max();
  for (unsigned rows = 1; rows <= warps; rows *= 2)
    for (unsigned columns = 1; rows * columns <= warps; columns *= 2) {
      if (rowBlocks % rows != 0 || columnBlocks % columns != 0)
        continue;
      // Operand elements that all warps read together. Grids with fewer warps do less at a time.
      int64_t cost = (16 * rowBlocks / rows + 8 * columnBlocks / columns) * (warps / (rows * columns)) * warps;
      if (cost < least) {
        least = cost;
        best = {rows, columns};
      }
    }
  return best;
}

/// Returns the largest power of two that divides `value`.
int64_t powerIn(int64_t value) { return value & -value; }

/// Returns a basis of rank 2 that moves along one dimension; a value of 0 makes it free.
Layout::Basis unit(unsigned dim, int32_t value) {
  Layout::Basis result(2, 0);
  result[dim] = value;
  return result;
}

Layout mmaSyncOperand(const Layout &accumulator, unsigned kept, unsigned depthDim, int64_t depth,
                      unsigned elementBytes) {
  unsigned at = 1 - depthDim;
  Layout::Fields fields;
  auto bases = [&](Part part) -> Layout::Bases & { return fields.bases[static_cast<unsigned>(part)]; };
  auto deep = [&](int32_t value) { return unit(depthDim, value); };
  int32_t inWord = 4 / elementBytes;
  for (int32_t value = 1; value < inWord; value *= 2)
    bases(Part::Register).push_back(deep(value));
  // The instruction orders blocks of 8 rows before the upper half of K, and blocks of 8 columns after it.
  bool isHighDone = false;
  auto high = [&] {
    if (!isHighDone)
      bases(Part::Register).push_back(deep(4 * inWord));
    isHighDone = true;
  };
  for (const Layout::Basis &basis : accumulator.bases(Part::Register)) {
    if (basis[kept] >= (kept == 0 ? 16 : 8))
      high();
    if (basis[kept] >= 8)
      bases(Part::Register).push_back(unit(at, basis[kept]));
  }
  high();
  // Lanes: groups of four along K, eight along rows or columns.
  bases(Part::Lane) = {deep(inWord), deep(2 * inWord)};
  for (int32_t value = 1; value < 8; value *= 2)
    bases(Part::Lane).push_back(unit(at, value));
  for (Part part : {Part::Warp, Part::Block})
    for (const Layout::Basis &basis : accumulator.bases(part))
      bases(part).push_back(unit(at, basis[kept]));
  fields.repeats.assign(2, 1);
  fields.repeats[at] = accumulator.repeats()[kept];
  fields.repeats[depthDim] = depth / (8 * inWord);
  fields.order = {at, depthDim};
  return Layout::make(std::move(fields));
}
} // namespace

Layout mmaSyncAccumulator(llvm::ArrayRef<int64_t> shape, layout::Threads threads) {
  assert(shape.size() == 2 && shape[0] % 16 == 0 && shape[1] % 8 == 0 && threads.lanes == 32 && "no mma.sync");
  Layout::Fields fields;
  std::array<int64_t, 2> covered = {1, 1};
  auto add = [&](Part part, unsigned dim) {
    fields.bases[static_cast<unsigned>(part)].push_back(unit(dim, covered[dim]));
    covered[dim] *= 2;
  };
  add(Part::Register, 1);
  add(Part::Lane, 1);
  add(Part::Lane, 1);
  for (unsigned bit = 0; bit < 3; ++bit)
    add(Part::Lane, 0);
  add(Part::Register, 0);
  auto [rows, columns] = warpGrid(shape[0] / 16, shape[1] / 8, threads.warps);
  // A warp's elements along a dimension are adjacent, as far as their number is a power of two.
  for (int64_t size = powerIn(shape[1] / 8 / columns); size > 1; size /= 2)
    add(Part::Register, 1);
  for (int64_t size = powerIn(shape[0] / 16 / rows); size > 1; size /= 2)
    add(Part::Register, 0);
  for (unsigned bit = 0; bit < layout::bitsOf(columns); ++bit)
    add(Part::Warp, 1);
  for (unsigned bit = 0; bit < layout::bitsOf(rows); ++bit)
    add(Part::Warp, 0);
  for (unsigned bit = layout::bitsOf(rows * columns); bit < layout::bitsOf(threads.warps); ++bit)
    fields.bases[static_cast<unsigned>(Part::Warp)].push_back(unit(0, 0));
  for (unsigned bit = 0; bit < layout::bitsOf(threads.blocks); ++bit)
    fields.bases[static_cast<unsigned>(Part::Block)].push_back(unit(0, 0));
  fields.repeats = {shape[0] / covered[0], shape[1] / covered[1]};
  return Layout::make(std::move(fields));
}

Layout mmaSyncLeft(const Layout &accumulator, int64_t depth, unsigned elementBytes) {
  return mmaSyncOperand(accumulator, /*kept=*/0, /*depthDim=*/1, depth, elementBytes);
}

Layout mmaSyncRight(const Layout &accumulator, int64_t depth, unsigned elementBytes) {
  return mmaSyncOperand(accumulator, /*kept=*/1, /*depthDim=*/0, depth, elementBytes);
}

bool isMmaSyncAccumulator(const Layout &layout) {
  if (layout.rank() != 2 || layout.bits(Part::Lane) != 5 || layout.bits(Part::Register) < 2)
    return false;
  Layout::Bases lanes = {unit(1, 2), unit(1, 4), unit(0, 1), unit(0, 2), unit(0, 4)};
  llvm::ArrayRef<Layout::Basis> registers = layout.bases(Part::Register);
  if (layout.bases(Part::Lane) != llvm::ArrayRef<Layout::Basis>(lanes) || registers[0] != unit(1, 1) ||
      registers[1] != unit(0, 8))
    return false;
  // Blocks of 16x8 stay whole.
  return llvm::all_of(registers.drop_front(2), [](const Layout::Basis &basis) {
    return (basis[0] == 0 && basis[1] % 8 == 0) || (basis[1] == 0 && basis[0] % 16 == 0);
  });
}
} // namespace kpkg::kgpu
