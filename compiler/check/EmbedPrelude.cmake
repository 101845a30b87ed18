# Writes OUT, a C++ file that holds the joined texts of PAGES, a list separated by commas.
string(REPLACE "," ";" pages "${PAGES}")
set(text "")
foreach(page IN LISTS pages)
  file(READ ${page} part)
  string(APPEND text "${part}\n\n")
endforeach()
file(WRITE ${OUT} "// Made from kernels_src/std.\n#include \"compiler/check/Prelude.h\"\nconst std::string_view kpkg::compiler::preludeText = R\"prelude(${text})prelude\";\n")
