// Measures kernel times on the GPU with CUPTI, NVIDIA's tracing library.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_ACTIVITY_H
#define KPKG_CUDA_ACTIVITY_H

#include <kpkg/result.hpp>

#include <cstdint>
#include <string>
#include <unordered_map>

namespace kpkg::cuda {

/// Returns the version of the library in words, or an error if none is usable. Records nothing.
Result<std::string> activityLibrary();

/// Starts the process' only recording, for all GPUs. Errors are: no library, an unknown version, or another tool that
/// uses CUPTI, such as PyTorch's profiler or Nsight, whose recording must not be disturbed.
Status startActivity();

/// Gives kernels that this thread launches in the scope this identifier, which must not be 0.
class ActivityScope {
public:
  explicit ActivityScope(uint64_t identifier);
  ~ActivityScope();
  ActivityScope(const ActivityScope &) = delete;
  ActivityScope &operator=(const ActivityScope &) = delete;
};

struct KernelTime {
  int64_t startNs = 0;    ///< after startActivity; of the first kernel with the identifier
  int64_t durationNs = 0; ///< sum over all of them
};

/// Ends the recording, and returns the kernels by identifier. The caller must have waited for their streams. Records
/// that another tool took over meanwhile are missing.
std::unordered_map<uint64_t, KernelTime> stopActivity();

} // namespace kpkg::cuda
#endif
