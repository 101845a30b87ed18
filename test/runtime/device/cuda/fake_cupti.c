// A stand-in for CUPTI: creates a kernel record for each pushed identifier, mixed with records of other tools.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fake_cupti.h"
#include <stdlib.h>
#include <string.h>

struct FakeCupti fakeCupti;

static void (*request)(uint8_t **, size_t *, size_t *);
static void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t);
static const uint64_t base = 5000000; // the clock at the start of a recording

// Returns the size of a record: a driver call, an identifier or a kernel.
static size_t sizeOf(int kind) { return kind == 4 ? 40 : kind == 39 ? 24 : 208; }

int cuptiGetVersion(uint32_t *version) {
  const char *text = getenv("FAKE_CUPTI_VERSION");
  return *version = text ? (uint32_t)atoi(text) : 130001, 0;
}
int cuptiSubscribe(void **subscriber, void *callback, void *data) {
  if (fakeCupti.hasSubscriber || getenv("FAKE_CUPTI_SUBSCRIBER"))
    return 39;
  return *subscriber = &fakeCupti, ++fakeCupti.subscriptions, 0;
}
int cuptiUnsubscribe(void *subscriber) { return --fakeCupti.subscriptions, 0; }
int cuptiActivityRegisterCallbacks(void *requested, void *completed) {
  memcpy(&request, &requested, sizeof request);
  memcpy(&complete, &completed, sizeof complete);
  return 0;
}
int cuptiActivityEnable(int kind) {
  if (kind == fakeCupti.failEnable)
    return 7;
  return fakeCupti.enabled |= (uint64_t)1 << kind, 0;
}
int cuptiActivityDisable(int kind) { return fakeCupti.enabled &= ~((uint64_t)1 << kind), 0; }
int cuptiGetTimestamp(uint64_t *time) { return *time = base, 0; }
int cuptiGetResultString(int code, const char **text) {
  return *text = code == 7 ? "CUPTI_ERROR_INVALID_KIND" : "CUPTI_ERROR_UNKNOWN", 0;
}

int cuptiActivityPushExternalCorrelationId(int kind, uint64_t identifier) {
  if (kind != 5)
    return 1;
  ++fakeCupti.depth;
  if (fakeCupti.pushes < 64)
    fakeCupti.pushed[fakeCupti.pushes++] = identifier;
  return 0;
}
int cuptiActivityPopExternalCorrelationId(int kind, uint64_t *last) { return kind == 5 ? --fakeCupti.depth, 0 : 1; }

static uint8_t *put(uint8_t *at, int kind, int identifierKind, uint64_t identifier, uint32_t correlation,
                    uint64_t start, uint64_t end) {
  memset(at, 0xcd, sizeOf(kind));
  memcpy(at, &kind, 4);
  if (kind == 39) {
    memcpy(at + 4, &identifierKind, 4);
    memcpy(at + 8, &identifier, 8);
    memcpy(at + 16, &correlation, 4);
  } else if (kind == 10) {
    memcpy(at + 16, &start, 8);
    memcpy(at + 24, &end, 8);
    memcpy(at + 92, &correlation, 4);
  }
  return at + sizeOf(kind);
}

static void give(int first, int last, int withKernels, int withIdentifiers) {
  uint8_t *buffer, *at;
  size_t size, most;
  request(&buffer, &size, &most);
  ++fakeCupti.buffers;
  at = buffer;
  for (int i = first; i < last; ++i) {
    uint32_t correlation = 100 + i;
    if (withKernels) {
      at = put(at, 10, 0, 0, correlation, base + 1000 * i, base + 1000 * i + 100 + 10 * i);
      at = put(at, 10, 0, 0, 7, base, base + 1); // belongs to no launch
    }
    if (withIdentifiers) {
      at = put(at, 39, 3, 4711, correlation, 0, 0); // another tool's
      at = put(at, 39, 5, fakeCupti.pushed[i], correlation, 0, 0);
      at = put(at, 4, 0, 0, 0, 0, 0);
    }
  }
  complete(NULL, 0, buffer, size, at - buffer);
  --fakeCupti.buffers;
}

// Kernels may precede their identifiers and be in other buffers.
int cuptiActivityFlushAll(uint32_t flag) {
  ++fakeCupti.flushes;
  if (fakeCupti.stealsBuffers)
    return 0;
  give(0, fakeCupti.pushes, 1, 0);
  give(0, fakeCupti.pushes, 0, 1);
  give(0, 0, 0, 0);
  return 0;
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record) {
  uint8_t *next = buffer;
  if (*record) {
    int kind;
    memcpy(&kind, *record, 4);
    next = (uint8_t *)*record + sizeOf(kind);
  }
  if (next >= buffer + valid)
    return 12;
  return *record = next, 0;
}
