// Fuzz target: the loader of host objects takes any bytes. What it accepts is not run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/HostObject.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto object = kpkg::cpu::HostObject::load({reinterpret_cast<const char *>(data), size}, "fuzz");
  if (object)
    object->find("kernel");
  return 0;
}
