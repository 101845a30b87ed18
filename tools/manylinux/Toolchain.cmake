# Compiles and links for Linux with glibc 2.28 or later, by zig, which has the stubs of each glibc and its own libc++.
# KPKG_ZIG names zig, KPKG_ARCH the architecture: x86_64 or aarch64.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${KPKG_ARCH})
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES KPKG_ZIG KPKG_ARCH KPKG_LLVM_PREFIX)
set(CMAKE_CROSSCOMPILING TRUE) # on a machine of this architecture too: nothing built here runs here
set(target ${KPKG_ARCH}-linux-gnu.2.28)
set(CMAKE_C_COMPILER ${KPKG_ZIG} cc -target ${target})
set(CMAKE_CXX_COMPILER ${KPKG_ZIG} c++ -target ${target})
set(CMAKE_AR ${KPKG_LLVM_PREFIX}/bin/llvm-ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${KPKG_LLVM_PREFIX}/bin/llvm-ranlib CACHE FILEPATH "")
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
