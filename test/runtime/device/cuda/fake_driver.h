// What the stand-in for NVIDIA's driver answers and has seen.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_TEST_FAKE_DRIVER_H
#define KPKG_TEST_FAKE_DRIVER_H

#include <stdint.h>

// What the stand-in writes where the driver puts a tensor map.
struct FakeTensorMap {
  uint64_t address, extents[5], strides[4];
  uint32_t box[5];
  uint8_t type, rank, swizzle, promotion;
  // Of a window: corners and steps of extents, the last one first.
  int16_t lower[3], upper[3];
  uint16_t steps[3], pixels;
};

struct FakeDriver {
  int major, minor, devices, capturing, failLaunch, failEncoding;
  int recording;          // the number of what is being recorded
  void (*forget)(void *); // of what the last recorded graph keeps
  void *kept;
  int clusters;  // of one CTA each that it holds at once
  int wordCount; // parameters to write down
  int loads, launches, copies, allocations, depth, streams, waits, events, encodings;
  int elementCopies; // launches of the runtime's own kernels; they are not among `launches`
  int turns;         // those among them that turn squares
  int allowedShared;
  uint32_t grid[3], threads, shared, attributes;
  uint64_t words[64];
  void *stream, *current;
  void (*onLaunch)(void **parameters); // does what the kernel would
  char symbol[128], contexts[8];
};

#endif
