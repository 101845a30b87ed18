// Describes the places of a kernel's accesses to memory, as sums of unknown numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Hir.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace kpkg::compiler {

/// A sum of unknowns with factors, and a constant. Unknowns with factor 0 are absent.
struct Linear {
  std::map<unsigned, int64_t> factors;
  int64_t constant = 0;

  bool isConstant() const { return factors.empty(); }
  bool operator==(const Linear &) const = default;
};
/// Returns `a + factor * b`.
Linear sum(const Linear &a, const Linear &b, int64_t factor);

/// A number that is not known while compiling.
struct Unknown {
  std::set<unsigned> loops;  ///< the loops in whose iterations it may differ
  int64_t step = 0;          ///< for a number that each iteration increases: by this, or by more in its direction
  bool isCoordinate = false; ///< for a coordinate of `output_tiles`: no two iterations have the same ones
};

/// Bounds of the coordinates of an access along a dimension: low <= coordinate < high.
struct Span {
  Linear low, high;
};

/// A load, a store, a gather, a scatter, an update or the read of an element.
struct Access {
  const hir::Node *node;
  unsigned argument;
  std::vector<std::vector<Span>> spans;         ///< for each dimension of the argument; all of them hold
  std::vector<unsigned> loops;                  ///< around it, the outermost first
  std::map<const hir::Node *, size_t> branches; ///< the `if`s around it, and which branch it is in
};

enum class Effect : uint8_t { Read, Write, Update };
/// Returns what an access of this kind does to memory.
Effect effectOf(hir::Kind kind);

struct Places {
  std::vector<Unknown> unknowns;
  std::vector<Access> accesses; ///< in the order of the source
};

/// Finds the accesses of a kernel to the tensors that it both reads and writes.
Places placesOf(const hir::Function &kernel);

} // namespace kpkg::compiler
