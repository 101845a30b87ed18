// Derives the layout of the fields of words from the layout of the words, and the reverse, such that no bit moves.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/Subdivision.h"
#include "dialect/layout/Fields.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>

namespace kpkg::layout {
static constexpr unsigned registerPart = static_cast<unsigned>(Part::Register);

Layout subdivide(const Layout &words, unsigned dim, int64_t count) {
  assert(llvm::isPowerOf2_64(count) && "words have a power of two of fields");
  Layout::Fields fields = fieldsOf(words);
  for (Layout::Bases &bases : fields.bases)
    for (Layout::Basis &basis : bases)
      basis[dim] *= count;
  Layout::Bases own;
  for (int64_t step = 1; step < count; step *= 2)
    own.emplace_back(words.rank(), 0)[dim] = int32_t(step);
  Layout::Bases &registers = fields.bases[registerPart];
  registers.insert(registers.begin(), own.begin(), own.end());
  return Layout::make(std::move(fields));
}

std::optional<Layout> coarsen(const Layout &fields, unsigned dim, int64_t count) {
  Layout::Fields words = fieldsOf(fields);
  int64_t removed = 1;
  for (unsigned part = 0; part < partCount; ++part) {
    Layout::Bases kept;
    for (Layout::Basis &basis : words.bases[part]) {
      bool isOfWord = basis[dim] % count != 0;
      if (!isOfWord) {
        basis[dim] /= int32_t(count);
        kept.push_back(basis);
        continue;
      }
      Layout::Basis alone(fields.rank(), 0);
      alone[dim] = basis[dim];
      if (part != registerPart || basis != alone || !llvm::isPowerOf2_32(basis[dim]))
        return std::nullopt;
      removed *= 2;
    }
    words.bases[part] = std::move(kept);
  }
  if (removed != count)
    return std::nullopt;
  return llvm::expectedToOptional(Layout::get(std::move(words)));
}
} // namespace kpkg::layout
