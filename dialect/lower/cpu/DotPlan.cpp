// Plans the block sizes of a dot.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/DotPlan.h"
#include "llvm/Support/MathExtras.h"

namespace kpkg::lower::cpu {

/// Bytes of the column panel that all row panels are multiplied by: half of a 32 KiB L1 cache.
static constexpr int64_t columnPanelBytes = 16 << 10;
/// Bytes of packed rows. They fit an L2 cache of 512 KiB together with the accumulator lines that pass through it.
static constexpr int64_t packedRowsBytes = 256 << 10;
/// As columnPanelBytes, on machines with tiles: their L1 caches have 48 KiB.
static constexpr int64_t tileColumnPanelBytes = 32 << 10;

/// Sets the rows of the register tile of a machine with vectors of `vectors` registers a row.
static void planRows(DotPlan &plan, int64_t vectors) {
  const VectorUnit &unit = plan.unit;
  const DotShape &shape = plan.shape;
  // Registers: mr * vectors accumulators, one step's vectors of B, and one element of A. Without broadcasts from
  // memory, A takes mr vectors. With 32 registers, LLVM's register allocator needs two spare ones to avoid spills.
  int64_t spare = unit.registerCount > 16 ? 2 : 0;
  int64_t rows = unit.broadcastFromMemory
                     ? std::min(unit.registerCount * 3 / 4, unit.registerCount - spare - vectors - 1) / vectors
                     : std::min<int64_t>(8, (unit.registerCount - spare - vectors) / (vectors + 1));
  // Uses fewer rows than the registers allow if the last panel then has fewer empty rows.
  plan.mr = std::min(rows, shape.m);
  int64_t best = llvm::divideCeil(shape.m, plan.mr) * plan.mr;
  for (int64_t candidate = plan.mr - 1; candidate * 3 >= rows * 2; --candidate)
    if (int64_t padded = llvm::divideCeil(shape.m, candidate) * candidate; padded * 100 < best * 98)
      best = padded, plan.mr = candidate;
}

DotPlan planDot(const DotShape &shape, const VectorUnit &unit) {
  DotPlan plan;
  plan.shape = shape;
  plan.unit = unit;
  int64_t bytes = shape.accType.getIntOrFloatBitWidth() / 8;
  plan.lanes = unit.vectorBytes / bytes;
  int64_t vectors = std::min<int64_t>(2, llvm::divideCeil(shape.n, plan.lanes));
  plan.nr = vectors * plan.lanes;
  if (plan.usesTiles()) {
    // Up to four tiles of sums, two of rows and two of columns: all eight.
    plan.kUnroll = plan.lanes;
    plan.mr = std::min<int64_t>(2, llvm::divideCeil(shape.m, kTileRows)) * kTileRows;
  } else {
    plan.kUnroll = std::min<int64_t>(plan.lanes, 8);
    planRows(plan, vectors);
  }

  int64_t panelBytes = plan.usesTiles() ? tileColumnPanelBytes : columnPanelBytes;
  int64_t depth = std::max<int64_t>(plan.kUnroll, panelBytes / (plan.nr * bytes));
  int64_t steps = llvm::divideCeil(shape.k, plan.width()), depthBlocks = llvm::divideCeil(steps, depth);
  plan.kc = llvm::alignTo(llvm::divideCeil(steps, depthBlocks), plan.kUnroll);
  if (plan.usesTiles()) {
    plan.mc = plan.mr;
    plan.nc = std::min<int64_t>(8, llvm::divideCeil(shape.n, plan.nr)) * plan.nr;
    return plan;
  }
  int64_t rowPanels = llvm::divideCeil(shape.m, plan.mr);
  int64_t panelsPerBlock = std::max<int64_t>(1, packedRowsBytes / (plan.mr * plan.kc * bytes));
  plan.mc = llvm::divideCeil(rowPanels, llvm::divideCeil(rowPanels, panelsPerBlock)) * plan.mr;
  // Several panels at a time, so that each visit to a row of B reads a few whole cache lines.
  plan.nc = std::min<int64_t>(4, llvm::divideCeil(shape.n, plan.nr)) * plan.nr;
  return plan;
}

DotScratch DotPlan::scratch() const {
  int64_t bytes = shape.accType.getIntOrFloatBitWidth() / 8;
  DotScratch result{};
  result.columns = llvm::alignTo(mc * kc * bytes, 64);
  result.edge = llvm::alignTo(result.columns + nc * kc * bytes, 64);
  result.end = llvm::alignTo(result.edge + mr * nr * bytes, 64);
  if (usesTiles()) {
    result.configuration = result.end + kTileBytes;
    result.end = result.configuration + kTileConfigurationBytes;
  }
  return result;
}

} // namespace kpkg::lower::cpu
