// Declares the bound on the memory of one run of a fuzz target.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FUZZ_MEMORYBUDGET_H
#define KPKG_FUZZ_MEMORYBUDGET_H

#include <cstddef>

namespace kpkg::fuzz {

/// Aborts where the memory that is live since its construction exceeds `bytes`. One exists at a time.
class MemoryBudget {
public:
  explicit MemoryBudget(size_t bytes);
  ~MemoryBudget();
  MemoryBudget(const MemoryBudget &) = delete;
};

} // namespace kpkg::fuzz
#endif
