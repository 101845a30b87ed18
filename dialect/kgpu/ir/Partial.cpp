// Computes layouts of partial results: one for each warp that holds a part of an axis.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/Partial.h"
#include "dialect/layout/Algebra.h"
#include "dialect/layout/Fields.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

namespace kpkg::kgpu {
using layout::fieldsOf;
using layout::Layout;
using layout::Part;

int64_t partialExtent(const Layout &layout, unsigned axis) {
  return int64_t(1) << (llvm::popcount(layout.bitsAlong(Part::Warp, axis)) +
                        llvm::popcount(layout.bitsAlong(Part::Block, axis)));
}

llvm::Expected<Layout> shareOfWarp(const Layout &layout, unsigned axis) {
  Layout::Fields fields = fieldsOf(layout);
  uint32_t kept = 0;
  for (Part part : layout::parts)
    for (Layout::Basis &basis : fields.bases[static_cast<unsigned>(part)]) {
      if (basis[axis] != 0 && !llvm::isPowerOf2_32(basis[axis]))
        return llvm::createStringError("a bit of layout \"%s\" moves by %d along dimension %u", layout.str().c_str(),
                                       basis[axis], axis);
      if (part == Part::Warp || part == Part::Block)
        basis[axis] = 0;
      kept |= basis[axis];
    }
  for (Part part : {Part::Register, Part::Lane})
    for (Layout::Basis &basis : fields.bases[static_cast<unsigned>(part)])
      if (uint32_t value = basis[axis])
        basis[axis] = 1 << llvm::popcount(kept & (value - 1));
  return Layout::get(std::move(fields));
}

llvm::Expected<Layout> partialLayout(const Layout &layout, unsigned axis) {
  llvm::Expected<Layout> sliced = layout::slice(layout, axis);
  if (!sliced)
    return sliced.takeError();
  Layout::Fields fields = fieldsOf(*sliced);
  int32_t next = 1;
  for (Part part : {Part::Warp, Part::Block})
    for (auto [bit, basis] : llvm::enumerate(fields.bases[static_cast<unsigned>(part)]))
      if (layout.bitsAlong(part, axis) >> bit & 1) {
        basis[axis] = next;
        next *= 2;
      }
  return Layout::get(std::move(fields));
}

llvm::Expected<Layout> gatherLayout(const Layout &layout, unsigned axis) {
  return gatherLayout(layout, axis, partialExtent(layout, axis));
}

llvm::Expected<Layout> gatherLayout(const Layout &layout, unsigned axis, int64_t extent) {
  llvm::Expected<Layout> sliced = layout::slice(layout, axis);
  if (!sliced)
    return sliced.takeError();
  Layout::Fields fields = fieldsOf(*sliced);
  int64_t size = 1;
  for (Layout::Basis &basis : fields.bases[static_cast<unsigned>(Part::Lane)])
    if (size < extent && llvm::all_of(basis, [](int32_t value) { return value == 0; })) {
      basis[axis] = size;
      size *= 2;
    }
  fields.repeats[axis] = llvm::divideCeil(extent, size);
  llvm::erase(fields.order, axis);
  fields.order.insert(fields.order.begin(), axis);
  return Layout::get(std::move(fields));
}
} // namespace kpkg::kgpu
