// Runs the softmax kernel of IsaTest on an Arm machine or in an emulator, and checks the result.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/include/kpkg/kernel_abi.h"
#include <math.h>
#include <stdio.h>

extern int32_t softmax(const KpkgCpuCall *call, int64_t begin, int64_t end);
extern int32_t narrow(const KpkgCpuCall *call, int64_t begin, int64_t end);

static _Alignas(64) unsigned char scratch[1 << 16];

static int checkSoftmax(int64_t n) {
  float x[2][64], y[2][64];
  for (int row = 0; row < 2; ++row)
    for (int i = 0; i < 64; ++i)
      x[row][i] = sinf(row * 64 + i), y[row][i] = 7;
  int64_t args[10] = {(int64_t)x, 2, n, 64, 1, (int64_t)y, 2, n, 64, 1};
  KpkgCpuCall call = {args, {2, 1, 1}, scratch, 0, 0};
  if (softmax(&call, 0, 2))
    return 1;
  for (int row = 0; row < 2; ++row) {
    double sum = 0;
    for (int i = 0; i < n; ++i)
      sum += exp(x[row][i]);
    for (int i = 0; i < 64; ++i)
      if (fabs(y[row][i] - (i < n ? exp(x[row][i]) / sum : 7)) > 1e-6) {
        printf("softmax of %d elements: row %d element %d is %g\n", (int)n, row, i, y[row][i]);
        return 1;
      }
  }
  return 0;
}

// Checks y = bf16(f16(x) * f16(x)), where 1.5 and 3 are exact.
static int checkNarrow(void) {
  uint16_t x[5] = {0x3e00, 0x4200, 0x3e00, 0x4200, 0x3e00}, y[5] = {0};
  int64_t args[6] = {(int64_t)x, 5, 1, (int64_t)y, 5, 1};
  KpkgCpuCall call = {args, {1, 1, 1}, scratch, 0, 0};
  if (narrow(&call, 0, 1))
    return 1;
  for (int i = 0; i < 5; ++i)
    if (y[i] != (i % 2 ? 0x4110 : 0x4010)) {
      printf("narrow: element %d is %04x\n", i, y[i]);
      return 1;
    }
  return 0;
}

int main(void) {
  int64_t lengths[] = {1, 3, 4, 5, 16, 17, 63, 64};
  for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; ++i)
    if (checkSoftmax(lengths[i]))
      return 1;
  if (checkNarrow())
    return 1;
  puts("ok");
  return 0;
}
