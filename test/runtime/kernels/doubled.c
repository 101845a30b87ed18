// Kernels in C of the conformance suite of devices, for the host. ConformanceKernels.ptx has them for GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../../../runtime/include/kpkg/kernel_abi.h"

// Computes y = 2 x for dense float vectors, 128 elements per block. Arguments: views x and y of rank 1.
int32_t doubled_blocks(const KpkgCpuCall *call, int64_t begin, int64_t end) {
  const float *x = (const float *)call->args[0];
  float *y = (float *)call->args[3];
  for (int64_t i = 128 * begin; i < 128 * end && i < call->args[1]; ++i)
    y[i] = 2 * x[i];
  return 0;
}

// Fails its assert 1.
int32_t failed_blocks(const KpkgCpuCall *call, int64_t begin, int64_t end) { return 1 + 1; }
