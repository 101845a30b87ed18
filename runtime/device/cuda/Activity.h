// Times of kernels as the GPU itself takes them, recorded by CUPTI, NVIDIA's tracing library.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_ACTIVITY_H
#define KPKG_CUDA_ACTIVITY_H

#include <kpkg/result.hpp>

#include <cstdint>
#include <string>
#include <unordered_map>

namespace kpkg::cuda {

/// The version of the library in words, or why there is none that could be used. Records nothing.
Result<std::string> activityLibrary();

/// Starts the one recording of the process, of all GPUs. The error says why there is none: no library, an unknown
/// version, or another tool that uses CUPTI, such as PyTorch's profiler or Nsight, whose recording must not be
/// disturbed.
Status startActivity();

/// Kernels that this thread launches in its scope have this identifier, which must not be 0.
class ActivityScope {
public:
  explicit ActivityScope(uint64_t identifier);
  ~ActivityScope();
  ActivityScope(const ActivityScope &) = delete;
  ActivityScope &operator=(const ActivityScope &) = delete;
};

struct KernelTime {
  int64_t startNs = 0;    ///< after startActivity; of the first kernel with the identifier
  int64_t durationNs = 0; ///< of all of them together
};

/// Ends the recording and gives the kernels by identifier. Their streams must have been waited for. What another tool
/// took over meanwhile is missing.
std::unordered_map<uint64_t, KernelTime> stopActivity();

} // namespace kpkg::cuda
#endif
