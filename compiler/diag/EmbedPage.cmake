# Turns a page of docs/ into a C++ constant. Run with -DPAGE=... -DNAME=... -DOUT=...
file(READ ${PAGE} text)
string(LENGTH "${text}" length)
# Pieces, as compilers limit the length of one literal.
set(code "// Generated from a page of docs/.\n#include <string_view>\nextern const std::string_view ${NAME};\nconst std::string_view ${NAME} =\n")
set(at 0)
while(at LESS length)
  string(SUBSTRING "${text}" ${at} 4000 piece)
  string(APPEND code "R\"kpkg(${piece})kpkg\"\n")
  math(EXPR at "${at} + 4000")
endwhile()
file(WRITE ${OUT} "${code};\n")
