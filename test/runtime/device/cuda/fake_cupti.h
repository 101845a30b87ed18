// Settings and observations of the stand-in for CUPTI.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_TEST_FAKE_CUPTI_H
#define KPKG_TEST_FAKE_CUPTI_H

#include <stdint.h>

struct FakeCupti {
  int hasSubscriber; // another tool subscribed
  int failEnable;    // the kind that cannot be enabled
  int stealsBuffers; // another tool registers its own buffers, so that no records arrive
  int subscriptions, buffers;
  uint64_t enabled; // kinds, as bits
  // Each pushed identifier gets one kernel; kernel i takes 100 + 10 i ns.
  uint64_t pushed[64];
  int pushes, depth, flushes;
};

#endif
