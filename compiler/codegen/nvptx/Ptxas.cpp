// Finds and runs ptxas.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/nvptx/Ptxas.h"
#include "compiler/codegen/activity/Activity.h"
#include "compiler/codegen/cache/CodeCache.h"
#include "compiler/codegen/nvptx/CheckCubin.h"
#include "compiler/codegen/nvptx/Tool.h"
#include "compiler/codegen/reproducer/Reproducer.h"
#include "compiler/codegen/temporary/TemporaryFolder.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include <map>
#include <mutex>

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

namespace {

/// What one of the assemblers does wrong, for all threads. An assembler that hangs would otherwise take its time for
/// each kernel.
class BrokenTools {
public:
  /// Returns how the program failed before; empty if it did not.
  std::string find(const std::string &program) {
    std::lock_guard lock(mutex);
    return failures[program];
  }

  /// Records the first failure of a program, and returns it. `describe` makes its text.
  std::string add(const std::string &program, function_ref<std::string()> describe) {
    std::lock_guard lock(mutex);
    std::string &known = failures[program];
    if (known.empty())
      known = describe();
    return known;
  }

private:
  std::mutex mutex;
  std::map<std::string, std::string> failures;
};

BrokenTools &brokenTools() {
  static BrokenTools tools;
  return tools;
}

/// Returns the arguments that assemble `input` to `output`, with the options that `ptx` needs.
SmallVector<std::string> argumentsFor(StringRef ptx, StringRef chip, StringRef level, StringRef input,
                                      StringRef output) {
  SmallVector<std::string> arguments = {"-v", level.str(), ("-arch=" + chip).str(), input.str(), "-o", output.str()};
  if (ptx.contains("\n\t.loc\t"))
    arguments.push_back("-lineinfo");
  return arguments;
}

/// Returns the name of the first kernel.
StringRef entryOf(StringRef ptx) {
  return ptx.split(".entry ").second.take_while([](char c) { return isAlnum(c) || c == '_' || c == '$'; });
}

/// Returns `why` with the place of a new file that shows it again.
std::string withReproducer(std::string why, const std::string &program, const std::string &version, StringRef ptx,
                           StringRef chip, StringRef level) {
  Reproducer reproducer;
  reproducer.input = ptx.str();
  reproducer.set("stage", "ptxas");
  reproducer.set("instance", (recordedWork().empty() ? entryOf(ptx) : recordedWork()).str());
  reproducer.set("target", chip.str());
  reproducer.set("level", level.str());
  reproducer.set("version", "ptxas " + version);
  reproducer.set("command", program + " " + join(argumentsFor(ptx, chip, level, "FILE", "/dev/null"), " "));
  reproducer.set("failure", why);
  auto path = keep(reproducer);
  if (!path)
    return why + "; its input could not be kept: " + toString(path.takeError());
  return why + "\nits input is kept for a report, and `kpkg reproduce " + *path + "` assembles it again";
}

} // namespace

ToolOutcome Ptxas::run(StringRef ptx, StringRef chip, StringRef level, StringRef input, StringRef output) const {
  SmallVector<std::string> words = argumentsFor(ptx, chip, level, input, output);
  return runTool(program, SmallVector<StringRef>(words.begin(), words.end()));
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

  if (std::string known = brokenTools().find(program); !known.empty())
    return make_error<ToolFailed>(known);
  auto broken = [&](const std::string &why) {
    return make_error<ToolFailed>(
        brokenTools().add(program, [&] { return withReproducer(why, program, versionText, ptx, chip, level); }));
  };
  auto folder = TemporaryFolder::create();
  if (!folder)
    return make_error<ToolFailed>(toString(folder.takeError()));
  auto input = folder->write("kernel.ptx", ptx);
  if (!input)
    return make_error<ToolFailed>(toString(input.takeError()));
  std::string output = folder->file("kernel.cubin");
  recordStep("ptxas");
  ToolOutcome outcome = run(ptx, chip, level, *input, output);
  recordStep("");
  if (outcome.code == -1)
    return make_error<ToolFailed>("cannot run " + program + ": " + outcome.failure);
  const StringRef work = recordedWork().empty() ? entryOf(ptx) : recordedWork();
  if (outcome.code == -2)
    return broken(formatv("{0}, ptxas {1}, fails for {2} in {3}: {4}{5}", program, versionText, chip, work,
                          outcome.failure, outcome.output.empty() ? "" : ": " + StringRef(outcome.output).rtrim().str())
                      .str());
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
    return broken(program + " left no result for " + work.str() + ": " + code.getError().message());
  if (Error error = checkCubin((*code)->getBuffer(), ptx))
    return broken((program + ", ptxas " + versionText + " by its own account, is broken: for " + chip + " ").str() +
                  toString(std::move(error)));
  cache.write(key, packEntry(outcome.output, (*code)->getBuffer()));
  return Cubin{(*code)->getBuffer().str(), parsePtxasReport(outcome.output)};
}

} // namespace kpkg::compiler
