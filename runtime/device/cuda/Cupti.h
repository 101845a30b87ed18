// Declares the functions and records of CUPTI, NVIDIA's tracing library, that the runtime uses, by its ABI; private to
// this folder.
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
/// The kind of the runtime's identifiers. PyTorch's profiler uses the first two custom kinds.
inline constexpr int ownIdentifiers = 5;

/// The beginning of a kernel's record, equal from CUDA 12.0 to 13; more fields follow.
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

/// The identifier that was active at a driver call.
struct CorrelationRecord {
  int kind, identifierKind;
  uint64_t identifier;
  uint32_t correlation, reserved;
};
static_assert(sizeof(CorrelationRecord) == 24);

/// Versions of CUPTI with these records: from CUDA 12.0 to before CUDA 14.
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

/// Returns the library that the process has already loaded, such as PyTorch's, else one that is found. KPKG_CUPTI names
/// another library. Never unloaded.
Result<const Api *> open();
/// Converts CUPTI's code. Errors name the call, and have CUPTI's text.
Status check(const Api &api, Code code, const char *call);

} // namespace kpkg::cuda::cupti
#endif
