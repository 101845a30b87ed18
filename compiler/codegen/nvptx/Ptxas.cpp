// Finds and runs ptxas.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/nvptx/Ptxas.h"
#include "compiler/codegen/nvptx/CodeCache.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace kpkg::compiler {

namespace {

/// Seconds after which a run of ptxas is given up.
constexpr unsigned TimeLimit = 600;

struct Outcome {
  int code = 0;
  std::string output;
  std::string failure; ///< why it could not run at all
};

/// Runs `program`, without a shell; `output` has what it wrote to both of its streams.
Outcome runProgram(StringRef program, ArrayRef<StringRef> arguments) {
  Outcome outcome;
  SmallString<128> log;
  if (std::error_code error = sys::fs::createTemporaryFile("kpkg-ptxas", "log", log)) {
    outcome.code = -1;
    outcome.failure = "cannot make a temporary file: " + error.message();
    return outcome;
  }
  scope_exit removeLog([&] { sys::fs::remove(log); });
  SmallVector<StringRef> words = {program};
  words.append(arguments.begin(), arguments.end());
  std::optional<StringRef> streams[] = {StringRef(""), StringRef(log), StringRef(log)};
  outcome.code = sys::ExecuteAndWait(program, words, std::nullopt, streams, TimeLimit, 0, &outcome.failure);
  if (auto text = MemoryBuffer::getFile(log))
    outcome.output = (*text)->getBuffer().str();
  return outcome;
}

bool isProgram(const Twine &path) { return sys::fs::can_execute(path); }

std::string joined(StringRef folder, std::initializer_list<StringRef> parts) {
  SmallString<128> path(folder);
  for (StringRef part : parts)
    sys::path::append(path, part);
  return std::string(path);
}

/// ptxas in the site-packages of the Python environment `prefix`, as PyPI's nvidia-cuda-nvcc installs it; or empty.
std::string inPythonEnvironment(StringRef prefix) {
  std::error_code error;
  for (sys::fs::directory_iterator python(joined(prefix, {"lib"}), error), end; !error && python != end; python.increment(error)) {
    if (!sys::path::filename(python->path()).starts_with("python"))
      continue;
    std::error_code inner;
    std::string nvidia = joined(python->path(), {"site-packages", "nvidia"});
    for (sys::fs::directory_iterator package(nvidia, inner); !inner && package != end; package.increment(inner))
      if (std::string path = joined(package->path(), {"bin", "ptxas"}); isProgram(path))
        return path;
  }
  return "";
}

} // namespace

Expected<Ptxas> Ptxas::at(StringRef path) {
  Outcome outcome = runProgram(path, {"--version"});
  StringRef text = outcome.output;
  size_t start = text.find(", V");
  if (outcome.code != 0 || start == StringRef::npos)
    return createStringError("%s does not answer like ptxas: %s%s", path.str().c_str(), outcome.failure.c_str(), outcome.output.c_str());
  Ptxas found;
  found.program = path.str();
  found.versionText = text.drop_front(start + 3).take_while([](char c) { return isdigit(c) || c == '.'; }).str();
  return found;
}

Expected<Ptxas> Ptxas::find() {
  if (auto named = sys::Process::GetEnv("KPKG_PTXAS"))
    return at(*named);
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (auto home = sys::Process::GetEnv(variable))
      if (std::string path = joined(*home, {"bin", "ptxas"}); isProgram(path))
        return at(path);
  if (auto path = sys::findProgramByName("ptxas"))
    return at(*path);
  if (isProgram("/usr/local/cuda/bin/ptxas"))
    return at("/usr/local/cuda/bin/ptxas");
  SmallVector<std::string> prefixes;
  if (auto environment = sys::Process::GetEnv("VIRTUAL_ENV"))
    prefixes.push_back(*environment);
  // The command itself may lie in an environment's bin folder.
  std::string self = sys::fs::getMainExecutable(nullptr, nullptr);
  prefixes.push_back(sys::path::parent_path(sys::path::parent_path(self)).str());
  for (StringRef prefix : prefixes)
    if (std::string path = inPythonEnvironment(prefix); !path.empty())
      return at(path);
  return createStringError("no ptxas found (looked at KPKG_PTXAS, CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda and the Python environment); "
                           "`pip install nvidia-cuda-nvcc` installs one");
}

/// A cache entry: the report's length, the report, the code.
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

Expected<Cubin> Ptxas::assemble(StringRef ptx, StringRef chip) const {
  CodeCache cache = CodeCache::fromEnvironment();
  std::string key = CodeCache::keyOf({"ptxas", versionText, chip, ptx});
  if (auto entry = cache.read(key))
    if (auto cubin = unpackEntry(*entry))
      return std::move(*cubin);

  SmallString<128> input, output;
  int descriptor = -1;
  if (std::error_code error = sys::fs::createTemporaryFile("kpkg", "ptx", descriptor, input))
    return createStringError(error, "cannot make a temporary file: %s", error.message().c_str());
  scope_exit removeInput([&] { sys::fs::remove(input); });
  {
    raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream << ptx;
  }
  if (std::error_code error = sys::fs::createTemporaryFile("kpkg", "cubin", output))
    return createStringError(error, "cannot make a temporary file: %s", error.message().c_str());
  scope_exit removeOutput([&] { sys::fs::remove(output); });

  std::string architecture = "-arch=" + chip.str();
  Outcome outcome = runProgram(program, {"-v", architecture, input, "-o", output});
  if (outcome.code != 0) {
    if (StringRef(outcome.output).contains("is not defined for option 'gpu-name'"))
      return createStringError("ptxas %s does not know %s: use a CUDA toolkit that still or already serves this chip, or let the driver compile the "
                               "package's PTX",
                               versionText.c_str(), chip.str().c_str());
    return createStringError("ptxas %s failed for %s: %s%s", versionText.c_str(), chip.str().c_str(), outcome.failure.c_str(),
                             outcome.output.c_str());
  }
  auto code = MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!code)
    return createStringError(code.getError(), "ptxas left no result: %s", code.getError().message().c_str());
  cache.write(key, packEntry(outcome.output, (*code)->getBuffer()));
  return Cubin{(*code)->getBuffer().str(), parsePtxasReport(outcome.output)};
}

} // namespace kpkg::compiler
