# kpkg_host_object(name source [FLAGS...]): a shared object as the compiler makes host objects, for tests of the runtime.
# Clang and lld make them, whatever compiles the runtime: the loader is tested on files of the linker that packages use.
include(KpkgDeviceCode)
function(kpkg_host_object name source)
  add_custom_command(
    OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}
    COMMAND ${KPKG_DEVICE_COMPILER} -x c -shared -fPIC -O2 -nostdlib -ffreestanding -fno-stack-protector
            -fno-asynchronous-unwind-tables -fuse-ld=lld ${ARGN} -o ${CMAKE_CURRENT_BINARY_DIR}/${name}
            ${CMAKE_CURRENT_SOURCE_DIR}/${source}
    DEPENDS ${source} VERBATIM)
endfunction()
