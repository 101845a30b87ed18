// The functions and records of CUPTI, NVIDIA's tracing library, that the runtime uses, by its ABI; private to this
// folder.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_CUPTI_H
#define KPKG_CUDA_CUPTI_H

#include <kpkg/result.hpp>

#include <cstddef>
#include <cstdint>

namespace kpkg::cuda::cupti {

using Code = int;
inline constexpr Code otherSubscriber = 39;

/// Kinds of records.
enum Kind : int { Driver = 4, ConcurrentKernel = 10, ExternalCorrelation = 39 };
/// The kind of identifiers that are the runtime's: PyTorch's profiler uses the first two custom ones.
inline constexpr int ownIdentifiers = 5;

/// The beginning of a record of a kernel: the same from CUDA 12.0 to 13; more follows.
struct KernelRecord {
  int kind;
  uint8_t caches[2];
  uint16_t registers;
  int carveouts[2];
  uint64_t start, end, completed; ///< in nanoseconds
  uint32_t device, context, stream;
  int32_t grid[3], block[3], staticShared, dynamicShared;
  uint32_t localPerThread, localTotal;
  uint32_t correlation;
};
static_assert(offsetof(KernelRecord, start) == 16 && offsetof(KernelRecord, device) == 40 &&
              offsetof(KernelRecord, correlation) == 92);

/// Says which identifier was in force at a call of the driver.
struct CorrelationRecord {
  int kind, identifierKind;
  uint64_t identifier;
  uint32_t correlation, reserved;
};
static_assert(sizeof(CorrelationRecord) == 24);

/// Versions of CUPTI whose records these are: that of CUDA 12.0, and below that of CUDA 14.
inline constexpr uint32_t firstVersion = 18, endVersion = 140000;

using BufferRequested = void (*)(uint8_t **buffer, size_t *size, size_t *most);
using BufferCompleted = void (*)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

struct Api {
  Code (*version)(uint32_t *) = nullptr;
  Code (*subscribe)(void **, void (*)(), void *) = nullptr;
  Code (*unsubscribe)(void *) = nullptr;
  Code (*registerBuffers)(BufferRequested, BufferCompleted) = nullptr;
  Code (*enable)(int) = nullptr;
  Code (*disable)(int) = nullptr;
  Code (*flush)(uint32_t) = nullptr;
  Code (*nextRecord)(uint8_t *, size_t, void **) = nullptr;
  Code (*pushIdentifier)(int, uint64_t) = nullptr;
  Code (*popIdentifier)(int, uint64_t *) = nullptr;
  Code (*timestamp)(uint64_t *) = nullptr;
  Code (*errorText)(Code, const char **) = nullptr;
};

/// The library that is in the process already, as PyTorch's, else one that is found; KPKG_CUPTI names another. Never
/// unloaded.
Result<const Api *> open();
/// The failure names the call and CUPTI's text for the code.
Status check(const Api &api, Code code, const char *call);

} // namespace kpkg::cuda::cupti
#endif
