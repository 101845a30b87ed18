# Compiles the Python module with GCC's C++ library, since its exceptions cross to nanobind-backend, and links libstdc++.so.6.
# The headers are those of Debian 12. Libstdcxx.cpp has the functions that the library of GCC 8 lacks.
target_sources(kpkg_native PRIVATE ${CMAKE_SOURCE_DIR}/tools/manylinux/Libstdcxx.cpp)
set(triple ${KPKG_ARCH}-linux-gnu)
file(GLOB libstdcxx /usr/lib/gcc*/${triple}/12/libstdc++.so)
file(GLOB unwinder /usr/${triple}/lib/libgcc_s.so.1 /lib/${triple}/libgcc_s.so.1) # a path: for the name, zig takes an unwinder of its own
foreach(folder /usr/include /usr/${triple}/include)
  if(EXISTS ${folder}/${triple}/c++/12/bits/c++config.h)
    target_include_directories(kpkg_native PRIVATE ${folder}/${triple}/c++/12)
  elseif(EXISTS ${folder}/c++/12/${triple}/bits/c++config.h)
    target_include_directories(kpkg_native PRIVATE ${folder}/c++/12/${triple})
  endif()
endforeach()
target_include_directories(kpkg_native PRIVATE ${CMAKE_SOURCE_DIR}/tools/manylinux/include /usr/include/c++/12) # before those of the C library, which these include
target_compile_options(kpkg_native PRIVATE -nostdinc++)
target_link_options(kpkg_native PRIVATE -nostdlib++)
target_link_libraries(kpkg_native PRIVATE ${libstdcxx} ${unwinder})
