// `kpkg info`: what a package holds.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/Report.h"
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace kpkg::command {

namespace {

void printSummary(const std::string &path, const Library &library) {
  auto manifest = nlohmann::json::parse(library.manifest());
  fmt::print("{}: format {}.{}, made by kpkg {}\n", path, int(manifest["format"]["major"]),
             int(manifest["format"]["minor"]), manifest["producer"].value("kpkg", "?"));
  fmt::print("\nops\n");
  for (const auto &op : manifest["ops"])
    fmt::print("  {}\n", op.value("schema", ""));

  fmt::print("\nkernels\n");
  std::map<size_t, std::map<std::string, int>> byTarget;
  for (const auto &instance : manifest["instances"])
    ++byTarget[instance["kernel"]][instance["target"]];
  for (size_t i = 0; i < manifest["kernels"].size(); ++i) {
    std::string targets;
    for (const auto &[target, count] : byTarget[i])
      targets += fmt::format("  {} x {}", count, target);
    fmt::print("  {:<24}{}\n", std::string(manifest["kernels"][i]["name"]), targets);
  }

  fmt::print("\nsections\n");
  for (const auto &section : manifest["sections"])
    fmt::print("  {:<28} {:<12} {:>10} bytes{}\n", std::string(section["name"]), std::string(section["kind"]),
               size_t(section["size"]),
               section["compression"] == "none" ? "" : fmt::format(", {} stored", size_t(section["stored"])));
}

} // namespace

void addInfo(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("info", "Show what a package holds; runs nothing of it");
  command->footer("Example: kpkg info gemm.kpkg\n         kpkg info gemm.kpkg --json | jq .instances");
  struct Options {
    std::string package;
    bool json = false;
    bool verify = false;
  };
  auto options = std::make_shared<Options>();
  command->add_option("package", options->package, "The .kpkg file")->required();
  command->add_flag("--json", options->json, "The manifest, as JSON");
  command->add_flag("--verify", options->verify, "Check every section's digest and every plan");
  command->callback([options, &exitCode] {
    auto library = Library::open(options->package);
    if (!library) {
      exitCode = report(library.error());
      return;
    }
    if (options->json)
      fmt::print("{}\n", library->manifest());
    else
      printSummary(options->package, *library);
    if (!options->verify)
      return;
    if (Status status = library->verify(); !status)
      exitCode = report(status.error());
    else if (!options->json)
      fmt::print("\nall digests and plans are good\n");
  });
}

} // namespace kpkg::command
