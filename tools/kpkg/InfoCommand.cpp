// `kpkg info`: what a package holds.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/Report.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>

namespace kpkg::command {

namespace {

using nlohmann::json;

size_t sectionBytes(const json &manifest, const std::string &name) {
  for (const auto &section : manifest["sections"])
    if (section["name"] == name)
      return section["size"];
  return 0;
}

/// What the code needs and relies on, in words.
std::string describeInstance(const json &manifest, const json &instance) {
  const json &kernel = manifest["kernels"][size_t(instance["kernel"])];
  std::vector<std::string> params, traits;
  for (size_t i = 0; i < instance["params"].size(); ++i) {
    const json &value = instance["params"][i];
    params.push_back(fmt::format("{}={}", std::string(kernel["params"][i]["name"]), value.is_string() ? std::string(value) : value.dump()));
  }
  auto add = [&](const json &record, const char *key, const char *format) {
    if (uint64_t number = record.value(key, uint64_t(0)); number > 1)
      traits.push_back(fmt::format(fmt::runtime(format), number));
  };
  if (instance.contains("launch")) {
    const json &launch = instance["launch"];
    add(launch, "threads", "{} threads");
    add(launch, "registers", "{} registers");
    traits.push_back(launch.value("spills", 0) ? fmt::format("{} bytes of spills", launch.value("spills", 0)) : std::string("no spills"));
    add(launch, "shared", "{} bytes of shared memory");
    add(launch, "blocks", "{} blocks in each CTA");
    add(launch, "cluster", "clusters of {} CTAs");
    if (launch.value("occupancy", 0))
      traits.push_back(fmt::format("{} CTAs on each multiprocessor", launch.value("occupancy", 0)));
    if (launch.value("overlaps", false))
      traits.push_back("overlaps the kernel before it");
    if (launch.value("counters", 0))
      traits.push_back("takes tiles from a counter");
    for (const json &hint : launch.value("dropped", json::array()))
      traits.push_back("without " + std::string(hint["hint"]));
    traits.push_back(fmt::format("{} bytes of code", sectionBytes(manifest, instance["section"])));
  }
  for (const json &fact : instance.value("facts", json::array())) {
    std::vector<std::string> parts;
    if (fact.contains("unit"))
      parts.push_back(fmt::format("stride 1 in dimension {}", int(fact["unit"])));
    if (fact.contains("align"))
      parts.push_back(fmt::format("address by {} bytes", int(fact["align"])));
    if (fact.contains("divisible"))
      parts.push_back(fmt::format("sizes by {} elements", int(fact["divisible"])));
    if (fact.contains("index"))
      parts.push_back("32-bit offsets");
    if (!parts.empty())
      traits.push_back(fmt::format("{}: {}", std::string(kernel["args"][size_t(fact["arg"])]["name"]), fmt::join(parts, " and ")));
  }
  return fmt::format("{}[{}] {} {}{}{}", std::string(kernel["name"]), fmt::join(params, ", "), instance.value("variant", ""),
                     std::string(instance["target"]), traits.empty() ? "" : ": ", fmt::join(traits, ", "));
}

void printInstances(const json &manifest) {
  fmt::print("\ninstances\n");
  for (const json &instance : manifest["instances"])
    fmt::print("  {}\n", describeInstance(manifest, instance));
}

/// One line for each GPU target.
void printGpuCode(const json &manifest) {
  struct Total {
    size_t instances = 0, spilling = 0, bytes = 0;
    uint64_t leastRegisters = UINT64_MAX, mostRegisters = 0, shared = 0;
  };
  std::map<std::string, Total> byTarget;
  for (const json &instance : manifest["instances"]) {
    if (!instance.contains("launch"))
      continue;
    const json &launch = instance["launch"];
    Total &total = byTarget[instance["target"]];
    ++total.instances;
    total.spilling += launch.value("spills", 0) > 0;
    total.bytes += sectionBytes(manifest, instance["section"]);
    total.leastRegisters = std::min(total.leastRegisters, launch.value("registers", uint64_t(0)));
    total.mostRegisters = std::max(total.mostRegisters, launch.value("registers", uint64_t(0)));
    total.shared = std::max(total.shared, launch.value("shared", uint64_t(0)));
  }
  if (!byTarget.empty())
    fmt::print("\nGPU code (--instances lists it)\n");
  for (const auto &[target, total] : byTarget)
    fmt::print("  {:<12} {} instances, {} with spills, {} to {} registers, up to {} bytes of shared memory, {} bytes of {}\n", target,
               total.instances, total.spilling, total.leastRegisters, total.mostRegisters, total.shared, total.bytes,
               target.starts_with("compute_") ? "PTX" : "machine code");
}

/// The tuning table, a line for each row.
void printTuning(const Library &library) {
  auto text = library.section("tuning");
  if (!text)
    return; // most packages have none
  const json table = json::parse(*text);
  fmt::print("\ntuning table\n");
  for (const json &row : table["rows"]) {
    std::vector<std::string> params, choice;
    for (const auto &[name, value] : row["params"].items())
      params.push_back(fmt::format("{}={}", name, value.is_string() ? std::string(value) : value.dump()));
    for (const auto &[name, value] : row["choice"].items())
      choice.push_back(fmt::format("{}={}", name, value.dump()));
    fmt::print("  {}[{}] {} {} on {}, {}: {}\n", std::string(row["kernel"]), fmt::join(params, ", "), std::string(row["variant"]),
               std::string(row["target"]), std::string(row["device"]), row[row.contains("measured") ? "measured" : "shapes"].dump(), fmt::join(choice, ", "));
  }
}

void printSummary(const std::string &path, const Library &library, bool withInstances) {
  const json manifest = json::parse(library.manifest());
  fmt::print("{}: format {}.{}, made by kpkg {}\n", path, int(manifest["format"]["major"]),
             int(manifest["format"]["minor"]), manifest["producer"].value("kpkg", "?"));
  fmt::print("\nops\n");
  for (const auto &op : manifest["ops"]) {
    fmt::print("  {}\n", op.value("schema", ""));
    if (op.contains("backward"))
      fmt::print("      backward {}\n", std::string(op["backward"]["op"]));
  }

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

  printGpuCode(manifest);
  if (withInstances)
    printInstances(manifest);
  printTuning(library);
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
    bool instances = false;
    bool verify = false;
  };
  auto options = std::make_shared<Options>();
  command->add_option("package", options->package, "The .kpkg file")->required();
  command->add_flag("--json", options->json, "The manifest, as JSON");
  command->add_flag("--instances", options->instances, "Also every compiled instance: registers, threads, memory, what it relies on");
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
