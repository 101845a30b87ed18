// Checks an assembler's output against its input.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/nvptx/CheckCubin.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Object/ELF.h"

using namespace llvm;

namespace kpkg::compiler {

using Elf = object::ELFFile<object::ELF64LE>;

/// Returns the functions that have code in `file`.
static Expected<StringSet<>> definedFunctions(const Elf &file) {
  StringSet<> names;
  auto sections = file.sections();
  if (!sections)
    return sections.takeError();
  for (const Elf::Elf_Shdr &section : *sections) {
    if (section.sh_type != ELF::SHT_SYMTAB)
      continue;
    auto symbols = file.symbols(&section);
    if (!symbols)
      return symbols.takeError();
    auto strings = file.getStringTableForSymtab(section);
    if (!strings)
      return strings.takeError();
    for (const Elf::Elf_Sym &symbol : *symbols) {
      if (symbol.getType() != ELF::STT_FUNC || symbol.st_shndx == ELF::SHN_UNDEF || symbol.st_size == 0)
        continue;
      auto name = symbol.getName(*strings);
      if (!name)
        return name.takeError();
      names.insert(*name);
    }
  }
  return names;
}

Error checkCubin(StringRef cubin, StringRef ptx) {
  auto file = Elf::create(cubin);
  if (!file)
    return createStringError("its output of %zu bytes is no ELF file: %s", cubin.size(),
                             toString(file.takeError()).c_str());
  if (!file->getHeader().checkMagic() || file->getHeader().e_machine != ELF::EM_CUDA)
    return createStringError("its output of %zu bytes is no machine code for CUDA", cubin.size());
  auto functions = definedFunctions(*file);
  if (!functions)
    return createStringError("its output is damaged: %s", toString(functions.takeError()).c_str());
  StringRef rest = ptx;
  constexpr StringLiteral entry = ".entry ";
  for (size_t at = rest.find(entry); at != StringRef::npos; at = rest.find(entry)) {
    rest = rest.drop_front(at + entry.size());
    StringRef name = rest.take_until([](char c) { return c == '(' || isspace(static_cast<unsigned char>(c)); });
    if (!functions->contains(name))
      return createStringError("its output lacks the kernel %s", name.str().c_str());
  }
  return Error::success();
}

} // namespace kpkg::compiler
