// Takes the place of the header of glibc 2.32: libstdc++'s headers read this variable, and Libstdcxx.cpp defines it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_TOOLS_MANYLINUX_INCLUDE_SYS_SINGLE_THREADED_H
#define KPKG_TOOLS_MANYLINUX_INCLUDE_SYS_SINGLE_THREADED_H

extern "C" __attribute__((visibility("hidden"))) char __libc_single_threaded;

#endif // KPKG_TOOLS_MANYLINUX_INCLUDE_SYS_SINGLE_THREADED_H
