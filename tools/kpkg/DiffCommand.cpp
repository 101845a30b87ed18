// `kpkg diff`: compares two packages by op, instance and section.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/Report.h"
#include "tools/kpkg/edit/EditedPackage.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>

namespace kpkg::command {

namespace {

using edit::OpenedPackage;
using nlohmann::json;
using Entries = std::map<std::string, json>;

Entries opsOf(const OpenedPackage &package) {
  Entries all;
  for (json op : edit::tableOf(package.reader.manifest(), "ops")) {
    // Compares plans by their contents, on which calls depend.
    for (const char *plan : {"plan", "shape_plan", "gpu_plan", "gpu_shape_plan"})
      if (op.contains(plan))
        if (const format::Section *section = package.reader.find(op[plan].get<std::string>()))
          op[plan] = format::toHex(section->digest.data(), section->digest.size());
    all.emplace(op.at("name"), std::move(op));
  }
  return all;
}

Entries instancesOf(const OpenedPackage &package) {
  const json &manifest = package.reader.manifest();
  Entries all;
  for (json instance : edit::tableOf(manifest, "instances")) {
    std::string label = edit::labelOf(manifest, instance);
    instance["kernel"] =
        manifest.at("kernels").at(instance.at("kernel").get<size_t>()); // numbers of kernels may differ
    all.emplace(std::move(label), std::move(instance));
  }
  return all;
}

Entries sectionsOf(const OpenedPackage &package) {
  Entries all;
  for (json section : package.reader.manifest().at("sections")) {
    section.erase("offset");
    all.emplace(section.at("name"), std::move(section));
  }
  return all;
}

Entries restOf(const OpenedPackage &package) {
  Entries all;
  for (const auto &[key, value] : package.reader.manifest().items())
    if (key != "ops" && key != "instances" && key != "sections" && key != "kernels")
      all.emplace(key, value);
  return all;
}

/// Returns the keys in which two objects differ; sizes with both values.
std::string differences(const json &a, const json &b) {
  std::vector<std::string> keys;
  json both = a;
  if (both.is_object() && b.is_object())
    both.update(b);
  for (const auto &[key, value] : both.items()) {
    json old = a.is_object() && a.contains(key) ? a[key] : json(),
         now = b.is_object() && b.contains(key) ? b[key] : json();
    if (old != now)
      keys.push_back(old.is_number() && now.is_number() ? fmt::format("{} {} -> {}", key, old.dump(), now.dump())
                                                        : key);
  }
  return fmt::format("{}", fmt::join(keys, ", "));
}

/// Prints the entries that differ, and returns their number.
size_t compare(const char *heading, const Entries &a, const Entries &b) {
  size_t count = 0;
  auto line = [&](char sign, const std::string &name, const std::string &what) {
    if (count++ == 0)
      fmt::print("{}\n", heading);
    fmt::print("  {} {}{}{}\n", sign, printableLines(name), what.empty() ? "" : ": ", printableLines(what));
  };
  Entries all = a;
  all.insert(b.begin(), b.end());
  for (const auto &[name, entry] : all) {
    auto old = a.find(name), now = b.find(name);
    if (now == b.end())
      line('-', name, "");
    else if (old == a.end())
      line('+', name, "");
    else if (old->second != now->second)
      line('~', name, differences(old->second, now->second));
  }
  return count;
}

ExitCode diff(const std::string &first, const std::string &second) {
  auto a = OpenedPackage::open(first);
  if (!a)
    return report(a.error());
  auto b = OpenedPackage::open(second);
  if (!b)
    return report(b.error());
  size_t count = compare("ops", opsOf(*a), opsOf(*b));
  count += compare("instances", instancesOf(*a), instancesOf(*b));
  count += compare("sections", sectionsOf(*a), sectionsOf(*b));
  count += compare("manifest", restOf(*a), restOf(*b));
  // The order matters: it decides between instances that are equally good.
  if (count == 0 && a->reader.manifestText() != b->reader.manifestText()) {
    fmt::print("the order of tables differs\n");
    ++count;
  }
  return count ? InputRefused : Success;
}

} // namespace

void addDiff(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("diff", "Say what differs between two packages; runs nothing of them");
  command->footer("Example: kpkg diff old.kpkg new.kpkg\n"
                  "By op, instance and section: - only in the first, + only in the second, ~ in both with what "
                  "differs. Exit code 1 where something does.");
  auto paths = std::make_shared<std::pair<std::string, std::string>>();
  command->add_option("first", paths->first, "A .kpkg file")->required();
  command->add_option("second", paths->second, "Another one")->required();
  command->callback([paths, &exitCode] { exitCode = diff(paths->first, paths->second); });
}

} // namespace kpkg::command
