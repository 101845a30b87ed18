# kpkg._nodes_<release>: autograd's nodes and direct calls in C++ for the PyTorch in `torch_folder`. Its libraries are loaded already when this one is; empty ones with their
# names are enough to link.
file(STRINGS ${torch_folder}/version.py release REGEX "^__version__ = ")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" release "${release}")
string(REPLACE "." "_" release "${release}")
if(KPKG_PYTHON)
  set(Python_EXECUTABLE ${KPKG_PYTHON})
endif()
find_package(Python 3.10 COMPONENTS Interpreter Development.Module QUIET)
if(NOT release OR NOT Python_FOUND)
  message(STATUS "kpkg: no release in ${torch_folder}/version.py or no Python with headers, so no nodes in C++")
  return()
endif()

file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/Empty.c CONTENT "")
foreach(name c10 torch_python)
  add_library(kpkg_${name}_stand_in SHARED ${CMAKE_CURRENT_BINARY_DIR}/Empty.c)
  set_target_properties(kpkg_${name}_stand_in PROPERTIES OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
endforeach()

Python_add_library(kpkg_nodes MODULE WITH_SOABI Direct.cpp Nodes.cpp)
target_include_directories(kpkg_nodes SYSTEM PRIVATE ${torch_folder}/include ${torch_folder}/include/torch/csrc/api/include)
target_compile_definitions(kpkg_nodes PRIVATE KPKG_NODES_MODULE="_nodes_${release}" KPKG_NODES_INIT=PyInit__nodes_${release})
target_link_options(kpkg_nodes PRIVATE -Wl,--no-as-needed -Wl,-z,lazy)
target_link_libraries(kpkg_nodes PRIVATE kpkg kpkg_torch_stand_in kpkg_c10_stand_in kpkg_torch_python_stand_in)
set_target_properties(kpkg_nodes PROPERTIES
  OUTPUT_NAME _nodes_${release} LIBRARY_OUTPUT_DIRECTORY ${KPKG_PYTHON_PACKAGE_DIR}
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN" CXX_VISIBILITY_PRESET hidden)
install(TARGETS kpkg_nodes LIBRARY DESTINATION kpkg COMPONENT python)
