// Builds layouts of shared memory, and plans the accesses of threads to them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/Shared.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>
#include <map>
#include <set>

namespace kpkg::layout {
namespace {
template <typename... Values> llvm::Error wrong(const char *format, Values &&...values) {
  return llvm::createStringError(llvm::formatv(format, std::forward<Values>(values)...).str());
}

/// Returns the offset of the last element of an atom: the largest XOR of a subset of the bases.
uint64_t lastOffset(const SharedLayout::Fields &fields) {
  llvm::SmallVector<uint64_t, 24> leading;
  for (const auto &bases : fields.bases)
    for (uint64_t basis : bases) {
      for (uint64_t known : leading)
        basis = std::min(basis, basis ^ known);
      if (basis)
        leading.push_back(basis);
    }
  llvm::sort(leading, std::greater<>());
  uint64_t result = 0;
  for (uint64_t basis : leading)
    result = std::max(result, result ^ basis);
  return result;
}

/// Converts repeats to bits of the atom where adding the stride is equivalent to XORing it, until the atom reaches
/// `wanted`.
void widenAtom(SharedLayout::Fields &fields, llvm::ArrayRef<int64_t> wanted) {
  for (bool changed = true; changed;) {
    changed = false;
    uint64_t span = llvm::bit_ceil(lastOffset(fields) + 1);
    for (unsigned dim = 0; dim < wanted.size(); ++dim) {
      uint64_t stride = fields.strides[dim];
      if (int64_t(1) << fields.bases[dim].size() >= wanted[dim] || fields.repeats[dim] % 2 != 0 ||
          !llvm::isPowerOf2_64(stride) || stride < span)
        continue;
      bool fastest = true;
      for (unsigned other = 0; other < wanted.size(); ++other)
        if (other != dim && fields.repeats[other] != 1)
          fastest &= fields.strides[other] % int64_t(2 * stride) == 0;
      if (!fastest)
        continue;
      fields.bases[dim].push_back(stride);
      fields.repeats[dim] /= 2;
      fields.strides[dim] = fields.repeats[dim] == 1 ? 0 : 2 * stride;
      changed = true;
      break;
    }
  }
}

int64_t offsetIn(const SharedLayout::Fields &fields, llvm::ArrayRef<int64_t> coordinates) {
  uint64_t inside = 0;
  int64_t outside = 0;
  for (auto [bases, stride, coordinate] : llvm::zip_equal(fields.bases, fields.strides, coordinates)) {
    for (auto [bit, basis] : llvm::enumerate(bases))
      if (coordinate >> bit & 1)
        inside ^= basis;
    outside += (coordinate >> bases.size()) * stride;
  }
  return inside + outside;
}
} // namespace

llvm::Expected<SharedLayout> SharedLayout::get(Fields fields) {
  unsigned rank = fields.repeats.size();
  if (fields.bases.size() != rank || fields.strides.size() != rank)
    return wrong("bases, repeats and strides differ in rank");
  if (!llvm::isPowerOf2_32(fields.elementBytes))
    return wrong("element size {0} is no power of two", fields.elementBytes);
  BitSpan span;
  for (unsigned dim = 0; dim < rank; ++dim) {
    if (fields.repeats[dim] < 1 || fields.strides[dim] % int64_t(fields.elementBytes) != 0)
      return wrong("dimension {0}: repeats below 1, or a stride that is no multiple of the element size", dim);
    if (fields.repeats[dim] == 1)
      fields.strides[dim] = 0;
    for (uint32_t basis : fields.bases[dim]) {
      if (basis % fields.elementBytes != 0)
        return wrong("basis {0} is no multiple of the element size", basis);
      if (!span.add(basis))
        return wrong("basis {0} of dimension {1} depends on those before it: two elements would share a place", basis,
                     dim);
    }
  }
  // Atoms may interleave, as in a row-major tile with odd extents, so the check for overlap covers every repeat. In
  // ascending order, each stride must step over all bytes that the smaller strides reach.
  llvm::SmallVector<unsigned, 4> dims;
  for (unsigned dim = 0; dim < rank; ++dim)
    if (fields.repeats[dim] != 1)
      dims.push_back(dim);
  auto distance = [&](unsigned dim) { return std::abs(fields.strides[dim]); };
  llvm::sort(dims, [&](unsigned a, unsigned b) { return distance(a) < distance(b); });
  int64_t reach = lastOffset(fields) + fields.elementBytes;
  for (unsigned dim : dims) {
    if (distance(dim) < reach)
      return wrong("stride {0} of dimension {1} is less than the {2} bytes that it should step over",
                   fields.strides[dim], dim, reach);
    reach += (fields.repeats[dim] - 1) * distance(dim);
  }
  SharedLayout layout;
  layout.fields = std::move(fields);
  return layout;
}

SharedLayout SharedLayout::rowMajor(llvm::ArrayRef<int64_t> shape, unsigned elementBytes) {
  unsigned rank = shape.size();
  Fields fields;
  fields.elementBytes = elementBytes;
  fields.bases.resize(rank);
  fields.repeats.assign(rank, 1);
  fields.strides.assign(rank, 0);
  int64_t size = elementBytes;
  for (unsigned dim = rank; dim-- > 0;) {
    // Offsets of a dimension are XORs only while all faster dimensions fill a power of two.
    int64_t bits = llvm::isPowerOf2_64(size) ? shape[dim] & -shape[dim] : 1;
    for (int64_t bit = 1; bit < bits; bit *= 2)
      fields.bases[dim].push_back(bit * size);
    fields.repeats[dim] = shape[dim] / bits;
    fields.strides[dim] = bits * size;
    size *= shape[dim];
  }
  return llvm::cantFail(get(std::move(fields)));
}

llvm::Expected<SharedLayout> SharedLayout::tma(llvm::ArrayRef<int64_t> shape, unsigned elementBytes, Swizzle swizzle) {
  if (shape.size() != 2)
    return wrong("a TMA tile has two dimensions here, not {0}", shape.size());
  int64_t rows = shape[0], columns = shape[1], rowBytes = columns * elementBytes;
  unsigned span = static_cast<unsigned>(swizzle);
  if (swizzle == Swizzle::None) {
    if (rowBytes % 16 != 0 || rows > 256 || columns > 256)
      return wrong("a TMA box has at most 256 elements a dimension and rows of a multiple of 16 bytes");
    return rowMajor(shape, elementBytes);
  }
  if (rowBytes % span != 0 || rows % 8 != 0 || rows > 256)
    return wrong("a tile of {0}x{1} elements of {2} bytes does not fall into {3}-byte panels of 8 to 256 rows", rows,
                 columns, elementBytes, span);
  Fields fields;
  fields.elementBytes = elementBytes;
  fields.bases.resize(2);
  for (unsigned bytes = elementBytes; bytes < span; bytes *= 2)
    fields.bases[1].push_back(bytes);
  // The hardware XORs the chunk number (from address bit 4) with the address bits from 7 on. The number of bits is log2
  // of the chunks in a span.
  int64_t rowsInAtom = llvm::isPowerOf2_64(rows) ? rows : 8;
  for (uint32_t offset = span; offset < rowsInAtom * span; offset *= 2)
    fields.bases[0].push_back(offset ^ ((offset >> 7 & (span / 16 - 1)) << 4));
  int64_t panels = rowBytes / span, panelBytes = rows * span;
  fields.repeats = {rows / rowsInAtom, panels};
  fields.strides = {rowsInAtom * span, panelBytes};
  return get(std::move(fields));
}

SharedLayout withSlots(const SharedLayout &slot, int64_t count) {
  SharedLayout::Fields fields = slot.parameters();
  fields.bases.insert(fields.bases.begin(), llvm::SmallVector<uint32_t, 8>());
  fields.repeats.insert(fields.repeats.begin(), count);
  fields.strides.insert(fields.strides.begin(), count > 1 ? llvm::alignTo(slot.sizeBytes(), slot.alignment()) : 0);
  return cantFail(SharedLayout::get(std::move(fields)));
}

SharedLayout transposed(const SharedLayout &layout) {
  SharedLayout::Fields fields = layout.parameters();
  std::reverse(fields.bases.begin(), fields.bases.end());
  std::reverse(fields.repeats.begin(), fields.repeats.end());
  std::reverse(fields.strides.begin(), fields.strides.end());
  return cantFail(SharedLayout::get(std::move(fields)));
}

bool SharedLayout::operator==(const SharedLayout &other) const {
  return fields.elementBytes == other.fields.elementBytes && fields.bases == other.fields.bases &&
         fields.repeats == other.fields.repeats && fields.strides == other.fields.strides;
}

llvm::hash_code hash_value(const SharedLayout &layout) {
  const SharedLayout::Fields &fields = layout.fields;
  llvm::hash_code code =
      llvm::hash_combine(fields.elementBytes, llvm::hash_combine_range(fields.repeats.begin(), fields.repeats.end()),
                         llvm::hash_combine_range(fields.strides.begin(), fields.strides.end()));
  for (const auto &bases : fields.bases)
    code = llvm::hash_combine(code, llvm::hash_combine_range(bases.begin(), bases.end()));
  return code;
}

llvm::SmallVector<int64_t, 4> SharedLayout::atom() const {
  llvm::SmallVector<int64_t, 4> result;
  for (const auto &bases : fields.bases)
    result.push_back(int64_t(1) << bases.size());
  return result;
}

llvm::SmallVector<int64_t, 4> SharedLayout::shape() const {
  llvm::SmallVector<int64_t, 4> result = atom();
  for (unsigned dim = 0; dim < rank(); ++dim)
    result[dim] *= fields.repeats[dim];
  return result;
}

int64_t SharedLayout::sizeBytes() const {
  int64_t result = lastOffset(fields) + fields.elementBytes;
  for (auto [repeat, stride] : llvm::zip_equal(fields.repeats, fields.strides))
    result += (repeat - 1) * std::abs(stride);
  return result;
}

int64_t SharedLayout::alignment() const {
  // A swizzle of address bits below 1024 matches the hardware's pattern only if the base has this alignment.
  uint64_t mixed = 0;
  for (const auto &bases : fields.bases)
    for (uint32_t basis : bases)
      if (!llvm::isPowerOf2_32(basis) && basis < 1024)
        mixed |= basis;
  return std::max<int64_t>(128, llvm::bit_ceil(mixed + 1));
}

int64_t SharedLayout::offset(llvm::ArrayRef<int64_t> coordinates) const { return offsetIn(fields, coordinates); }

llvm::Expected<SharedAccess> planAccess(const Layout &layout, const SharedLayout &memory, unsigned maxVectorBytes,
                                        llvm::ArrayRef<int64_t> at) {
  if (layout.rank() != memory.rank())
    return wrong("layout and memory differ in rank");
  Coordinates begin(at);
  begin.resize(layout.rank(), 0);
  for (auto [first, wanted, present] : llvm::zip_equal(begin, layout.shape(), memory.shape())) {
    if (first % wanted != 0)
      return wrong("layout {0} cannot begin at {1}", layout.str(), first);
    if (first + wanted > present)
      return wrong("layout {0} reaches beyond the memory", layout.str());
  }
  SharedLayout::Fields fields = memory.parameters();
  widenAtom(fields, layout.atom());
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    if (layout.atom()[dim] > int64_t(1) << fields.bases[dim].size())
      return wrong("the atom of layout {0} is larger than that of the memory in dimension {1}", layout.str(), dim);

  SharedAccess access;
  uint32_t threadBits = 0;
  auto offsetsOf = [&](Part part, llvm::SmallVectorImpl<uint32_t> &offsets) {
    for (const Layout::Basis &basis : layout.bases(part)) {
      offsets.push_back(offsetIn(fields, Coordinates(basis.begin(), basis.end())));
      threadBits |= offsets.back();
    }
  };
  offsetsOf(Part::Lane, access.laneBases);
  offsetsOf(Part::Warp, access.warpBases);
  offsetsOf(Part::Block, access.blockBases);

  // Offsets of the registers in thread 0: a repeat lies either inside the memory's atom (XOR) or beyond it (sum).
  unsigned count = layout.registers();
  llvm::SmallVector<std::pair<uint32_t, int64_t>> where;
  for (unsigned reg = 0; reg < count; ++reg) {
    Coordinates inside = layout.coordinates({reg, 0, 0, 0}), outside = inside;
    for (unsigned dim = 0; dim < layout.rank(); ++dim) {
      outside[dim] = inside[dim] += begin[dim];
      inside[dim] &= (int64_t(1) << fields.bases[dim].size()) - 1;
      outside[dim] -= inside[dim];
    }
    where.push_back({offsetIn(fields, inside), offsetIn(fields, outside)});
  }
  unsigned elementBytes = fields.elementBytes;
  std::map<std::pair<int64_t, uint32_t>, llvm::SmallVector<unsigned, 8>> groups;
  unsigned bytes = std::max(maxVectorBytes, elementBytes);
  for (; bytes > elementBytes; bytes /= 2) {
    groups.clear();
    bool fits = threadBits % bytes == 0;
    for (unsigned reg = 0; fits && reg < count; ++reg) {
      fits &= where[reg].second % bytes == 0;
      groups[{where[reg].second, where[reg].first & ~(bytes - 1)}].push_back(reg);
    }
    for (auto &[key, registers] : groups)
      fits &= registers.size() == bytes / elementBytes;
    if (fits && !groups.empty())
      break;
  }
  if (bytes == elementBytes) {
    groups.clear();
    for (unsigned reg = 0; reg < count; ++reg)
      groups[{where[reg].second, where[reg].first}].push_back(reg);
  }
  access.vectorBytes = bytes;
  for (auto &[key, registers] : groups) {
    llvm::sort(registers, [&](unsigned a, unsigned b) { return where[a].first < where[b].first; });
    access.vectors.push_back({registers, key.second, key.first});
  }
  // In register order, so that values that are used early are also loaded early.
  llvm::sort(access.vectors, [](const auto &a, const auto &b) {
    return *llvm::min_element(a.registers) < *llvm::min_element(b.registers);
  });
  return access;
}

namespace {
constexpr unsigned wordBytes = 4, bankCount = 32;

/// Returns the number of lanes that one pass serves.
unsigned lanesInPass(const SharedAccess &access) {
  unsigned all = 1u << access.laneBases.size();
  return std::min(all, access.vectorBytes <= wordBytes ? 32u : 32u * wordBytes / access.vectorBytes);
}
} // namespace

unsigned countWavefronts(const SharedAccess &access) {
  unsigned all = 1u << access.laneBases.size(), step = lanesInPass(access), result = 0;
  for (const SharedAccess::Vector &vector : access.vectors)
    for (unsigned first = 0; first < all; first += step) {
      std::array<std::set<int64_t>, bankCount> words;
      for (unsigned lane = first; lane < first + step; ++lane) {
        uint32_t offset = vector.xorOffset;
        for (auto [bit, basis] : llvm::enumerate(access.laneBases))
          if (lane >> bit & 1)
            offset ^= basis;
        int64_t address = offset + vector.addOffset;
        for (unsigned byte = 0; byte < access.vectorBytes; byte += wordBytes)
          words[(address + byte) / wordBytes % bankCount].insert((address + byte) / wordBytes);
      }
      size_t most = 0;
      for (const auto &bank : words)
        most = std::max(most, bank.size());
      result += most;
    }
  return result;
}

unsigned idealWavefronts(const SharedAccess &access) {
  unsigned all = 1u << access.laneBases.size(), step = lanesInPass(access);
  return access.vectors.size() * (all / step);
}

unsigned wavefrontsByRank(const SharedAccess &access) {
  unsigned all = 1u << access.laneBases.size(), step = lanesInPass(access);
  BitSpan words, banks;
  for (unsigned bit = 0; bit < bitsOf(step); ++bit) {
    words.add(access.laneBases[bit] / wordBytes);
    banks.add(access.laneBases[bit] / wordBytes % bankCount);
  }
  return access.vectors.size() * (all / step) << (words.dimension() - banks.dimension());
}
} // namespace kpkg::layout
