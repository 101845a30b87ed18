// What the stand-in for NVIDIA's driver answers and has seen.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_TEST_FAKE_DRIVER_H
#define KPKG_TEST_FAKE_DRIVER_H

#include <stdint.h>

struct FakeDriver {
  int major, minor, devices, capturing, failLaunch;
  int wordCount; // parameters to write down
  int loads, launches, copies, allocations, depth, streams, waits, events;
  int allowedShared;
  uint32_t grid[3], threads, shared, attributes;
  uint64_t words[64];
  void *stream, *current;
  void (*onLaunch)(void **parameters); // does what the kernel would
  char symbol[128], contexts[8];
};

#endif
