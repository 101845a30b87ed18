// Objects that the loader refuses; -D selects one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#if defined(UNDEFINED)
extern int missing(void);
int kernel(void) { return missing(); }
#elif defined(VARIABLE)
static int counter;
int kernel(void) { return __atomic_fetch_add(&counter, 1, 0); }
#elif defined(INITIALISED_VARIABLE)
static int counter = 3;
int kernel(void) { return __atomic_fetch_add(&counter, 1, 0); }
#elif defined(POINTER)
static const char *const names[] = {"a", "b"};
const char *const *kernel(void) { return names; }
#elif defined(INITIALISER)
__attribute__((constructor)) static void start(void) { __asm__ volatile("nop"); }
int kernel(void) { return 0; }
#elif defined(THREAD_LOCAL)
static _Thread_local int counter;
int *kernel(void) { return &counter; }
#elif defined(LONG_NAME)
#define EIGHT(text) text text text text text text text text
int kernel(void) __asm__(EIGHT(EIGHT(EIGHT("eightfold")))); // 4,608 bytes
int kernel(void) { return 7; }
#else
int kernel(void) { return 7; }
#endif
