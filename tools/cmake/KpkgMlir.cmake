# LLVM and MLIR: where they are, one precompiled header, and how programs link them.
if(NOT DEFINED KPKG_LLVM_PREFIX)
  set(KPKG_LLVM_PREFIX /usr/lib/llvm-22)
endif()
find_package(MLIR REQUIRED CONFIG HINTS ${KPKG_LLVM_PREFIX}/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
set(KPKG_MLIR_INCLUDES ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})

# One precompiled header for all code that sees MLIR: without it the front end costs 13 s a file.
add_library(kpkg_mlir_pch STATIC ${CMAKE_SOURCE_DIR}/tools/cmake/MlirPch.cpp)
target_include_directories(kpkg_mlir_pch SYSTEM PUBLIC ${KPKG_MLIR_INCLUDES})
target_precompile_headers(kpkg_mlir_pch PRIVATE ${CMAKE_SOURCE_DIR}/tools/cmake/MlirPch.h)

# kpkg_mlir_library(name SOURCES... [LINK own libs...] [DEPENDS tablegen targets...]): a static library of MLIR code.
# It does not link MLIR itself: the program that uses it does, through kpkg_use_mlir.
function(kpkg_mlir_library name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} SYSTEM PUBLIC ${KPKG_MLIR_INCLUDES})
  target_precompile_headers(${name} REUSE_FROM kpkg_mlir_pch)
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# kpkg_use_mlir(program SHARED|STATIC): links LLVM and MLIR. SHARED links in 0.3 s and suits test tools; STATIC starts at once and
# needs nothing installed, which is what users get.
function(kpkg_use_mlir name mode)
  target_include_directories(${name} SYSTEM PRIVATE ${KPKG_MLIR_INCLUDES})
  target_precompile_headers(${name} REUSE_FROM kpkg_mlir_pch)
  # The header was compiled with -fPIC; CMake would compile a program with -fPIE, which refuses it.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  if(mode STREQUAL "STATIC")
    file(GLOB archives ${KPKG_LLVM_PREFIX}/lib/libMLIR*.a ${KPKG_LLVM_PREFIX}/lib/libLLVM*.a)
    list(FILTER archives EXCLUDE REGEX "CAPI|ExecutionEngine|Test|Runner|runner|mlir_")
    target_link_libraries(${name} PRIVATE -Wl,--start-group ${archives} -Wl,--end-group z.a zstd m dl pthread)
    target_link_options(${name} PRIVATE -Wl,--gc-sections)
  else()
    target_link_libraries(${name} PRIVATE MLIR LLVM)
  endif()
endfunction()
