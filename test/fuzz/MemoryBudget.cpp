// Implements the memory bound by the allocator's hooks, and sets AddressSanitizer up for millions of short runs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/fuzz/MemoryBudget.h"

#include <cstdio>
#include <cstdlib>
#include <sanitizer/allocator_interface.h>

namespace kpkg::fuzz {

static bool isActive = false;
static size_t live = 0, limit = 0;

static void noteAllocation(const volatile void *, size_t bytes) {
  if (!isActive)
    return;
  live += bytes;
  if (live <= limit)
    return;
  isActive = false;
  std::fprintf(stderr, "memory budget exceeded: %zu bytes are live, the limit is %zu\n", live, limit);
  std::abort();
}

static void noteRelease(const volatile void *memory) {
  if (!isActive || !memory)
    return;
  size_t bytes = __sanitizer_get_allocated_size(const_cast<const void *>(memory));
  live -= bytes < live ? bytes : live; // memory of before may be freed, too
}

MemoryBudget::MemoryBudget(size_t bytes) {
  static const int installed = __sanitizer_install_malloc_and_free_hooks(noteAllocation, noteRelease);
  if (!installed)
    std::abort();
  live = 0;
  limit = bytes;
  isActive = true;
}

MemoryBudget::~MemoryBudget() { isActive = false; }

} // namespace kpkg::fuzz

/// Freed memory stays poisoned for some runs, not for 256 MB of them, and allocations have no stacks.
extern "C" const char *__asan_default_options() {
  return "quarantine_size_mb=8:thread_local_quarantine_size_kb=256:malloc_context_size=1:"
         "detect_stack_use_after_return=0:allocator_may_return_null=1";
}
