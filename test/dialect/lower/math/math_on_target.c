// Checks compiled elementary functions against the C library in wider precision.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#define _GNU_SOURCE
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define COUNT 4096

typedef void Function(const void *x, const void *y, void *result, int64_t n);
static long double rsqrtl(long double x) { return x == 0 ? copysignl(INFINITY, x) : 1 / sqrtl(x); }

#define FUNCTIONS(F)                                                                                                   \
  F(exp, 1.1) F(exp2, 1.1) F(log, 1) F(log2, 1) F(tanh, 3) F(erf, 1.1) F(sin, 1) F(cos, 1) F(rsqrt, 1.5)
#define DECLARE(name, limit) Function name##_f32, name##_f64;
FUNCTIONS(DECLARE)

static const struct Entry {
  const char *name;
  Function *narrow, *wide;
  long double (*exact)(long double);
  double limit;
} entries[] = {
#define ENTRY(name, limit) {#name, name##_f32, name##_f64, name##l, limit},
    FUNCTIONS(ENTRY)};

static double error(long double result, long double exact, int digits, int lowest, double largest) {
  if (isnan(exact))
    return isnan(result) ? 0 : INFINITY;
  if (fabsl(exact) > largest || isinf(result))
    return isinf(result) && signbit(result) == signbit(exact) && fabsl(exact) > largest * 0.999999 ? 0 : INFINITY;
  int exponent = exact == 0 ? lowest : ilogbl(exact);
  return fabsl(result - exact) / ldexpl(1, (exponent < lowest ? lowest : exponent) - digits + 1);
}

int main(void) {
  static float x32[COUNT], y32[COUNT];
  static double x64[COUNT], y64[COUNT];
  const double special[] = {0,       -0.0,    INFINITY, -INFINITY, NAN,     1,      -1,
                            DBL_MIN, DBL_MAX, -DBL_MAX, FLT_MIN,   FLT_MAX, 1e-310, 1e-40};
  uint64_t state = 1;
  for (int i = 0; i < COUNT; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint32_t pattern = state >> 32;
    double uniform = (state >> 11) * 0x1p-53 * 2 - 1;
    memcpy(&x32[i], &pattern, 4);
    memcpy(&x64[i], &state, 8);
    if (i % 3)
      x64[i] = uniform * (i % 3 == 1 ? 30 : 2), x32[i] = x64[i];
    if (i < (int)(sizeof special / sizeof *special))
      x64[i] = special[i], x32[i] = special[i];
  }
  int failures = 0;
  for (const struct Entry *e = entries; e != entries + sizeof entries / sizeof *entries; ++e) {
    e->narrow(x32, x32, y32, COUNT);
    e->wide(x64, x64, y64, COUNT);
    double worst32 = 0, worst64 = 0;
    for (int i = 0; i < COUNT; ++i) {
      worst32 = fmax(worst32, error(y32[i], e->exact(x32[i]), 24, -126, FLT_MAX));
      worst64 = fmax(worst64, error(y64[i], e->exact(x64[i]), 53, -1022, DBL_MAX));
    }
    if (!(worst32 <= e->limit && worst64 <= e->limit) && ++failures)
      printf("%s: %g ulp in f32, %g in f64\n", e->name, worst32, worst64);
  }
  return failures != 0;
}
