// `kpkg strip`, `kpkg split` and `kpkg merge`: remove sections, split a package by target, and merge packages.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/Report.h"
#include "tools/kpkg/edit/EditedPackage.h"
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

namespace kpkg::command {

namespace {

struct StripOptions {
  std::string package, output;
  std::vector<std::string> targets;
  bool sources = false;
};

ExitCode strip(const StripOptions &options) {
  if (!options.sources && options.targets.empty()) {
    fmt::print(stderr, "kpkg: error: say what to strip: --sources, or --target with the targets to keep\n");
    return UsageError;
  }
  auto package = edit::OpenedPackage::open(options.package);
  if (!package)
    return report(package.error());
  // The IR contains the information of the sources.
  std::set<std::string> kinds;
  if (options.sources)
    kinds = {"ir", "source"};
  auto bytes = edit::reduced(*package, kinds, {options.targets.begin(), options.targets.end()});
  if (!bytes)
    return report(bytes.error());
  return edit::writePackage(options.output.empty() ? options.package : options.output, *bytes, package->isSigned());
}

ExitCode split(const StripOptions &options) {
  auto package = edit::OpenedPackage::open(options.package);
  if (!package)
    return report(package.error());
  std::set<std::string> targets(options.targets.begin(), options.targets.end());
  if (targets.empty())
    targets = package->targets();
  namespace fs = std::filesystem;
  for (const std::string &target : targets) {
    auto bytes = edit::reduced(*package, {}, {target});
    if (!bytes)
      return report(bytes.error());
    // The target becomes part of a file name, but its text is not trusted.
    if (target.find('/') != target.npos) {
      fmt::print(stderr, "kpkg: error: '{}' is no target\n", printableLines(target));
      return InputRefused;
    }
    fs::path path = fs::path(options.output) / (fs::path(options.package).stem().string() + "." + target + ".kpkg");
    if (ExitCode code = edit::writePackage(path.string(), *bytes, package->isSigned()); code != Success)
      return code;
  }
  return Success;
}

ExitCode merge(const std::vector<std::string> &paths, const std::string &output) {
  std::vector<edit::OpenedPackage> packages;
  for (const std::string &path : paths) {
    auto package = edit::OpenedPackage::open(path);
    if (!package)
      return report(package.error());
    packages.push_back(std::move(*package));
  }
  auto bytes = edit::merged(packages);
  if (!bytes)
    return report(bytes.error());
  bool wasSigned = std::any_of(packages.begin(), packages.end(), [](const auto &each) { return each.isSigned(); });
  return edit::writePackage(output, *bytes, wasSigned);
}

void addTargets(CLI::App &command, StripOptions &options, const char *help) {
  command.add_option("--target", options.targets, help)->delimiter(',')->allow_extra_args(false);
}

} // namespace

void addStrip(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("strip", "Take sources or targets out of a package");
  command->footer("Example: kpkg strip gemm.kpkg --sources --target sm_90a,x86-64-v3 -o small.kpkg");
  auto options = std::make_shared<StripOptions>();
  command->add_option("package", options->package, "The .kpkg file")->required();
  command->add_flag("--sources", options->sources, "Drop the sources, the IR made of them, and the remarks on them");
  addTargets(*command, *options, "Keep the code for these targets alone");
  command->add_option("-o,--output", options->output, "Write the package here instead of back");
  command->callback([options, &exitCode] { exitCode = strip(*options); });
}

void addSplit(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("split", "Write a package for each target");
  command->footer("Example: kpkg split gemm.kpkg -o dist\nThe files are called gemm.sm_90a.kpkg, and so on.");
  auto options = std::make_shared<StripOptions>();
  options->output = ".";
  command->add_option("package", options->package, "The .kpkg file")->required();
  addTargets(*command, *options, "Only for these targets");
  command->add_option("-o,--output", options->output, "An existing folder")->capture_default_str();
  command->callback([options, &exitCode] { exitCode = split(*options); });
}

void addMerge(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("merge", "Put packages of the same sources for several targets into one");
  command->footer("Example: kpkg merge gemm.sm_90a.kpkg gemm.x86-64-v3.kpkg -o gemm.kpkg");
  auto paths = std::make_shared<std::vector<std::string>>();
  auto output = std::make_shared<std::string>();
  command->add_option("packages", *paths, "The .kpkg files")->required();
  command->add_option("-o,--output", *output, "The package to write")->required();
  command->callback([paths, output, &exitCode] { exitCode = merge(*paths, *output); });
}

} // namespace kpkg::command
