// Defines what libstdc++'s headers of GCC 12 call and the libstdc++.so.6 and the glibc of manylinux_2_28 lack.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <new>
#include <sys/single_threaded.h>

namespace std {
__attribute__((visibility("hidden"))) void __throw_bad_array_new_length() { throw bad_array_new_length(); }
} // namespace std

char __libc_single_threaded = 0; // the process may have threads, so reference counts are atomic
