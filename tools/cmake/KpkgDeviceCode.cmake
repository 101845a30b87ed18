# kpkg_device_code(target source): clang's PTX of `source` for every GPU from sm_80 on, as the string literal <name>.ptx.inc that files of `target` include.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND NOT CMAKE_CROSSCOMPILING)
  set(KPKG_DEVICE_COMPILER ${CMAKE_CXX_COMPILER})
else()
  find_program(KPKG_DEVICE_COMPILER NAMES clang++-22 clang++ REQUIRED)
endif()
function(kpkg_device_code target source)
  string(REGEX REPLACE "\\.device\\.cpp$" ".ptx" ptx ${source})
  set(ptx ${CMAKE_CURRENT_BINARY_DIR}/${ptx})
  add_custom_command(
    OUTPUT ${ptx}.inc
    COMMAND ${KPKG_DEVICE_COMPILER} --target=nvptx64-nvidia-cuda -march=sm_80 --cuda-feature=+ptx70 -std=c++20 -O2
            -ffreestanding -nogpulib -I${CMAKE_SOURCE_DIR} -S ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${ptx}
    COMMAND ${CMAKE_COMMAND} -DTEXT=${ptx} -DLITERAL=${ptx}.inc -P ${CMAKE_SOURCE_DIR}/tools/cmake/AsLiteral.cmake
    DEPENDS ${ARGN} ${source} ${CMAKE_SOURCE_DIR}/tools/cmake/AsLiteral.cmake VERBATIM)
  target_sources(${target} PRIVATE ${ptx}.inc)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
endfunction()
