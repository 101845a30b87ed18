# Writes OUT, a C++ file that holds the text of PAGE.
file(READ ${PAGE} text)
file(WRITE ${OUT} "// Made from std.k.\n#include \"compiler/check/Prelude.h\"\nconst std::string_view kpkg::compiler::preludeText = R\"prelude(${text})prelude\";\n")
