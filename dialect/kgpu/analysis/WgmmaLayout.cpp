// Defines the register layouts of the accumulator and the left operand of wgmma.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/WgmmaLayout.h"
#include "dialect/layout/Algebra.h"
#include "llvm/Support/MathExtras.h"

namespace kpkg::kgpu {
using layout::Layout;
using layout::Part;

/// of a warpgroup's part of a product
static constexpr int64_t kFewestColumns = 32, kPanelColumns = 64;

bool sharesColumns(llvm::ArrayRef<int64_t> shape, unsigned warpgroups) {
  int64_t rows = shape[0] / 64, parts = rows ? warpgroups / rows : 0, columns = parts ? shape[1] / parts : 0;
  return shape[0] % 64 == 0 && rows < warpgroups && rows * parts == warpgroups && parts * columns == shape[1] &&
         columns % kFewestColumns == 0 && llvm::isPowerOf2_64(columns) && llvm::isPowerOf2_64(rows);
}

bool sharesPanels(llvm::ArrayRef<int64_t> shape, unsigned warpgroups) {
  return sharesColumns(shape, warpgroups) && shape[1] * shape[0] / 64 / warpgroups % kPanelColumns == 0;
}

namespace {
using AddBit = llvm::function_ref<void(Part part, int32_t row, int32_t column)>;

/// Adds the rows of a warp's lanes, and of the four warps of a warpgroup.
void addWarpgroup(AddBit add) {
  for (int32_t row : {1, 2, 4})
    add(Part::Lane, row, 0);
  for (int32_t row : {16, 32})
    add(Part::Warp, row, 0);
}

/// Builds the layout of fragments. `columnOf` maps a column of the accumulator's layout to one of the tile. `parts`
/// warpgroups divide the columns of the same rows.
Layout ofFragments(llvm::ArrayRef<int64_t> shape, unsigned warpgroups, int64_t parts,
                   llvm::function_ref<int32_t(int32_t)> columnOf) {
  Layout::Fields fields;
  auto add = [&](Part part, int32_t row, int32_t column) {
    fields.bases[static_cast<unsigned>(part)].push_back({row, columnOf(column)});
  };
  // The fragment is a repeated block of 8 columns. A thread holds two adjacent columns and the same columns eight rows
  // below. Four lanes lie along a row, and eight rows of lanes follow. Columns that `columnOf` makes adjacent come
  // first, since they form a word.
  int64_t columns = 8, ownColumns = shape[1] / parts;
  add(Part::Register, 0, 1);
  if (bool isWord = columnOf(8) == 2; isWord && ownColumns % 16 == 0) {
    add(Part::Register, 0, 8);
    columns = 16;
  }
  add(Part::Register, 8, 0);
  for (; ownColumns % (2 * columns) == 0; columns *= 2)
    add(Part::Register, 0, columns);
  for (int32_t column : {2, 4})
    add(Part::Lane, 0, column);
  addWarpgroup(add);
  int64_t rows = 64;
  for (unsigned count = 1; count < warpgroups / parts; count *= 2)
    if (rows < shape[0]) {
      add(Part::Warp, int32_t(rows), 0);
      rows *= 2;
    } else {
      add(Part::Warp, 0, 0); // one more warpgroup with the same elements
    }
  for (int64_t part = 1; part < parts; part *= 2)
    add(Part::Warp, 0, int32_t(part * ownColumns));
  for (; rows < shape[0]; rows *= 2)
    add(Part::Register, rows, 0);
  fields.repeats = {1, ownColumns / columns};
  return Layout::make(std::move(fields));
}
} // namespace

Layout wgmmaAccumulator(llvm::ArrayRef<int64_t> shape, unsigned warpgroups) {
  int64_t parts = sharesColumns(shape, warpgroups) ? warpgroups * 64 / shape[0] : 1;
  return ofFragments(shape, warpgroups, parts, [](int32_t column) { return column; });
}

Layout wgmmaMade(llvm::ArrayRef<int64_t> shape, unsigned warpgroups) {
  return ofFragments(shape, warpgroups, /*parts=*/1, [](int32_t column) { return column; });
}

Layout wgmmaTransposed(llvm::ArrayRef<int64_t> shape, unsigned warpgroups) {
  return layout::permute(wgmmaAccumulator({shape[1], shape[0]}, warpgroups), {1, 0});
}

Layout wgmmaLeftOperand(mlir::Value tile, unsigned warpgroups) {
  auto type = mlir::cast<mlir::RankedTensorType>(tile.getType());
  int64_t bytes = elementBytes(type.getElementType());
  // Source: PTX ISA, register fragments of wgmma. A lane holds four adjacent elements of 8 bits, or two of 16 bits. Of
  // 32 bits it holds one element and the fourth after it. A product of a part of the columns needs all of the left
  // operand.
  return ofFragments(type.getShape(), warpgroups, /*parts=*/1, [&](int32_t column) {
    bool isByte = bytes == 1, isWord = bytes == 4;
    if (isWord && column < 8)
      return column == 1 ? 4 : column / 2;
    return isByte && column == 8 ? 2 : isByte && (column == 2 || column == 4) ? 2 * column : column;
  });
}

Layout wgmmaPositions(llvm::ArrayRef<int64_t> shape, unsigned warpgroups) {
  Layout::Fields fields;
  auto add = [&](Part part, int32_t row, int32_t column) {
    fields.bases[static_cast<unsigned>(part)].push_back({row, column});
  };
  add(Part::Register, 8, 0);
  int32_t columns = 4;
  for (; columns < shape[1]; columns *= 2)
    add(Part::Register, 0, columns);
  for (int32_t column : {1, 2})
    add(Part::Lane, 0, column);
  addWarpgroup(add);
  int32_t rows = 64;
  for (unsigned count = 1; count < warpgroups; count *= 2, rows *= 2)
    add(Part::Warp, rows, 0);
  for (; rows < shape[0]; rows *= 2)
    add(Part::Register, rows, 0);
  fields.repeats = {1, 1};
  return Layout::make(std::move(fields));
}
} // namespace kpkg::kgpu
