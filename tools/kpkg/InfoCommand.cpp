// `kpkg info`: prints the contents of a package.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/Render.h"
#include "tools/kpkg/InstanceText.h"
#include "tools/kpkg/Report.h"
#include "tools/kpkg/WhyReport.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>

namespace kpkg::command {

namespace {

using nlohmann::json;

std::map<std::string, uint64_t> sectionSizes(const ManifestPart &manifest) {
  std::map<std::string, uint64_t> sizes;
  for (const ManifestPart &section : manifest["sections"].items())
    sizes.emplace(section["name"].text(), section["size"].number());
  return sizes;
}

uint64_t codeBytes(const std::map<std::string, uint64_t> &sizes, const ManifestPart &instance) {
  auto found = sizes.find(instance["section"].text());
  return found == sizes.end() ? 0 : found->second;
}

/// Describes an instance's assumptions about one argument.
std::string describeFact(const ManifestPart &fact, const ManifestPart &kernel) {
  std::vector<std::string> parts;
  if (fact["unit"].isThere())
    parts.push_back(fmt::format("stride 1 in dimension {}", fact["unit"].text()));
  if (fact["align"].isThere())
    parts.push_back(fmt::format("address by {} bytes", fact["align"].text()));
  if (fact["divisible"].isThere())
    parts.push_back(fmt::format("sizes by {} elements", fact["divisible"].text()));
  if (fact["index"].isThere())
    parts.push_back("32-bit offsets");
  if (parts.empty())
    return "";
  return fmt::format("{}: {}", kernel["args"][size_t(fact["arg"].number())]["name"].text(), fmt::join(parts, " and "));
}

/// Describes an instance's resources and assumptions.
std::string describeInstance(const ManifestPart &manifest, const std::map<std::string, uint64_t> &sizes,
                             const ManifestPart &instance) {
  ManifestPart kernel = manifest["kernels"][size_t(instance["kernel"].number())];
  std::vector<std::string> traits;
  if (ManifestPart launch = instance["launch"]; launch.isThere()) {
    traits = describeLaunch(launch);
    traits.push_back(fmt::format("{} bytes of code", codeBytes(sizes, instance)));
  }
  for (const ManifestPart &fact : instance["facts"].items())
    if (std::string text = describeFact(fact, kernel); !text.empty())
      traits.push_back(std::move(text));
  return fmt::format("{}{}{}", titleOf(manifest, instance), traits.empty() ? "" : ": ", fmt::join(traits, ", "));
}

void printInstances(const ManifestPart &manifest) {
  fmt::print("\ninstances\n");
  auto sizes = sectionSizes(manifest);
  for (const ManifestPart &instance : manifest["instances"].items())
    fmt::print("  {}\n", describeInstance(manifest, sizes, instance));
}

/// Prints one line for each GPU target.
void printGpuCode(const ManifestPart &manifest) {
  struct Total {
    size_t instances = 0, spilling = 0;
    uint64_t bytes = 0, leastRegisters = UINT64_MAX, mostRegisters = 0, shared = 0;
  };
  auto sizes = sectionSizes(manifest);
  std::map<std::string, Total> byTarget;
  for (const ManifestPart &instance : manifest["instances"].items()) {
    ManifestPart launch = instance["launch"];
    if (!launch.isThere())
      continue;
    Total &total = byTarget[instance["target"].text()];
    ++total.instances;
    total.spilling += launch["spills"].number() > 0;
    total.bytes += codeBytes(sizes, instance);
    total.leastRegisters = std::min(total.leastRegisters, launch["registers"].number());
    total.mostRegisters = std::max(total.mostRegisters, launch["registers"].number());
    total.shared = std::max(total.shared, launch["shared"].number());
  }
  if (!byTarget.empty())
    fmt::print("\nGPU code (--instances lists it)\n");
  for (const auto &[target, total] : byTarget)
    fmt::print(
        "  {:<12} {} instances, {} with spills, {} to {} registers, up to {} bytes of shared memory, {} bytes of {}\n",
        target, total.instances, total.spilling, total.leastRegisters, total.mostRegisters, total.shared, total.bytes,
        target.starts_with("compute_") ? "PTX" : "machine code");
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
void printTorchRules(const ManifestPart &rules) {
  std::vector<std::string> parts;
  for (const auto &[device, word] : rules["autocast"].members())
    parts.push_back(fmt::format("autocast on {}: {}", device, word.text()));
  for (const char *key : {"dimensions", "promotion"})
    if (rules[key].isThere())
      parts.push_back(fmt::format("{}: {}", key, rules[key].text()));
  if (rules["fallback"].isThere())
    parts.push_back("fallback");
  if (!parts.empty())
    fmt::print("      PyTorch {}\n", fmt::join(parts, ", "));
}

void printOps(const ManifestPart &manifest) {
  fmt::print("\nops\n");
  for (const ManifestPart &op : manifest["ops"].items()) {
    fmt::print("  {}\n", op["schema"].text());
    if (op["backward"].isThere())
      fmt::print("      backward {}\n", op["backward"]["op"].text());
    printTorchRules(op["torch"]);
  }
}

void printKernels(const ManifestPart &manifest) {
  fmt::print("\nkernels\n");
  std::map<uint64_t, std::map<std::string, int>> byTarget;
  for (const ManifestPart &instance : manifest["instances"].items())
    ++byTarget[instance["kernel"].number()][instance["target"].text()];
  for (size_t i = 0; const ManifestPart &kernel : manifest["kernels"].items()) {
    std::string targets;
    for (const auto &[target, count] : byTarget[i++])
      targets += fmt::format("  {} x {}", count, target);
    fmt::print("  {:<24}{}\n", kernel["name"].text(), targets);
  }
}

void printSummary(const std::string &path, const Library &library, bool withInstances) {
  const json parsed = json::parse(library.manifest(), nullptr, /*allow_exceptions=*/false);
  const ManifestPart manifest(parsed);
  fmt::print("{}: format {}.{}, made by kpkg {}\n", compiler::printable(path), manifest["format"]["major"].number(),
             manifest["format"]["minor"].number(), manifest["producer"]["kpkg"].text());
  printOps(manifest);
  printKernels(manifest);
  printGpuCode(manifest);
  if (withInstances)
    printInstances(manifest);
  printTuning(library);
  fmt::print("\nsections\n");
  for (const ManifestPart &section : manifest["sections"].items())
    fmt::print("  {:<28} {:<12} {:>10} bytes{}\n", section["name"].text(), section["kind"].text(),
               section["size"].number(),
               section["compression"].text() == "none" ? "" : fmt::format(", {} stored", section["stored"].number()));
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
