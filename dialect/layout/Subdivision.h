// Derives the layout of the fields of words from the layout of the words, and the reverse, such that no bit moves.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"

namespace kpkg::layout {
/// Returns the layout in which each element becomes `count` adjacent elements along `dim`, in further registers of the
/// same thread. They are the lowest bits of the register number. `count` is a power of two.
Layout subdivide(const Layout &words, unsigned dim, int64_t count);

/// Returns the layout of groups of `count` adjacent elements along `dim`, where each group is one element. The other
/// bits keep their order. Fails when a thread does not hold whole groups.
std::optional<Layout> coarsen(const Layout &fields, unsigned dim, int64_t count);
} // namespace kpkg::layout
