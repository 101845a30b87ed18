// Finds and runs ptxas.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/nvptx/Ptxas.h"
#include "compiler/codegen/cache/CodeCache.h"
#include "compiler/codegen/nvptx/CheckCubin.h"
#include "compiler/codegen/nvptx/Tool.h"
#include "compiler/codegen/temporary/TemporaryFolder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"

using namespace llvm;

namespace kpkg::compiler {

char NoPtxas::ID = 0;

Expected<Ptxas> Ptxas::at(StringRef path) {
  constexpr unsigned patience = 10; // seconds; it normally takes some hundredths of a second
  ToolOutcome outcome = runTool(path, {"--version"}, patience);
  StringRef text = outcome.output;
  size_t start = text.find(", V");
  if (outcome.code != 0 || start == StringRef::npos) {
    std::string why = outcome.failure + text.rtrim().str();
    return createStringError("%s does not answer like ptxas%s%s", path.str().c_str(), why.empty() ? "" : ": ",
                             why.c_str());
  }
  Ptxas found;
  found.program = path.str();
  found.versionText = text.drop_front(start + 3).take_while([](char c) { return isdigit(c) || c == '.'; }).str();
  return found;
}

Expected<Ptxas> Ptxas::find() {
  if (auto named = sys::Process::GetEnv("KPKG_PTXAS"); named && !named->empty()) {
    auto ptxas = at(*named);
    return ptxas ? std::move(ptxas) : createStringError("KPKG_PTXAS: %s", toString(ptxas.takeError()).c_str());
  }
  if (std::string path = findTool("ptxas"); !path.empty())
    return at(path);
  return make_error<NoPtxas>(
      "no ptxas found (looked at KPKG_PTXAS, CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda and the Python environment); "
      "`pip install nvidia-cuda-nvcc` installs one");
}

/// Packs a cache entry: the report's length, the report, the code.
static std::string packEntry(StringRef report, StringRef code) {
  return std::to_string(report.size()) + "\n" + report.str() + code.str();
}

static std::optional<Cubin> unpackEntry(StringRef entry) {
  auto [sizeText, rest] = entry.split('\n');
  size_t size = 0;
  if (sizeText.getAsInteger(10, size) || size > rest.size())
    return std::nullopt;
  return Cubin{rest.drop_front(size).str(), parsePtxasReport(rest.take_front(size))};
}

Expected<Cubin> Ptxas::assemble(StringRef ptx, StringRef chip, Effort effort) const {
  CodeCache cache = CodeCache::fromEnvironment();
  StringRef level = effort == Effort::Most ? "-O3" : effort == Effort::Less ? "-O2" : "-O1";
  std::string key = CodeCache::keyOf({"ptxas", versionText, level, chip, ptx});
  if (auto entry = cache.read(key))
    if (auto cubin = unpackEntry(*entry)) {
      Error wrong = checkCubin(cubin->bytes, ptx);
      if (!wrong)
        return std::move(*cubin);
      consumeError(std::move(wrong)); // assembles it again
    }

  auto folder = TemporaryFolder::create();
  if (!folder)
    return make_error<ToolFailed>(toString(folder.takeError()));
  auto input = folder->write("kernel.ptx", ptx);
  if (!input)
    return make_error<ToolFailed>(toString(input.takeError()));
  std::string output = folder->file("kernel.cubin");
  std::string architecture = "-arch=" + chip.str();
  SmallVector<StringRef> arguments = {"-v", level, architecture, *input, "-o", output};
  if (ptx.contains("\n\t.loc\t"))
    arguments.push_back("-lineinfo");
  ToolOutcome outcome = runTool(program, arguments);
  if (outcome.code == -1)
    return make_error<ToolFailed>("cannot run " + program + ": " + outcome.failure);
  if (outcome.code != 0) {
    if (StringRef(outcome.output).contains("is not defined for option 'gpu-name'"))
      return createStringError("ptxas %s does not know %s: use a CUDA toolkit that still or already serves this chip, "
                               "or let the driver compile the "
                               "package's PTX",
                               versionText.c_str(), chip.str().c_str());
    return createStringError("ptxas %s failed for %s: %s%s", versionText.c_str(), chip.str().c_str(),
                             outcome.failure.c_str(), outcome.output.c_str());
  }
  auto code = MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!code)
    return make_error<ToolFailed>(program + " left no result: " + code.getError().message());
  if (Error error = checkCubin((*code)->getBuffer(), ptx))
    return make_error<ToolFailed>(
        (program + ", ptxas " + versionText + " by its own account, is broken: for " + chip + " ").str() +
        toString(std::move(error)));
  cache.write(key, packEntry(outcome.output, (*code)->getBuffer()));
  return Cubin{(*code)->getBuffer().str(), parsePtxasReport(outcome.output)};
}

} // namespace kpkg::compiler
