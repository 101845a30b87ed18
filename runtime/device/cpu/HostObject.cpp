// Loads compiled kernels of one ISA level from an ELF image without the system's dynamic linker.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/HostObject.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <elf.h>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace kpkg::cpu {

#if defined(__x86_64__)
static constexpr uint16_t thisMachine = EM_X86_64;
#elif defined(__aarch64__)
static constexpr uint16_t thisMachine = EM_AARCH64;
#else
#error "no host kernels for this machine"
#endif

static constexpr uint64_t maxImageBytes = uint64_t(1) << 30;
static constexpr size_t maxSegments = 64;
/// Limit of names, which are hashed and may be shared by many symbols.
static constexpr size_t maxSymbolName = 4096;

/// Loads one image: copies it segment by segment, checks it in place, then protects it.
class Loader {
public:
  Loader(std::string_view image, const std::string &name) : image(image), name(name) {}
  Result<HostObject> run();

private:
  Error refuse(const std::string &why) const {
    return {KPKG_ERROR_FORMAT, "host object '" + name + "' is refused: " + why, {}, {}, {}};
  }
  Status readHeaders();
  Status mapSegments();
  Status checkDynamic();
  Status checkConstant();
  Status readSymbols();
  Status protect();

  /// Returns the T at an address of the loaded image, or nothing if it is outside.
  template <typename T> std::optional<T> at(uint64_t address) const {
    if (address > object.bytes || object.bytes - address < sizeof(T))
      return std::nullopt;
    T value;
    std::memcpy(&value, object.memory + address, sizeof(T));
    return value;
  }
  std::optional<uint64_t> countByHash(uint64_t address) const;
  std::optional<uint64_t> countByGnuHash(uint64_t address) const;
  bool isExecutable(uint64_t address) const;

  std::string_view image;
  const std::string &name;
  std::vector<Elf64_Phdr> segments;
  std::vector<Elf64_Phdr> loads;
  uint64_t pageBytes = uint64_t(::sysconf(_SC_PAGESIZE));
  uint64_t symbolTable = 0, stringTable = 0, stringBytes = 0, hash = 0, gnuHash = 0;
  bool relocated = false;
  HostObject object;
};

Status Loader::readHeaders() {
  Elf64_Ehdr header;
  if (image.size() < sizeof header)
    return refuse("it is too short for an ELF header");
  std::memcpy(&header, image.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_version != EV_CURRENT)
    return refuse("it is not a 64-bit little-endian ELF file");
  if (header.e_machine != thisMachine)
    return refuse("it is for ELF machine " + std::to_string(header.e_machine) + ", this is " +
                  std::to_string(thisMachine));
  if (header.e_type != ET_DYN)
    return refuse("it is not a shared object");
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 || header.e_phnum > maxSegments ||
      header.e_phoff > image.size() || image.size() - header.e_phoff < header.e_phnum * sizeof(Elf64_Phdr))
    return refuse("its program headers are out of bounds");
  segments.resize(header.e_phnum);
  std::memcpy(segments.data(), image.data() + header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr));
  return {};
}

Status Loader::mapSegments() {
  uint64_t end = 0, pagesUsed = 0;
  for (const Elf64_Phdr &segment : segments) {
    if (segment.p_type == PT_TLS)
      return refuse("it has thread-local data");
    if (segment.p_type == PT_INTERP)
      return refuse("it asks for an interpreter");
    if (segment.p_type == PT_GNU_STACK && (segment.p_flags & PF_X))
      return refuse("it asks for an executable stack");
    if (segment.p_type != PT_LOAD)
      continue;
    if (segment.p_filesz > segment.p_memsz || segment.p_offset > image.size() ||
        segment.p_filesz > image.size() - segment.p_offset)
      return refuse("a segment is out of the file's bounds");
    if (segment.p_vaddr > maxImageBytes || segment.p_memsz > maxImageBytes)
      return refuse("it is larger than the limit of " + std::to_string(maxImageBytes) + " bytes");
    if ((segment.p_flags & PF_W) && (segment.p_flags & PF_X))
      return refuse("a segment is writable and executable");
    if (segment.p_memsz == 0)
      continue;
    // Protection is by page, so segments must not share one.
    if (segment.p_vaddr / pageBytes < pagesUsed)
      return refuse("its segments overlap, share a page or are not in order");
    end = segment.p_vaddr + segment.p_memsz;
    pagesUsed = (end + pageBytes - 1) / pageBytes;
    loads.push_back(segment);
  }
  if (loads.empty())
    return refuse("it has nothing to load");
  size_t bytes = pagesUsed * pageBytes;
  void *memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return Error{KPKG_ERROR_MEMORY, "no memory for host object '" + name + "': " + std::strerror(errno), {}, {}, {}};
  object.memory = static_cast<std::byte *>(memory);
  object.bytes = bytes;
  for (const Elf64_Phdr &segment : loads)
    std::memcpy(object.memory + segment.p_vaddr, image.data() + segment.p_offset, segment.p_filesz);
  return {};
}

/// Checks that there are no variables: many threads run kernels concurrently. The linker's own writable part (.dynamic)
/// is read-only after relocation.
Status Loader::checkConstant() {
  if (relocated)
    return refuse("it has dynamic relocations");
  for (const Elf64_Phdr &segment : loads) {
    if (!(segment.p_flags & PF_W))
      continue;
    bool covered = std::any_of(segments.begin(), segments.end(), [&](const Elf64_Phdr &other) {
      return (other.p_type == PT_GNU_RELRO || other.p_type == PT_DYNAMIC) && other.p_vaddr <= segment.p_vaddr &&
             segment.p_vaddr - other.p_vaddr <= other.p_memsz &&
             segment.p_memsz <= other.p_memsz - (segment.p_vaddr - other.p_vaddr);
    });
    if (!covered)
      return refuse("it has writable data");
  }
  return {};
}

Status Loader::checkDynamic() {
  const Elf64_Phdr *dynamic = nullptr;
  for (const Elf64_Phdr &segment : segments)
    if (segment.p_type == PT_DYNAMIC)
      dynamic = &segment;
  if (!dynamic)
    return refuse("it has no dynamic section");
  for (uint64_t offset = 0;; offset += sizeof(Elf64_Dyn)) {
    auto entry = at<Elf64_Dyn>(dynamic->p_vaddr + offset);
    if (offset >= dynamic->p_memsz || !entry)
      return refuse("its dynamic section does not end");
    switch (entry->d_tag) {
    case DT_NULL:
      if (!symbolTable || !stringTable || !(hash || gnuHash))
        return refuse("it has no symbol table");
      return {};
    case DT_NEEDED:
      return refuse("it needs another library");
    case DT_REL:
    case DT_RELA:
    case DT_JMPREL:
    case DT_RELR:
    case DT_TEXTREL:
      // Reported after the symbols: an undefined symbol is the usual cause, and its name helps.
      relocated = true;
      break;
    case DT_INIT:
    case DT_INIT_ARRAY:
    case DT_PREINIT_ARRAY:
    case DT_FINI:
    case DT_FINI_ARRAY:
      return refuse("it has code that runs when it is loaded or unloaded");
    case DT_SYMTAB:
      symbolTable = entry->d_un.d_ptr;
      break;
    case DT_SYMENT:
      if (entry->d_un.d_val != sizeof(Elf64_Sym))
        return refuse("its symbols have an odd size");
      break;
    case DT_STRTAB:
      stringTable = entry->d_un.d_ptr;
      break;
    case DT_STRSZ:
      stringBytes = entry->d_un.d_val;
      break;
    case DT_HASH:
      hash = entry->d_un.d_ptr;
      break;
    case DT_GNU_HASH:
      gnuHash = entry->d_un.d_ptr;
      break;
    default:
      break;
    }
  }
}

std::optional<uint64_t> Loader::countByHash(uint64_t address) const {
  auto chains = at<uint32_t>(address + 4);
  return chains ? std::optional<uint64_t>(*chains) : std::nullopt;
}

/// Counts symbols. The GNU table has no count: the last symbol ends the chain of the highest bucket.
std::optional<uint64_t> Loader::countByGnuHash(uint64_t address) const {
  auto buckets = at<uint32_t>(address), first = at<uint32_t>(address + 4), bloomWords = at<uint32_t>(address + 8);
  if (!buckets || !first || !bloomWords)
    return std::nullopt;
  uint64_t bucketTable = address + 16 + uint64_t(*bloomWords) * 8, chainTable = bucketTable + uint64_t(*buckets) * 4;
  uint64_t last = 0;
  for (uint64_t i = 0; i < *buckets; ++i) {
    auto bucket = at<uint32_t>(bucketTable + 4 * i);
    if (!bucket)
      return std::nullopt;
    last = std::max<uint64_t>(last, *bucket);
  }
  if (last < *first)
    return *first;
  for (;; ++last) {
    auto entry = at<uint32_t>(chainTable + (last - *first) * 4);
    if (!entry)
      return std::nullopt;
    if (*entry & 1)
      return last + 1;
  }
}

bool Loader::isExecutable(uint64_t address) const {
  return std::any_of(loads.begin(), loads.end(), [&](const Elf64_Phdr &segment) {
    return (segment.p_flags & PF_X) && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz;
  });
}

Status Loader::readSymbols() {
  auto count = hash ? countByHash(hash) : countByGnuHash(gnuHash);
  if (!count || symbolTable > object.bytes || *count > (object.bytes - symbolTable) / sizeof(Elf64_Sym) ||
      stringTable > object.bytes || stringBytes > object.bytes - stringTable)
    return refuse("its symbol table is out of bounds");
  const char *strings = reinterpret_cast<const char *>(object.memory + stringTable);
  for (uint64_t i = 1; i < *count; ++i) {
    Elf64_Sym symbol = *at<Elf64_Sym>(symbolTable + i * sizeof(Elf64_Sym));
    if (symbol.st_name >= stringBytes)
      return refuse("a symbol's name is out of bounds");
    size_t room = std::min<size_t>(stringBytes - symbol.st_name, maxSymbolName + 1),
           length = ::strnlen(strings + symbol.st_name, room);
    if (length == room)
      return refuse(room > maxSymbolName ? "a symbol's name is longer than " + std::to_string(maxSymbolName) + " bytes"
                                         : "a symbol's name does not end");
    std::string_view symbolName(strings + symbol.st_name, length);
    if (symbol.st_shndx == SHN_UNDEF)
      return refuse("symbol '" + std::string(symbolName) + "' is undefined");
    unsigned type = ELF64_ST_TYPE(symbol.st_info);
    if (type == STT_TLS || type == STT_GNU_IFUNC)
      return refuse("symbol '" + std::string(symbolName) + "' is thread-local or resolved at run time");
    if (type == STT_FUNC) {
      if (!isExecutable(symbol.st_value))
        return refuse("function '" + std::string(symbolName) + "' is not in executable memory");
      object.functions.emplace(symbolName, object.memory + symbol.st_value);
    }
  }
  return {};
}

Status Loader::protect() {
  for (const Elf64_Phdr &segment : loads) {
    uint64_t begin = segment.p_vaddr / pageBytes * pageBytes;
    uint64_t end = (segment.p_vaddr + segment.p_memsz + pageBytes - 1) / pageBytes * pageBytes;
    std::byte *address = object.memory + begin;
    bool code = segment.p_flags & PF_X;
    if (code)
      __builtin___clear_cache(reinterpret_cast<char *>(address), reinterpret_cast<char *>(object.memory + end));
    if (::mprotect(address, end - begin, code ? PROT_READ | PROT_EXEC : PROT_READ) != 0)
      return Error{KPKG_ERROR_DEVICE,
                   "memory of host object '" + name + "' cannot be made " + (code ? "executable" : "read-only") + ": " +
                       std::strerror(errno),
                   {},
                   {},
                   {}};
  }
  return {};
}

Result<HostObject> Loader::run() {
  for (auto step : {&Loader::readHeaders, &Loader::mapSegments, &Loader::checkDynamic, &Loader::readSymbols,
                    &Loader::checkConstant, &Loader::protect})
    if (Status status = (this->*step)(); !status)
      return status.error();
  return std::move(object);
}

Result<HostObject> HostObject::load(std::string_view image, const std::string &name) {
  return Loader(image, name).run();
}

HostObject::~HostObject() {
  if (memory)
    ::munmap(memory, bytes);
}

const void *HostObject::find(std::string_view symbol) const {
  auto found = functions.find(symbol);
  return found == functions.end() ? nullptr : found->second;
}

} // namespace kpkg::cpu
