// What the stand-in for CUPTI answers and has seen.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_TEST_FAKE_CUPTI_H
#define KPKG_TEST_FAKE_CUPTI_H

#include <stdint.h>

struct FakeCupti {
  int hasSubscriber; // of another tool
  int failEnable;    // the kind that cannot be enabled
  int stealsBuffers; // as a tool that registers its own: nothing comes
  int subscriptions, buffers;
  uint64_t enabled; // kinds, as bits
  // One kernel for each identifier that was pushed, of 100 ns and 10 more each time.
  uint64_t pushed[64];
  int pushes, depth, flushes;
};

#endif
