// Decides which fragments ldmatrix can read, and plans the loads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/MatrixLoad.h"
#include "llvm/ADT/STLExtras.h"

namespace kpkg::layout {
namespace {
constexpr unsigned kRowBytes = 16, kWordBytes = 4, kMostMatrices = 4;

/// The register bits of `layout` by their role in ldmatrix.
struct Shape {
  unsigned inWord;   ///< bits within a word
  unsigned matrices; ///< bits that number the matrices of an instruction
};

std::optional<Shape> shapeOf(const Layout &layout, unsigned elementBytes) {
  if (elementBytes > kWordBytes || layout.bits(Part::Lane) != 5)
    return std::nullopt;
  Shape shape;
  shape.inWord = bitsOf(kWordBytes / elementBytes);
  if (layout.bits(Part::Register) < shape.inWord)
    return std::nullopt;
  shape.matrices = std::min(layout.bits(Part::Register) - shape.inWord, bitsOf(kMostMatrices));
  return shape;
}

/// Returns whether the bases are 1, 2, 4, ... along `dim`.
bool runsAlong(llvm::ArrayRef<Layout::Basis> bases, unsigned dim) {
  for (auto [bit, basis] : llvm::enumerate(bases))
    for (auto [other, value] : llvm::enumerate(basis))
      if (value != (other == dim ? 1 << bit : 0))
        return false;
  return true;
}

/// Returns the bits within a word, then the bits of the lanes that share a row.
Layout::Bases wordsOfRow(const Layout &layout, const Shape &shape) {
  Layout::Bases bases(layout.bases(Part::Register).take_front(shape.inWord));
  bases.append(layout.bases(Part::Lane).begin(), layout.bases(Part::Lane).begin() + 2);
  return bases;
}

std::optional<Layout> rowsOf(const Layout &layout, const Shape &shape, bool isTransposed) {
  Layout::Bases inRow = wordsOfRow(layout, shape), rows(layout.bases(Part::Lane).drop_front(2));
  if (isTransposed)
    std::swap(inRow, rows);
  Layout::Fields fields;
  auto bases = [&](Part part) -> Layout::Bases & { return fields.bases[static_cast<unsigned>(part)]; };
  llvm::ArrayRef<Layout::Basis> registers = layout.bases(Part::Register).drop_front(shape.inWord);
  bases(Part::Register) = inRow;
  llvm::append_range(bases(Part::Register), registers.drop_front(shape.matrices));
  bases(Part::Lane) = rows;
  llvm::append_range(bases(Part::Lane), registers.take_front(shape.matrices));
  bases(Part::Lane).resize(5, Layout::Basis(layout.rank(), 0));
  for (Part part : {Part::Warp, Part::Block})
    bases(part) = Layout::Bases(layout.bases(part));
  fields.repeats.assign(layout.repeats().begin(), layout.repeats().end());
  fields.order.assign(layout.order().begin(), layout.order().end());
  llvm::Expected<Layout> result = Layout::get(std::move(fields));
  if (result)
    return *result;
  llvm::consumeError(result.takeError());
  return std::nullopt;
}

std::optional<MatrixLoad> plan(const Layout &layout, const Shape &shape, const SharedLayout &memory, bool isTransposed,
                               llvm::ArrayRef<int64_t> at) {
  std::optional<Layout> rows = rowsOf(layout, shape, isTransposed);
  if (!rows)
    return std::nullopt;
  llvm::Expected<SharedAccess> access = planAccess(*rows, memory, kRowBytes, at);
  if (!access) {
    llvm::consumeError(access.takeError());
    return std::nullopt;
  }
  if (access->vectorBytes != kRowBytes)
    return std::nullopt;
  MatrixLoad load;
  load.isTransposed = isTransposed;
  unsigned perRow = kRowBytes / memory.elementBytes();
  for (const SharedAccess::Vector &vector : access->vectors) {
    // The registers of a row must be consecutive and ascending, so that each matrix is where the instruction expects
    // it.
    unsigned group = vector.registers.front() / perRow;
    for (auto [index, reg] : llvm::enumerate(vector.registers))
      if (reg != group * perRow + index)
        return std::nullopt;
    auto &words = load.words.emplace_back();
    for (unsigned matrix = 0; matrix < 1u << shape.matrices; ++matrix) {
      auto &word = words.emplace_back();
      for (unsigned element = 0; element < 1u << shape.inWord; ++element)
        word.push_back(element + (((group << shape.matrices) + matrix) << shape.inWord));
    }
  }
  load.rows = std::move(*access);
  return load;
}
} // namespace

std::optional<MatrixLoad> planMatrixLoad(const Layout &layout, const SharedLayout &memory, llvm::ArrayRef<int64_t> at) {
  std::optional<Shape> shape = shapeOf(layout, memory.elementBytes());
  if (!shape)
    return std::nullopt;
  if (std::optional<MatrixLoad> load = plan(layout, *shape, memory, /*isTransposed=*/false, at))
    return load;
  if (memory.elementBytes() != 2)
    return std::nullopt;
  return plan(layout, *shape, memory, /*isTransposed=*/true, at);
}

std::optional<Layout> matrixRows(const Layout &layout, unsigned elementBytes, unsigned contiguous) {
  std::optional<Shape> shape = shapeOf(layout, elementBytes);
  if (!shape)
    return std::nullopt;
  if (runsAlong(wordsOfRow(layout, *shape), contiguous))
    return rowsOf(layout, *shape, /*isTransposed=*/false);
  if (elementBytes == 2 && runsAlong(layout.bases(Part::Lane).drop_front(2), contiguous))
    return rowsOf(layout, *shape, /*isTransposed=*/true);
  return std::nullopt;
}
} // namespace kpkg::layout
