# What find_package(kpkg), which gives kpkg::kpkg, and pkg-config read: in the build tree, in a prefix (component `runtime`),
# and in the Python package (component `python`).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# All of these paths are relative to the file, so that a prefix or a Python package may be moved.
# write_pkg_config(file includedir libdir libs): writes kpkg.pc with these values of its variables and of `Libs`.
function(write_pkg_config file includedir libdir libs)
  configure_file(${CMAKE_CURRENT_SOURCE_DIR}/kpkg.pc.in ${file} @ONLY)
endfunction()
set(rpath "-Wl,-rpath,\${libdir}") # where the loader does not search by itself
set(version_file ${CMAKE_BINARY_DIR}/lib/cmake/kpkg/kpkg-config-version.cmake)
write_basic_package_version_file(${version_file} COMPATIBILITY SameMinorVersion)

# A prefix.
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/kpkg)
set(pkg_config_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(TARGETS kpkg kpkg_headers EXPORT kpkg-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/runtime/include/kpkg DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT runtime)
install(EXPORT kpkg-targets NAMESPACE kpkg:: FILE kpkg-config.cmake DESTINATION ${config_folder} COMPONENT runtime)
install(FILES ${version_file} DESTINATION ${config_folder} COMPONENT runtime)
foreach(folder INCLUDEDIR LIBDIR)
  file(RELATIVE_PATH ${folder} ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_FULL_${folder}})
endforeach()
write_pkg_config(${CMAKE_CURRENT_BINARY_DIR}/prefix/kpkg.pc "\${pcfiledir}/${INCLUDEDIR}" "\${pcfiledir}/${LIBDIR}" "-lkpkg")
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/prefix/kpkg.pc DESTINATION ${pkg_config_folder} COMPONENT runtime)

# The Python package, whose library has no second name for linkers.
get_target_property(soversion kpkg SOVERSION)
install(TARGETS kpkg kpkg_headers EXPORT kpkg-python-targets LIBRARY DESTINATION kpkg COMPONENT python NAMELINK_SKIP
        INCLUDES DESTINATION kpkg/include)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/runtime/include/kpkg DESTINATION kpkg/include COMPONENT python)
install(EXPORT kpkg-python-targets NAMESPACE kpkg:: FILE kpkg-config.cmake DESTINATION kpkg/cmake COMPONENT python)
install(FILES ${version_file} DESTINATION kpkg/cmake COMPONENT python)
write_pkg_config(${CMAKE_CURRENT_BINARY_DIR}/python/kpkg.pc "\${pcfiledir}/../include" "\${pcfiledir}/.."
                 "-l:libkpkg.so.${soversion} ${rpath}")
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/python/kpkg.pc DESTINATION kpkg/pkgconfig COMPONENT python)

# The build tree.
export(EXPORT kpkg-targets NAMESPACE kpkg:: FILE ${CMAKE_BINARY_DIR}/lib/cmake/kpkg/kpkg-config.cmake)
write_pkg_config(${CMAKE_BINARY_DIR}/lib/pkgconfig/kpkg.pc ${CMAKE_SOURCE_DIR}/runtime/include "\${pcfiledir}/.." "-lkpkg ${rpath}")
file(MAKE_DIRECTORY ${KPKG_PYTHON_PACKAGE_DIR})
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/runtime/include ${KPKG_PYTHON_PACKAGE_DIR}/include SYMBOLIC)
file(CREATE_LINK ${CMAKE_BINARY_DIR}/lib/cmake/kpkg ${KPKG_PYTHON_PACKAGE_DIR}/cmake SYMBOLIC)
file(CREATE_LINK ${CMAKE_BINARY_DIR}/lib/pkgconfig ${KPKG_PYTHON_PACKAGE_DIR}/pkgconfig SYMBOLIC)
