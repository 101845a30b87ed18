# ANTLR: finds the tool and the C++ runtime, checks that they fit together, and generates parsers.
# A tool of version T works with a runtime of version R when both are in 4.7 .. 4.9 (one format of tables), or when both
# have the same 4.x of 4.10 and later. Where a system's two packages do not fit, give the tool: -DKPKG_ANTLR_JAR=antlr-4.x-complete.jar.
set(KPKG_ANTLR_JAR "" CACHE FILEPATH "ANTLR tool as a jar, in place of the command antlr4")
find_path(KPKG_ANTLR_INCLUDE antlr4-runtime.h PATH_SUFFIXES antlr4-runtime)
find_library(KPKG_ANTLR_LIBRARY NAMES libantlr4-runtime.a antlr4-runtime)
if(NOT KPKG_ANTLR_INCLUDE OR NOT KPKG_ANTLR_LIBRARY)
  message(FATAL_ERROR "ANTLR's C++ runtime is missing: install libantlr4-runtime-dev")
endif()
if(KPKG_ANTLR_JAR)
  find_package(Java REQUIRED COMPONENTS Runtime)
  set(KPKG_ANTLR_COMMAND ${Java_JAVA_EXECUTABLE} -jar ${KPKG_ANTLR_JAR})
else()
  find_program(KPKG_ANTLR_PROGRAM antlr4)
  if(NOT KPKG_ANTLR_PROGRAM)
    message(FATAL_ERROR "the command antlr4 is missing: install it, or give -DKPKG_ANTLR_JAR")
  endif()
  set(KPKG_ANTLR_COMMAND ${KPKG_ANTLR_PROGRAM})
endif()

# The runtime tells its version in Version.h from 4.10 on; before that, only its package does.
if(NOT DEFINED KPKG_ANTLR_VERSIONS_FIT)
  execute_process(COMMAND ${KPKG_ANTLR_COMMAND} OUTPUT_VARIABLE banner ERROR_VARIABLE banner)
  string(REGEX MATCH "Version 4\\.([0-9]+)" _ "${banner}")
  set(tool ${CMAKE_MATCH_1})
  set(runtime 9)
  if(EXISTS ${KPKG_ANTLR_INCLUDE}/Version.h)
    file(STRINGS ${KPKG_ANTLR_INCLUDE}/Version.h line REGEX "define +ANTLRCPP_VERSION_MINOR")
    string(REGEX MATCH "[0-9]+" runtime "${line}")
  endif()
  if(NOT ((tool LESS 10 AND runtime LESS 10) OR tool EQUAL runtime))
    message(FATAL_ERROR "the ANTLR tool is 4.${tool}, its C++ runtime 4.${runtime}: they do not fit together. "
                        "Give a tool of the runtime's version: -DKPKG_ANTLR_JAR=antlr-4.${runtime}-complete.jar")
  endif()
  set(KPKG_ANTLR_VERSIONS_FIT ON CACHE INTERNAL "")
endif()

# kpkg_antlr_grammar(name PACKAGE ns LEXER L.g4 PARSER P.g4): sets name_DIR and name_SOURCES (L.cpp, P.cpp) where it is called.
function(kpkg_antlr_grammar name)
  cmake_parse_arguments(ARG "" "PACKAGE;LEXER;PARSER" "" ${ARGN})
  set(dir ${CMAKE_CURRENT_BINARY_DIR}/${name})
  set(generate ${KPKG_ANTLR_COMMAND} -Dlanguage=Cpp -no-listener -no-visitor -package ${ARG_PACKAGE} -Xexact-output-dir -lib ${dir} -o ${dir})
  cmake_path(GET ARG_LEXER STEM lexer)
  cmake_path(GET ARG_PARSER STEM parser)
  add_custom_command(OUTPUT ${dir}/${lexer}.cpp ${dir}/${lexer}.h ${dir}/${lexer}.tokens
    COMMAND ${generate} ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_LEXER} DEPENDS ${ARG_LEXER} VERBATIM)
  add_custom_command(OUTPUT ${dir}/${parser}.cpp ${dir}/${parser}.h
    COMMAND ${generate} ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_PARSER} DEPENDS ${ARG_PARSER} ${dir}/${lexer}.tokens VERBATIM)
  set(${name}_DIR ${dir} PARENT_SCOPE)
  set(${name}_SOURCES ${dir}/${lexer}.cpp ${dir}/${lexer}.h ${dir}/${parser}.cpp ${dir}/${parser}.h PARENT_SCOPE)
endfunction()
