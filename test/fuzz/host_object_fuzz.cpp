// Fuzz target: passes any bytes to the loader of host objects, and does not run accepted objects.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/HostObject.h"
#include "test/fuzz/MemoryBudget.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  kpkg::fuzz::MemoryBudget budget((1 << 20) + 4 * size);
  auto object = kpkg::cpu::HostObject::load({reinterpret_cast<const char *>(data), size}, "fuzz");
  if (object)
    object->find("kernel");
  return 0;
}
