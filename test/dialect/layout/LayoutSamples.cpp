// Generates enumerated and random layouts for tests.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/dialect/layout/LayoutSamples.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cstdlib>

namespace kpkg::layout {
namespace {
/// Assigns bits to part after part: `along` of them to the first dimension of `order`, the others to the second.
void extendRegular(std::vector<Layout> &results, Layout::Fields fields, llvm::ArrayRef<unsigned> counts, unsigned part,
                   std::array<unsigned, 2> left, std::array<int32_t, 2> next, bool columnsFirst) {
  if (part == partCount) {
    if (left[0] + left[1] == 0)
      results.push_back(Layout::make(std::move(fields)));
    return;
  }
  unsigned first = columnsFirst, second = 1 - first;
  unsigned usable = std::min(counts[part], left[0] + left[1]);
  for (unsigned along = 0; along <= usable; ++along) {
    if (along > left[first] || usable - along > left[second])
      continue;
    Layout::Fields extended = fields;
    std::array<unsigned, 2> remaining = left;
    std::array<int32_t, 2> step = next;
    for (unsigned bit = 0; bit < counts[part]; ++bit) {
      Layout::Basis basis(2, 0);
      if (bit < usable) {
        unsigned dim = bit < along ? first : second;
        basis[dim] = step[dim];
        step[dim] *= 2;
        --remaining[dim];
      } else if (part == 0) {
        break;
      }
      extended.bases[part].push_back(basis);
    }
    extendRegular(results, std::move(extended), counts, part + 1, remaining, step, columnsFirst);
  }
}
} // namespace

std::vector<Layout> regularLayouts(unsigned log2Rows, unsigned log2Columns, PartBits bits) {
  std::vector<Layout> results;
  Layout::Fields fields;
  fields.repeats = {1, 1};
  for (bool columnsFirst : {true, false})
    extendRegular(results, fields, {bits.registers, bits.lanes, bits.warps, bits.blocks}, 0, {log2Rows, log2Columns},
                  {1, 1}, columnsFirst);
  return results;
}

Layout randomLayout(std::mt19937 &random, PartBits bits, unsigned freeLanes, unsigned freeWarps, unsigned rows,
                    llvm::ArrayRef<int64_t> repeats) {
  std::array<unsigned, partCount> counts = {bits.registers, bits.lanes, bits.warps, bits.blocks};
  std::array<std::vector<bool>, partCount> free;
  unsigned size = 0;
  for (unsigned part = 0; part < partCount; ++part) {
    free[part].assign(counts[part], false);
    unsigned count = part == 1 ? freeLanes : part == 2 ? freeWarps : 0;
    std::fill_n(free[part].begin(), count, true);
    std::shuffle(free[part].begin(), free[part].end(), random);
    size += counts[part] - count;
  }
  BitSpan span;
  Layout::Fields fields;
  fields.repeats.assign(repeats.begin(), repeats.end());
  for (unsigned part = 0; part < partCount; ++part)
    for (bool isFree : free[part]) {
      uint64_t image = 0;
      // Half of the bases move along one coordinate bit, as in practical layouts.
      bool simple = random() % 2 == 0;
      while (!isFree && image == 0) {
        uint64_t candidate = simple ? uint64_t(1) << random() % size : random() % (uint64_t(1) << size);
        if (span.add(candidate))
          image = candidate;
        else
          simple = false;
      }
      fields.bases[part].push_back({int32_t(image & ((1u << rows) - 1)), int32_t(image >> rows)});
    }
  return Layout::make(std::move(fields));
}

int64_t numberOf(llvm::ArrayRef<int64_t> coordinates, llvm::ArrayRef<int64_t> shape) {
  int64_t result = 0;
  for (auto [coordinate, extent] : llvm::zip_equal(coordinates, shape))
    result = result * extent + coordinate;
  return result;
}
} // namespace kpkg::layout
