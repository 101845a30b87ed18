// `kpkg watch`: checks sources again whenever a file that they read changes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/Render.h"
#include "compiler/driver/Compile.h"
#include "compiler/driver/Inputs.h"
#include "tools/kpkg/Commands.h"
#include "llvm/Support/Error.h"
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <thread>
#include <unistd.h>

namespace kpkg::command {

namespace {

struct WatchOptions {
  compiler::CompileOptions compile;
  std::string then;
  int count = 0;
};

/// Long enough to cost nothing, and short enough not to be noticed.
constexpr std::chrono::milliseconds interval(200);

/// Returns the text of a file; nothing if it cannot be read.
std::optional<std::string> textOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// The files of a check with the texts that were read.
class Watched {
public:
  void remember(const compiler::CompileOptions &options, const compiler::SourceManager &sources) {
    files.clear();
    inputs = namedFiles(options);
    for (const std::string &path : inputs)
      files[path].text = textOf(path);
    for (uint32_t id = 0; id < sources.fileCount(); ++id)
      if (files.count(sources.file(id).path()) || std::filesystem::exists(sources.file(id).path()))
        files[sources.file(id).path()].text = std::string(sources.file(id).text());
  }

  /// Reads a file only if its time or size has changed.
  bool hasChanged(const compiler::CompileOptions &options) {
    if (namedFiles(options) != inputs)
      return true;
    for (auto &[path, file] : files) {
      std::error_code error;
      Stamp stamp{std::filesystem::last_write_time(path, error), std::filesystem::file_size(path, error)};
      if (file.stamp == stamp && !error)
        continue;
      file.stamp = stamp;
      if (textOf(path) != file.text)
        return true;
    }
    return false;
  }

private:
  using Stamp = std::pair<std::filesystem::file_time_type, uintmax_t>;
  struct File {
    std::optional<std::string> text;
    std::optional<Stamp> stamp; // unset at first, so that a change during the check is noticed
  };
  std::map<std::string, File> files;
  std::vector<std::string> inputs;

  /// Returns the sources that the command line names; the names themselves if some do not exist.
  static std::vector<std::string> namedFiles(const compiler::CompileOptions &options) {
    auto paths = compiler::findSources(options.inputs);
    if (paths)
      return *paths;
    llvm::consumeError(paths.takeError());
    return options.inputs;
  }
};

/// Checks once, prints the results, and returns whether there was no error.
bool checkOnce(const WatchOptions &options, Watched &watched) {
  auto start = std::chrono::steady_clock::now();
  compiler::SourceManager sources;
  compiler::DiagnosticEngine diags;
  llvm::Error error = compiler::check(options.compile, sources, diags);
  watched.remember(options.compile, sources);
  bool isGood = !error && !diags.hasErrors();
  if (error)
    fmt::print(stderr, "kpkg: error: {}\n", llvm::toString(std::move(error)));
  fmt::print(stderr, "{}", compiler::renderText(diags, sources, {.colour = compiler::wantsColour(STDERR_FILENO)}));
  if (isGood) {
    std::time_t now = std::time(nullptr);
    char clock[16] = "";
    std::strftime(clock, sizeof clock, "%H:%M:%S", std::localtime(&now));
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    fmt::print("{} ok ({:.2f} s)\n", clock, taken.count());
  }
  std::fflush(stdout);
  return isGood;
}

ExitCode watch(const WatchOptions &options) {
  Watched watched;
  for (int done = 1;; ++done) {
    bool isGood = checkOnce(options, watched);
    if (isGood && !options.then.empty())
      isGood = std::system(options.then.c_str()) == 0;
    if (done == options.count)
      return isGood ? Success : InputRefused;
    while (!watched.hasChanged(options.compile))
      std::this_thread::sleep_for(interval);
  }
}

} // namespace

void addWatch(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("watch", "Check sources, and again whenever a file that they read changes");
  command->footer("Example: kpkg watch gemm.k --then \"kpkg test gemm.k\"\nCtrl-C ends it.");
  auto options = std::make_shared<WatchOptions>();
  options->compile.targets = {"native", "ptx"};
  command->add_option("inputs", options->compile.inputs, "Source files, or folders whose .k files are all taken")
      ->required();
  command->add_option("-I", options->compile.importPaths, "A folder in which imports look")->allow_extra_args(false);
  command->add_option("--then", options->then, "A command for the shell, after each check without errors");
  command
      ->add_option("--count", options->count,
                   "End after so many checks, with exit code 1 if the last one found an error; default: never")
      ->check(CLI::PositiveNumber);
  command->callback([options, &exitCode] { exitCode = watch(*options); });
}

} // namespace kpkg::command
