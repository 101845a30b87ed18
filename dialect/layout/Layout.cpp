// Builds, checks and queries layouts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/Layout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>

namespace kpkg::layout {
namespace {
/// The register bits suffice for the elements of the largest tile, so that every layout derived from a layout is valid.
constexpr std::array<unsigned, partCount> maxBits = {20, 5, 5, 4};
constexpr std::array<llvm::StringRef, partCount> partNames = {"register", "lane", "warp", "block"};

template <typename... Values> llvm::Error wrong(const char *format, Values &&...values) {
  return llvm::createStringError(llvm::formatv(format, std::forward<Values>(values)...).str());
}

bool isFree(const Layout::Basis &basis) {
  return llvm::all_of(basis, [](int32_t value) { return value == 0; });
}

llvm::Error checkBases(const Layout::Fields &fields) {
  for (Part part : parts) {
    unsigned index = static_cast<unsigned>(part);
    const Layout::Bases &bases = fields.bases[index];
    if (bases.size() > maxBits[index])
      return wrong("{0} has {1} bits, at most {2} are possible", partNames[index], bases.size(), maxBits[index]);
    for (auto [bit, basis] : llvm::enumerate(bases)) {
      if (basis.size() != fields.repeats.size())
        return wrong("{0} bit {1} has {2} coordinates, the rank is {3}", partNames[index], bit, basis.size(),
                     fields.repeats.size());
      for (int32_t value : basis)
        if (value < 0 || value >= 1 << 20)
          return wrong("{0} bit {1} has coordinate {2}, not in [0, 2^20)", partNames[index], bit, value);
      if (part == Part::Register && isFree(basis))
        return wrong("register bit {0} is free: a thread would hold an element twice", bit);
    }
  }
  return llvm::Error::success();
}

llvm::Error checkRepeats(const Layout::Fields &fields) {
  for (int64_t repeat : fields.repeats)
    if (repeat < 1 || repeat >= 1 << 20)
      return wrong("repeat {0} is not in [1, 2^20)", repeat);
  llvm::SmallVector<bool, 4> seen(fields.repeats.size(), false);
  if (fields.order.size() != seen.size())
    return wrong("order has {0} dimensions, the rank is {1}", fields.order.size(), seen.size());
  for (unsigned dim : fields.order) {
    if (dim >= seen.size() || seen[dim])
      return wrong("order is not a permutation of the dimensions");
    seen[dim] = true;
  }
  return llvm::Error::success();
}

/// Converts repeats to register bits as far as register numbers stay the same.
void foldRepeats(Layout::Fields &fields, llvm::MutableArrayRef<int64_t> atom) {
  Layout::Bases &registers = fields.bases[0];
  for (unsigned dim : fields.order) {
    while (fields.repeats[dim] % 2 == 0) {
      Layout::Basis basis(fields.repeats.size(), 0);
      basis[dim] = atom[dim];
      registers.push_back(basis);
      atom[dim] *= 2;
      fields.repeats[dim] /= 2;
    }
    if (fields.repeats[dim] != 1)
      break;
  }
}

/// Moves dimensions that do not repeat to the end, the last one first, because their position has no meaning.
void sortOrder(Layout::Fields &fields) {
  llvm::SmallVector<unsigned, 4> order;
  for (unsigned dim : fields.order)
    if (fields.repeats[dim] != 1)
      order.push_back(dim);
  for (unsigned dim = fields.repeats.size(); dim-- > 0;)
    if (fields.repeats[dim] == 1)
      order.push_back(dim);
  fields.order = order;
}
} // namespace

unsigned bitsOf(int64_t size) {
  assert(llvm::isPowerOf2_64(size) && "not a power of two");
  return llvm::Log2_64(size);
}

llvm::Expected<Layout> Layout::get(Fields fields) {
  unsigned rank = fields.repeats.size();
  if (fields.order.empty())
    for (unsigned dim = rank; dim-- > 0;)
      fields.order.push_back(dim);
  if (llvm::Error error = checkRepeats(fields))
    return std::move(error);
  if (llvm::Error error = checkBases(fields))
    return std::move(error);

  Layout layout;
  layout.atomShape.assign(rank, 1);
  for (const Bases &bases : fields.bases)
    for (const Basis &basis : bases)
      for (unsigned dim = 0; dim < rank; ++dim)
        layout.atomShape[dim] = std::max<int64_t>(layout.atomShape[dim], llvm::bit_ceil(uint64_t(basis[dim]) + 1));
  foldRepeats(fields, layout.atomShape);
  sortOrder(fields);
  if (fields.bases[0].size() > maxBits[0])
    return wrong("a thread would hold {0} elements of the atom, at most {1} are possible",
                 uint64_t(1) << fields.bases[0].size(), 1u << maxBits[0]);
  layout.fields = std::move(fields);

  unsigned rows = layout.firstRow(rank);
  if (rows > 40)
    return wrong("the atom has 2^{0} elements, at most 2^40 are possible", rows);
  BitSpan span;
  llvm::SmallVector<uint64_t, 24> columns;
  for (Part part : parts)
    for (auto [bit, basis] : llvm::enumerate(layout.bases(part))) {
      columns.push_back(layout.pack(Coordinates(basis.begin(), basis.end())));
      if (columns.back() && !span.add(columns.back()))
        return wrong("{0} bit {1} depends on the bits before it: an element would have two places",
                     partNames[static_cast<unsigned>(part)], bit);
    }
  if (span.dimension() != rows)
    return wrong("no place for some elements of the atom: {0} bits reach only 2^{1} of 2^{2}", columns.size(),
                 span.dimension(), rows);
  layout.forward = BitMatrix(rows, columns);
  layout.backward = *layout.forward.rightInverse();
  return layout;
}

Layout Layout::make(Fields fields) { return llvm::cantFail(get(std::move(fields))); }

bool Layout::operator==(const Layout &other) const {
  return fields.bases == other.fields.bases && fields.repeats == other.fields.repeats &&
         fields.order == other.fields.order;
}

llvm::hash_code hash_value(const Layout &layout) {
  llvm::hash_code code = llvm::hash_combine_range(layout.fields.repeats.begin(), layout.fields.repeats.end());
  code = llvm::hash_combine(code, llvm::hash_combine_range(layout.fields.order.begin(), layout.fields.order.end()));
  for (const Layout::Bases &bases : layout.fields.bases) {
    code = llvm::hash_combine(code, bases.size());
    for (const Layout::Basis &basis : bases)
      code = llvm::hash_combine(code, llvm::hash_combine_range(basis.begin(), basis.end()));
  }
  return code;
}

llvm::SmallVector<int64_t, 4> Layout::shape() const {
  llvm::SmallVector<int64_t, 4> result;
  for (auto [size, repeat] : llvm::zip(atomShape, fields.repeats))
    result.push_back(size * repeat);
  return result;
}

bool Layout::covers(llvm::ArrayRef<int64_t> tensorShape) const {
  return tensorShape.size() == rank() && llvm::all_of(llvm::zip(tensorShape, shape()),
                                                      [](auto pair) { return std::get<0>(pair) <= std::get<1>(pair); });
}

unsigned Layout::registers() const {
  unsigned result = atomRegisters();
  for (int64_t repeat : fields.repeats)
    result *= repeat;
  return result;
}

unsigned Layout::firstRow(unsigned dim) const {
  unsigned result = 0;
  for (unsigned i = 0; i < dim; ++i)
    result += bitsOf(atomShape[i]);
  return result;
}

unsigned Layout::firstColumn(Part part) const {
  unsigned result = 0;
  for (unsigned i = 0; i < static_cast<unsigned>(part); ++i)
    result += fields.bases[i].size();
  return result;
}

unsigned Layout::repeatStride(unsigned dim) const {
  unsigned stride = atomRegisters();
  for (unsigned faster : fields.order) {
    if (faster == dim)
      break;
    stride *= fields.repeats[faster];
  }
  return stride;
}

uint64_t Layout::pack(llvm::ArrayRef<int64_t> coordinates) const {
  uint64_t result = 0;
  unsigned row = 0;
  for (unsigned dim = 0; dim < rank(); ++dim) {
    result |= uint64_t(coordinates[dim] % atomShape[dim]) << row;
    row += bitsOf(atomShape[dim]);
  }
  return result;
}

unsigned Layout::repeatRegister(llvm::ArrayRef<int64_t> coordinates) const {
  unsigned result = 0, stride = atomRegisters();
  for (unsigned dim : fields.order) {
    result += coordinates[dim] / atomShape[dim] * stride;
    stride *= fields.repeats[dim];
  }
  return result;
}

Coordinates Layout::coordinates(const Place &place) const {
  assert(place.reg < registers() && place.lane < lanes() && place.warp < warps() && place.block < blocks() &&
         "no such place");
  uint64_t bits = place.reg % atomRegisters() | uint64_t(place.lane) << firstColumn(Part::Lane) |
                  uint64_t(place.warp) << firstColumn(Part::Warp) | uint64_t(place.block) << firstColumn(Part::Block);
  uint64_t packed = forward.apply(bits);
  Coordinates result;
  for (int64_t size : atomShape) {
    result.push_back(packed % size);
    packed /= size;
  }
  unsigned repeat = place.reg / atomRegisters();
  for (unsigned dim : fields.order) {
    result[dim] += repeat % fields.repeats[dim] * atomShape[dim];
    repeat /= fields.repeats[dim];
  }
  return result;
}

std::optional<Place> Layout::placeOf(llvm::ArrayRef<int64_t> coordinates) const {
  for (auto [coordinate, extent] : llvm::zip_equal(coordinates, shape()))
    if (coordinate < 0 || coordinate >= extent)
      return std::nullopt;
  uint64_t bits = backward.apply(pack(coordinates));
  auto take = [&bits](unsigned count) {
    unsigned value = bits & ((1u << count) - 1);
    bits >>= count;
    return value;
  };
  Place place;
  place.reg = take(this->bits(Part::Register)) + repeatRegister(coordinates);
  place.lane = take(this->bits(Part::Lane));
  place.warp = take(this->bits(Part::Warp));
  place.block = take(this->bits(Part::Block));
  return place;
}

std::optional<unsigned> Layout::registerOf(llvm::ArrayRef<int64_t> coordinates, unsigned lane, unsigned warp,
                                           unsigned block) const {
  std::optional<Place> place = placeOf(coordinates);
  if (!place || place->lane != (lane & ~freeBits(Part::Lane)) || place->warp != (warp & ~freeBits(Part::Warp)) ||
      place->block != (block & ~freeBits(Part::Block)))
    return std::nullopt;
  return place->reg;
}

bool Layout::isInside(const Place &place, llvm::ArrayRef<int64_t> tensorShape) const {
  for (auto [coordinate, extent] : llvm::zip_equal(coordinates(place), tensorShape))
    if (coordinate >= extent)
      return false;
  return true;
}

unsigned Layout::freeBits(Part part) const {
  unsigned mask = 0;
  for (auto [bit, basis] : llvm::enumerate(bases(part)))
    mask |= unsigned(isFree(basis)) << bit;
  return mask;
}

bool Layout::isReplicated() const {
  return llvm::any_of(parts, [&](Part part) { return freeBits(part) != 0; });
}

unsigned Layout::bitsAlong(Part part, unsigned dim) const {
  unsigned mask = 0;
  for (auto [bit, basis] : llvm::enumerate(bases(part)))
    mask |= unsigned(basis[dim] != 0) << bit;
  return mask;
}

unsigned Layout::vectorLength(unsigned dim, unsigned maxElements) const {
  int64_t length = 1;
  // Inside the atom: the bit must belong to a register bit of its own that no other bit shares.
  for (; length < atomShape[dim] && 2 * length <= maxElements; length *= 2) {
    bool found = false, disturbed = false;
    for (Part part : parts)
      for (const Basis &basis : bases(part)) {
        if (!(basis[dim] & length))
          continue;
        int64_t sum = 0;
        for (int32_t value : basis)
          sum += value;
        bool own = part == Part::Register && sum == length;
        (own ? found : disturbed) = true;
      }
    if (!found || disturbed)
      return length;
  }
  // Beyond the atom: repeats, as long as their number is even.
  for (int64_t repeat = fields.repeats[dim]; repeat % 2 == 0 && 2 * length <= maxElements; repeat /= 2)
    length *= 2;
  return length;
}

llvm::SmallVector<llvm::SmallVector<unsigned, 8>> Layout::vectors(unsigned dim, unsigned maxElements) const {
  unsigned length = vectorLength(dim, maxElements);
  llvm::SmallVector<llvm::SmallVector<unsigned, 8>> result;
  for (unsigned reg = 0, count = registers(); reg < count; ++reg) {
    Coordinates where = coordinates({reg, 0, 0, 0});
    if (where[dim] % length != 0)
      continue;
    llvm::SmallVector<unsigned, 8> &group = result.emplace_back();
    for (unsigned i = 0; i < length; ++i, ++where[dim])
      group.push_back(*registerOf(where, 0));
  }
  llvm::sort(result, [](const auto &left, const auto &right) { return left.front() < right.front(); });
  return result;
}
} // namespace kpkg::layout
