// `kpkg info`: prints the contents of a package.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/Render.h"
#include "runtime/manifest/Describe.h"
#include "tools/kpkg/InstanceText.h"
#include "tools/kpkg/ManifestPart.h"
#include "tools/kpkg/Report.h"
#include "tools/kpkg/WhyReport.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>

namespace kpkg::command {

namespace {

using compiler::printable;
using manifest::Manifest;
using nlohmann::json;

std::map<std::string, uint64_t> sectionSizes(const Manifest &manifest) {
  std::map<std::string, uint64_t> sizes;
  for (const manifest::Section &section : manifest.sections)
    sizes.emplace(section.name, section.size);
  return sizes;
}

/// Prints every instance with its resources and assumptions.
void printInstances(const Manifest &manifest) {
  fmt::print("\ninstances\n");
  auto sizes = sectionSizes(manifest);
  for (const manifest::Instance &instance : manifest.instances) {
    std::vector<std::string> traits;
    if (instance.launch) {
      traits = describeLaunch(*instance.launch);
      traits.push_back(fmt::format("{} bytes of code", sizes[instance.section]));
    }
    const manifest::Kernel &kernel = manifest.kernels[instance.kernel];
    for (const manifest::Fact &fact : instance.facts)
      if (auto parts = manifest::describe(fact); !parts.empty())
        traits.push_back(
            printable(fmt::format("{}: {}", kernel.args[size_t(fact.arg)].name, fmt::join(parts, " and "))));
    fmt::print("  {}{}{}\n", titleOf(manifest, instance), traits.empty() ? "" : ": ", fmt::join(traits, ", "));
  }
}

/// Prints one line for each GPU target.
void printGpuCode(const Manifest &manifest) {
  struct Total {
    size_t instances = 0, spilling = 0;
    uint64_t bytes = 0;
    uint32_t leastRegisters = UINT32_MAX, mostRegisters = 0, shared = 0;
  };
  auto sizes = sectionSizes(manifest);
  std::map<std::string, Total> byTarget;
  for (const manifest::Instance &instance : manifest.instances) {
    if (!instance.launch)
      continue;
    const manifest::Launch &launch = *instance.launch;
    Total &total = byTarget[instance.target];
    ++total.instances;
    total.spilling += launch.spills > 0;
    total.bytes += sizes[instance.section];
    total.leastRegisters = std::min(total.leastRegisters, launch.registers);
    total.mostRegisters = std::max(total.mostRegisters, launch.registers);
    total.shared = std::max(total.shared, launch.shared);
  }
  if (!byTarget.empty())
    fmt::print("\nGPU code (--instances lists it)\n");
  for (const auto &[target, total] : byTarget)
    fmt::print(
        "  {:<12} {} instances, {} with spills, {} to {} registers, up to {} bytes of shared memory, {} bytes of {}\n",
        printable(target), total.instances, total.spilling, total.leastRegisters, total.mostRegisters, total.shared,
        total.bytes, target.starts_with("compute_") ? "PTX" : "machine code");
}

/// Returns an assignment such as "T=float32", also for objects and lists.
std::string assigned(const std::string &name, const ManifestPart &value) {
  return fmt::format("{}={}", name, value.text("none"));
}

/// Prints the tuning table, one line per row.
void printTuning(const Library &library) {
  auto text = library.section("tuning");
  if (!text)
    return; // most packages have none
  const json parsed = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const ManifestPart table(parsed);
  fmt::print("\ntuning table\n");
  for (const ManifestPart &row : table["rows"].items()) {
    std::vector<std::string> params, choice;
    for (const auto &[name, value] : row["params"].members())
      params.push_back(assigned(name, value));
    for (const auto &[name, value] : row["choice"].members())
      choice.push_back(assigned(name, value));
    fmt::print("  {}[{}] {} {} on {}, {}: {}\n", row["kernel"].text(), fmt::join(params, ", "), row["variant"].text(),
               row["target"].text(), row["device"].text(),
               row[row["measured"].isThere() ? "measured" : "shapes"].text(), fmt::join(choice, ", "));
  }
}

/// How PyTorch treats an op, on one line; the text of its fallback is in --json.
void printTorchRules(const manifest::TorchRules &rules) {
  std::vector<std::string> parts;
  auto add = [&](const char *name, const std::string &word) {
    if (!word.empty())
      parts.push_back(fmt::format("{}: {}", name, printable(word)));
  };
  add("autocast on cpu", rules.autocast.cpu);
  add("autocast on cuda", rules.autocast.cuda);
  add("dimensions", rules.dimensions);
  add("promotion", rules.promotion);
  if (!rules.fallback.empty())
    parts.push_back("fallback");
  if (!parts.empty())
    fmt::print("      PyTorch {}\n", fmt::join(parts, ", "));
}

void printOps(const Manifest &manifest) {
  fmt::print("\nops\n");
  for (const manifest::Op &op : manifest.ops) {
    fmt::print("  {}\n", printable(op.schema));
    if (op.backward)
      fmt::print("      backward {}\n", printable(op.backward->op));
    if (op.torch)
      printTorchRules(*op.torch);
  }
}

void printKernels(const Manifest &manifest) {
  fmt::print("\nkernels\n");
  std::map<size_t, std::map<std::string, int>> byTarget;
  for (const manifest::Instance &instance : manifest.instances)
    ++byTarget[instance.kernel][instance.target];
  for (size_t i = 0; i < manifest.kernels.size(); ++i) {
    std::string targets;
    for (const auto &[target, count] : byTarget[i])
      targets += fmt::format("  {} x {}", count, printable(target));
    fmt::print("  {:<24}{}\n", printable(manifest.kernels[i].name), targets);
  }
}

void printSummary(const std::string &path, const Library &library, bool withInstances) {
  const Manifest manifest = manifestOf(library);
  fmt::print("{}: format {}.{}, made by kpkg {}\n", printable(path), manifest.format.major, manifest.format.minor,
             manifest.producer.kpkg.empty() ? "?" : printable(manifest.producer.kpkg));
  const std::string &options = manifest.producer.options;
  if (options.find(" --fast") != options.npos)
    fmt::print("a fast build for trying kernels, of slow code: {}\n", printable(options));
  else if (options.find(" --sanitize=") != options.npos)
    fmt::print("a build with checks, of slow code: {}\n", printable(options));
  printOps(manifest);
  printKernels(manifest);
  printGpuCode(manifest);
  if (withInstances)
    printInstances(manifest);
  printTuning(library);
  fmt::print("\nsections\n");
  for (const manifest::Section &section : manifest.sections)
    fmt::print("  {:<28} {:<12} {:>10} bytes{}\n", printable(section.name), printable(section.kind), section.size,
               section.compression == manifest::Compression::None ? "" : fmt::format(", {} stored", section.stored));
}

/// Returns the manifest as in the file, with characters escaped that a terminal could interpret. It is the same JSON.
std::string manifestJson(const Library &library) {
  std::string text(library.manifest());
  bool isPlain = std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f; });
  return isPlain ? text : json::parse(text).dump(-1, ' ', /*ensure_ascii=*/true);
}

} // namespace

void addInfo(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("info", "Show what a package holds; runs nothing of it");
  command->footer("Example: kpkg info gemm.kpkg\n         kpkg info gemm.kpkg --json | jq .instances");
  struct Options {
    std::string package;
    bool json = false;
    bool instances = false;
    bool verify = false;
    WhyOptions why;
  };
  auto options = std::make_shared<Options>();
  command->add_option("package", options->package, "The .kpkg file")->required();
  command->add_flag("--json", options->json, "The manifest, as JSON");
  command->add_flag("--instances", options->instances,
                    "Also every compiled instance: registers, threads, memory, what it relies on");
  addWhyOptions(*command, options->why)->excludes("--json")->excludes("--instances");
  command->add_flag("--verify", options->verify, "Check every section's digest and every plan");
  command->callback([options, &exitCode] {
    auto library = openPackage(options->package);
    if (!library) {
      exitCode = report(library.error());
      return;
    }
    if (!options->why.kernel.empty()) {
      exitCode = printWhy(*library, options->package, options->why);
      return;
    }
    if (options->json)
      fmt::print("{}\n", manifestJson(*library));
    else
      printSummary(options->package, *library, options->instances);
    if (!options->verify)
      return;
    if (Status status = library->verify(); !status)
      exitCode = report(status.error());
    else if (!options->json)
      fmt::print("\nall digests and plans are good\n");
  });
}

} // namespace kpkg::command
