// Checks a compiled dot (the function `dot` of DotModule.h) against a triple loop, for all layouts, whole and clipped.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct DotArgument {
  const void *base;
  int64_t stride[2], begin[2], end[2];
};
void dot(const struct DotArgument *a, const struct DotArgument *b, void *acc, void *scratch);

#if defined(ELEMENT_double)
typedef double Element, Acc;
static Element toElement(double value) { return value; }
#elif defined(ELEMENT_float)
typedef float Element, Acc;
static Element toElement(double value) { return (float)value; }
#else
typedef uint16_t Element;
typedef float Acc;
static Element toElement(double value) {
  float single = (float)value;
  uint32_t bits;
  memcpy(&bits, &single, 4);
  return bits >> 16;
}
#endif

static Element a[4 * M * K], b[4 * K * N];
static Acc acc[M * N];
static char scratch[SCRATCH] __attribute__((aligned(64)));

static double valueAt(int64_t i, int64_t j) { return (double)((i * 7 + j * 3) % 15 - 7) / 8; }

int main(void) {
  int failures = 0;
  for (int layout = 0; layout < 8; ++layout) {
    int64_t rows = layout & 4 ? M - 2 : M, columns = layout & 4 ? N - 3 : N, depth = layout & 4 ? K - 1 : K;
    struct DotArgument x = {a, {layout & 1 ? 1 : K, layout & 1 ? M : 1}, {0, 0}, {rows, depth}};
    struct DotArgument y = {b, {layout & 2 ? 1 : N, layout & 2 ? K : 1}, {0, 0}, {depth, columns}};
    for (int64_t i = 0; i < M; ++i)
      for (int64_t k = 0; k < K; ++k)
        a[i * x.stride[0] + k * x.stride[1]] = toElement(valueAt(i, k));
    for (int64_t k = 0; k < K; ++k)
      for (int64_t j = 0; j < N; ++j)
        b[k * y.stride[0] + j * y.stride[1]] = toElement(valueAt(k, j));
    for (int64_t i = 0; i < M * N; ++i)
      acc[i] = i % 3;
    memset(scratch, 0xff, sizeof scratch);
    dot(&x, &y, acc, scratch);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        double expected = (i * N + j) % 3;
        for (int64_t k = 0; k < depth; ++k)
          expected += valueAt(i, k) * valueAt(k, j);
        if (acc[i * N + j] != expected && ++failures < 4)
          printf("layout %d: element %d, %d is %g, expected %g\n", layout, (int)i, (int)j, (double)acc[i * N + j],
                 expected);
      }
  }
  return failures != 0;
}
