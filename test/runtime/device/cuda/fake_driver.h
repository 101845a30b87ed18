// Settings and observations of the stand-in for NVIDIA's driver.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_TEST_FAKE_DRIVER_H
#define KPKG_TEST_FAKE_DRIVER_H

#include <stdint.h>

// The contents that the stand-in writes to a tensor map.
struct FakeTensorMap {
  uint64_t address, extents[5], strides[4];
  uint32_t box[5];
  uint8_t type, rank, swizzle, promotion;
  // Of a window: corners and steps of the extents, the last extent first.
  int16_t lower[3], upper[3];
  uint16_t steps[3], pixels;
};

struct FakeDriver {
  int major, minor, devices, capturing, failLaunch, failEncoding, failLoading;
  int recording;          // identifies the current capture
  void (*forget)(void *); // destroys `kept`, which the last captured graph retains
  void *kept;
  int clusters;  // of one CTA each that the device holds at once
  int wordCount; // parameters to record
  int loads, launches, copies, allocations, depth, streams, waits, events, encodings;
  int elementCopies; // launches of the runtime's own kernels; they are not among `launches`
  int turns;         // those of them that transpose tiles
  int allowedShared;
  uint32_t grid[3], threads, shared, attributes;
  uint64_t words[64];
  void *stream, *current;
  void (*onLaunch)(void **parameters); // does the kernel's work
  char symbol[128], contexts[8];
  char refused[32]; // images with this text are no code for the device
};

#endif
