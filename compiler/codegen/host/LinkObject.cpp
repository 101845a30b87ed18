// Links objects with lld into one shared object that stands alone.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/host/HostCode.h"
#include "compiler/codegen/temporary/TemporaryFolder.h"
#include "dialect/lower/cpu/LowerCpu.h"
#include "lld/Common/Driver.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/MemoryBuffer.h"
#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace kpkg::compiler {

namespace {

/// Checks that the object needs nothing but mapped segments and symbol lookup, because the runtime's loader does
/// nothing else.
Error checkStandsAlone(StringRef bytes) {
  auto file = object::ELFFile<object::ELF64LE>::create(bytes);
  if (!file)
    return file.takeError();
  auto entries = file->dynamicEntries();
  if (!entries)
    return entries.takeError();
  for (const auto &entry : *entries)
    switch (entry.getTag()) {
    case ELF::DT_NEEDED:
    case ELF::DT_RELA:
    case ELF::DT_REL:
    case ELF::DT_JMPREL:
    case ELF::DT_INIT:
    case ELF::DT_INIT_ARRAY:
    case ELF::DT_FINI:
    case ELF::DT_FINI_ARRAY:
    case ELF::DT_TEXTREL:
      return createStringError("the linked kernels need %s at load time, which the runtime does not do",
                               file->getDynamicTagAsString(entry.getTag()).c_str());
    default:
      break;
    }
  return Error::success();
}

} // namespace

Expected<std::string> linkObjects(ArrayRef<HostObject> objects, const lower::cpu::CpuTarget &target,
                                  bool keepsLineTables) {
  static std::mutex lldIsNotThreadSafe;
  std::lock_guard<std::mutex> lock(lldIsNotThreadSafe);

  auto folder = TemporaryFolder::create();
  if (!folder)
    return folder.takeError();
  std::string output = folder->file("kernels.so");
  std::string list = "{ global:\n";
  for (const HostObject &object : objects)
    for (const HostKernel &kernel : object.kernels) {
      list += "\"" + kernel.symbol + "\";\n";
      if (kernel.isPersistent)
        list += "\"" + kernel.symbol + lower::cpu::tilesSuffix.str() + "\";\n";
    }
  list += "local: *; };\n";
  auto exports = folder->write("exports", list);
  if (!exports)
    return exports.takeError();

  // 64 KB pages are the largest of Linux kernels for these architectures.
  std::vector<std::string> arguments = {"ld.lld",
                                        "-shared",
                                        "-Bsymbolic",
                                        "-z",
                                        "defs",
                                        "-z",
                                        "noexecstack",
                                        "-z",
                                        "norelro",
                                        "--gc-sections",
                                        "--build-id=none",
                                        "--hash-style=sysv",
                                        "--no-rosegment",
                                        "-z",
                                        "max-page-size=65536",
                                        "--version-script",
                                        *exports,
                                        "-o",
                                        output};
  if (!keepsLineTables)
    arguments.push_back("--strip-all");
  for (auto [i, object] : llvm::enumerate(objects)) {
    auto path = folder->write(Twine(i) + ".o", object.bytes);
    if (!path)
      return path.takeError();
    arguments.push_back(std::move(*path));
  }
  std::vector<const char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(argument.c_str());

  std::string messages;
  raw_string_ostream stream(messages);
  lld::Result result = lld::lldMain(pointers, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return createStringError("linking the kernels for %s failed: %s", target.isa.str().c_str(), messages.c_str());

  auto linked = MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!linked)
    return createStringError(linked.getError(), "cannot read the linked kernels");
  if (Error error = checkStandsAlone((*linked)->getBuffer()))
    return std::move(error);
  return (*linked)->getBuffer().str();
}

} // namespace kpkg::compiler
