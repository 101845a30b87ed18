# Settings and target functions that every folder uses.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# Own code keeps its assertions in every build type: wrong IR must stop at the pass that made it.
string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

option(KPKG_WARNINGS_ARE_ERRORS "Stop at compiler warnings; for the compiler that tools/dev installs, since others warn of other things" OFF)
add_compile_options(-Wall -Wextra -Wno-unused-parameter)
if(KPKG_WARNINGS_ARE_ERRORS)
  # libstdc++'s own std::stable_sort calls a deprecated function.
  add_compile_options(-Werror -Wno-error=deprecated-declarations)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # ccache can reuse objects across a rebuilt precompiled header only when it carries no time stamp.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  add_link_options(-fuse-ld=lld)
endif()
# With `thread`, tools/ci/thread_suppressions hides how tasks of oneTBB, which is not instrumented, are handed over.
set(KPKG_SANITIZE "" CACHE STRING "Build everything with these sanitizers: thread, or address,undefined")
if(KPKG_SANITIZE)
  add_compile_options(-fsanitize=${KPKG_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${KPKG_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # DLPack's and CUPTI's structs are mirrored, so that their functions have other types on the two sides.
    add_compile_options(-fno-sanitize=function)
  endif()
endif()
option(KPKG_FUZZ "Build the fuzz targets, and everything with AddressSanitizer, UndefinedBehaviorSanitizer and coverage for them (needs Clang)" OFF)
if(KPKG_FUZZ)
  # LLVM has no run-time type information, which `vptr` needs; for `function` see above. Tracing comparisons would halve
  # the runs, and mutators and dictionaries know the words.
  set(KPKG_FUZZ_SANITIZERS address,undefined)
  add_compile_options(-fsanitize=fuzzer-no-link,${KPKG_FUZZ_SANITIZERS} -fno-sanitize=vptr,function -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${KPKG_FUZZ_SANITIZERS} -fno-sanitize=vptr,function)
endif()
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Clones in other folders share the cache: paths below the source folder are hashed relative to the build folder.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

include_directories(${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})

# kpkg_library(name SOURCES... [LINK libs...]): a static library that does not see MLIR.
function(kpkg_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
endfunction()

# kpkg_unit_test(name SOURCES... [LINK libs...]): a GoogleTest program, run by ctest. With MLIR, call kpkg_use_mlir(name SHARED) after it.
# Tests named Timing.* assert times: `tools/dev timing` runs them on an idle machine, ctest does not.
function(kpkg_unit_test name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name} --gtest_filter=-Timing.*)
  set_property(GLOBAL APPEND PROPERTY KPKG_UNIT_TESTS ${name})
endfunction()

# kpkg_fuzz_target(name SOURCES... [LINK libs...]): a libFuzzer program, with KPKG_FUZZ only.
function(kpkg_fuzz_target name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  if(KPKG_FUZZ)
    add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
    target_link_libraries(${name} PRIVATE ${ARG_LINK})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  endif()
endfunction()
