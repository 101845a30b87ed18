// Reads instructions and the line table of a cubin.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/nvptx/LocalMemory.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/DebugInfo/DWARF/DWARFContext.h"
#include "llvm/DebugInfo/DWARF/DWARFDebugLine.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <map>

using namespace llvm;

namespace kpkg::compiler {

namespace {

using Elf = object::ELFFile<object::ELF64LE>;

/// Instructions since sm_70 have 16 bytes. The opcode is in the low bits, and the size of an access in bits 73 to 75.
constexpr size_t instructionBytes = 16;
constexpr unsigned opcodeMask = 0xfff;
constexpr unsigned storeLocal = 0x387; // STL
constexpr unsigned loadLocal = 0x983;  // LDL
/// Bytes by the field of the size: 8 bits without and with sign, 16 bits the same, 32, 64, 128.
constexpr unsigned accessBytes[] = {1, 1, 2, 2, 4, 8, 16, 0};

/// The lines that a list names, at most.
constexpr size_t mostLines = 8;

struct Sections {
  StringRef code, lines;
};

/// Finds the code of `symbol`, and the line table.
Expected<Sections> sectionsOf(StringRef cubin, StringRef symbol) {
  auto file = Elf::create(cubin);
  if (!file)
    return file.takeError();
  if (!file->getHeader().checkMagic() || file->getHeader().e_machine != ELF::EM_CUDA)
    return createStringError("it is no machine code for CUDA");
  auto sections = file->sections();
  if (!sections)
    return sections.takeError();
  Sections found;
  unsigned kernels = 0;
  for (const Elf::Elf_Shdr &section : *sections) {
    auto name = file->getSectionName(section);
    if (!name)
      return name.takeError();
    bool isCode = name->starts_with(".text.");
    kernels += isCode;
    if (section.sh_type != ELF::SHT_PROGBITS || !((isCode && name->drop_front(6) == symbol) || *name == ".debug_line"))
      continue;
    auto contents = file->getSectionContents(section);
    if (!contents)
      return contents.takeError();
    (isCode ? found.code : found.lines) = toStringRef(*contents);
  }
  if (found.code.empty())
    return createStringError("it has no code of " + symbol);
  if (kernels != 1) // the addresses of the table are relative to the kernel's section
    return createStringError("it has the code of several kernels");
  if (found.lines.empty())
    return createStringError("ptxas wrote no line table");
  if (found.code.size() % instructionBytes)
    return createStringError("its code does not consist of whole instructions");
  return found;
}

/// Reads the first table of `.debug_line`. A cubin of one kernel has no other.
Expected<DWARFDebugLine::LineTable> tableOf(StringRef bytes) {
  auto context = DWARFContext::create(StringMap<std::unique_ptr<MemoryBuffer>>(), /*AddrSize=*/8);
  DWARFDataExtractor data(bytes, /*IsLittleEndian=*/true, /*AddressSize=*/8);
  DWARFDebugLine::LineTable table;
  Error wrong = Error::success();
  uint64_t at = 0;
  Error fatal = table.parse(data, &at, *context, /*U=*/nullptr,
                            [&](Error error) { wrong = joinErrors(std::move(wrong), std::move(error)); });
  if (Error error = joinErrors(std::move(fatal), std::move(wrong)))
    return createStringError("its line table is damaged: " + toString(std::move(error)));
  return table;
}

/// Returns "rows.k:12", or nothing for code without a line. Folders of the build machine stay out of packages.
std::string placeOf(const DWARFDebugLine::LineTable &table, uint64_t address) {
  uint32_t row = table.lookupAddress({address, object::SectionedAddress::UndefSection});
  if (row >= table.Rows.size() || table.Rows[row].Line == 0)
    return "";
  std::string file;
  if (!table.getFileNameByIndex(table.Rows[row].File, "", DILineInfoSpecifier::FileLineInfoKind::RawValue, file))
    return "";
  return (sys::path::filename(file) + ":" + Twine(table.Rows[row].Line)).str();
}

unsigned sumOf(ArrayRef<LocalAccess> accesses, unsigned LocalAccess::*bytes) {
  unsigned sum = 0;
  for (const LocalAccess &access : accesses)
    sum += access.*bytes;
  return sum;
}

/// Compares the instructions with what ptxas counted. Fewer bytes than it reports mean an encoding that is not known.
Expected<LocalMemory::Content> contentOf(ArrayRef<LocalAccess> accesses, const KernelReport &report) {
  unsigned stored = sumOf(accesses, &LocalAccess::stored), loaded = sumOf(accesses, &LocalAccess::loaded);
  if (stored < report.spillStores || loaded < report.spillLoads)
    return createStringError(formatv("instructions that store {0} bytes and load {1} were found, and ptxas counts {2} "
                                     "and {3}",
                                     stored, loaded, report.spillStores, report.spillLoads)
                                 .str());
  if (report.spillStores == 0 && report.spillLoads == 0)
    return LocalMemory::Content::Arrays;
  return stored == report.spillStores && loaded == report.spillLoads ? LocalMemory::Content::Spills
                                                                     : LocalMemory::Content::Both;
}

} // namespace

std::string LocalMemory::describe(const LocalAccess &access) {
  return formatv("{0} bytes stored, {1} loaded", access.stored, access.loaded).str();
}

std::string LocalMemory::describe() const {
  std::string text;
  for (const LocalAccess &access : ArrayRef(accesses).take_front(mostLines))
    text += (text.empty() ? "" : ", ") + (access.place.empty() ? "code without a line" : access.place) + " (" +
            describe(access) + ")";
  if (accesses.size() > mostLines)
    text += ", and " + std::to_string(accesses.size() - mostLines) + " other lines";
  if (accesses.empty())
    text = "by addresses that may be of any memory";
  switch (content) {
  case Content::Spills:
    return text;
  case Content::Arrays:
    return "arrays in local memory, " + text;
  case Content::Both:
    return "spills and arrays in local memory, which the code does not tell apart, " + text;
  }
  llvm_unreachable("a content without words");
}

Expected<LocalMemory> readLocalMemory(StringRef cubin, const KernelReport &report) {
  auto sections = sectionsOf(cubin, report.symbol);
  if (!sections)
    return sections.takeError();
  auto table = tableOf(sections->lines);
  if (!table)
    return table.takeError();
  std::map<std::string, LocalAccess> byPlace;
  for (size_t at = 0; at < sections->code.size(); at += instructionBytes) {
    const char *instruction = sections->code.data() + at;
    unsigned opcode = support::endian::read64le(instruction) & opcodeMask;
    if (opcode != storeLocal && opcode != loadLocal)
      continue;
    unsigned bytes = accessBytes[support::endian::read64le(instruction + 8) >> 9 & 7];
    std::string place = placeOf(*table, at);
    LocalAccess &access = byPlace[place];
    access.place = std::move(place);
    (opcode == storeLocal ? access.stored : access.loaded) += bytes;
  }
  LocalMemory memory;
  for (auto &[place, access] : byPlace)
    memory.accesses.push_back(std::move(access));
  llvm::sort(memory.accesses, [](const LocalAccess &a, const LocalAccess &b) {
    return std::pair(b.stored + b.loaded, a.place) < std::pair(a.stored + a.loaded, b.place);
  });
  auto content = contentOf(memory.accesses, report);
  if (!content)
    return content.takeError();
  memory.content = *content;
  return memory;
}

} // namespace kpkg::compiler
