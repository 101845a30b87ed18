// Kernels in C that mimic the compiler's output, for the runtime's tests.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../../../runtime/include/kpkg/kernel_abi.h"

// Computes y[r, :] = alpha * x[r, :], one row per block, for views of rank 2 with last stride 1.
int32_t scale_rows(const KpkgCpuCall *call, int64_t begin, int64_t end) {
  const int64_t *args = call->args;
  const float *x = (const float *)args[0];
  float *y = (float *)args[5];
  union {
    int32_t bits;
    float value;
  } alpha = {(int32_t)args[10]};
  for (int64_t row = begin; row < end; ++row)
    for (int64_t i = 0; i < args[2]; ++i)
      y[row * args[8] + i] = alpha.value * x[row * args[3] + i];
  return 0;
}

// Computes the same for any strides.
int32_t scale_rows_any(const KpkgCpuCall *call, int64_t begin, int64_t end) {
  const int64_t *args = call->args;
  const float *x = (const float *)args[0];
  float *y = (float *)args[5];
  union {
    int32_t bits;
    float value;
  } alpha = {(int32_t)args[10]};
  for (int64_t row = begin; row < end; ++row)
    for (int64_t i = 0; i < args[2]; ++i)
      y[row * args[8] + i * args[9]] = alpha.value * x[row * args[3] + i * args[4]];
  return 0;
}

// Persistent kernel: y[i] = i / 8, computed in blocks of 8 elements through scratch.
int64_t number_tiles$tiles(const int64_t *args) { return (args[1] + 7) / 8; }
int32_t number_tiles(const KpkgCpuCall *call, int64_t begin, int64_t end) {
  int64_t *y = (int64_t *)call->args[0];
  volatile int64_t *scratch = (volatile int64_t *)call->scratch;
  if ((uintptr_t)scratch % KPKG_SCRATCH_ALIGNMENT != 0 || call->grid[0] != number_tiles$tiles(call->args))
    return 2;
  for (int64_t tile = begin; tile < end; ++tile) {
    for (int i = 0; i < 8; ++i)
      scratch[i] = tile;
    for (int64_t i = 8 * tile; i < 8 * tile + 8 && i < call->args[1]; ++i)
      y[i * call->args[2]] = scratch[i % 8];
  }
  return 0;
}

// Prints each block's number with format 0, and fails assert 1 in block 3.
int32_t complain(const KpkgCpuCall *call, int64_t begin, int64_t end) {
  for (int64_t block = begin; block < end; ++block) {
    uint64_t value = (uint64_t)block;
    call->print(call->printContext, 0, &value, 1);
    if (block == 3)
      return 1 + 1;
  }
  return 0;
}

// Computes x *= alpha, one row per block.
int32_t scale_in_place(const KpkgCpuCall *call, int64_t begin, int64_t end) {
  const int64_t *args = call->args;
  float *x = (float *)args[0];
  union {
    int32_t bits;
    float value;
  } alpha = {(int32_t)args[5]};
  for (int64_t row = begin; row < end; ++row)
    for (int64_t i = 0; i < args[2]; ++i)
      x[row * args[3] + i * args[4]] *= alpha.value;
  return 0;
}
