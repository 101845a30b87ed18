// Prints why the GPU code of a kernel is as it is: optimisations that were applied or not, launches and hints.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/WhyReport.h"
#include "compiler/diag/NearestName.h"
#include "compiler/diag/Render.h"
#include "compiler/driver/DroppedHints.h"
#include "tools/kpkg/InstanceText.h"
#include "tools/kpkg/ManifestPart.h"
#include "tools/kpkg/Report.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

namespace kpkg::command {

namespace {

using compiler::printable;
using nlohmann::json;

/// The sections with remarks, by target. Parts of another form read as nothing.
class Remarks {
public:
  explicit Remarks(const Library &library) : library(library) {}

  /// Returns the remarks on an instance, or nothing if the package has none for its target.
  std::optional<std::vector<ManifestPart>> of(const manifest::Instance &instance) {
    const std::optional<json> &section = sectionFor(instance.target);
    if (!section)
      return std::nullopt;
    ManifestPart parts(*section), number = parts["instances"][instance.section.c_str()];
    std::vector<ManifestPart> remarks;
    if (number.isThere())
      for (const ManifestPart &remark : parts["lists"][size_t(number.number())].items())
        remarks.push_back(parts["remarks"][size_t(remark.number())]);
    return remarks;
  }

private:
  const std::optional<json> &sectionFor(const std::string &target) {
    auto [entry, isNew] = sections.try_emplace(target);
    if (isNew)
      if (auto text = library.section("remarks/" + target))
        entry->second = json::parse(*text, nullptr, /*allow_exceptions=*/false);
    return entry->second;
  }

  const Library &library;
  std::map<std::string, std::optional<json>> sections;
};

/// A line of the source, in natural order: "rows.k" and 12.
std::pair<std::string, long> orderOf(const std::string &place) {
  size_t colon = place.rfind(':');
  return colon == place.npos ? std::pair(place, 0L)
                             : std::pair(place.substr(0, colon), std::strtol(place.c_str() + colon + 1, nullptr, 10));
}

/// Returns the lines on launches and hints, then those of each line of the source.
std::string textOf(const manifest::Launch &launch, const std::vector<ManifestPart> &remarks) {
  std::string text;
  if (!launch.refused.empty() || !launch.dropped.empty())
    text += "  launch\n";
  for (const manifest::RefusedLaunch &refused : launch.refused)
    text += fmt::format("    refused      {}: {}\n", printable(refused.launch), printable(refused.why));
  for (const manifest::DroppedHint &hint : launch.dropped)
    text += fmt::format("    not applied  @schedule({}): {}\n", printable(hint.hint), printable(hint.why));
  std::map<std::pair<std::string, long>, std::pair<std::string, std::string>> places; // lines applied, and not applied
  for (const ManifestPart &remark : remarks) {
    auto &[applied, refused] = places[orderOf(remark[size_t(0)].text())];
    bool isApplied = remark[size_t(2)].isTrue();
    (isApplied ? applied : refused) += fmt::format("    {}  {}: {}\n", isApplied ? "applied    " : "not applied",
                                                   remark[size_t(3)].text(), remark[size_t(4)].text());
  }
  for (const auto &[place, lines] : places)
    text += fmt::format("  {}{}\n{}{}", place.first.empty() ? "kernel" : place.first,
                        place.second ? fmt::format(":{}", place.second) : "", lines.first, lines.second);
  return text;
}

ExitCode refuse(const std::string &why) {
  fmt::print(stderr, "kpkg: error: {}\n", why);
  return InputRefused;
}

ExitCode refuseName(const manifest::Manifest &manifest, const std::string &package, const std::string &kernel) {
  std::vector<std::string> names;
  for (const manifest::Kernel &known : manifest.kernels)
    names.push_back(printable(known.name));
  std::string nearest = compiler::nearestName(kernel, names);
  return refuse(fmt::format("{} has no kernel '{}', but {}{}", printableLines(package), printableLines(kernel),
                            fmt::join(names, ", "),
                            nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
}

/// Returns the kernel's GPU instances that the options ask for.
std::vector<const manifest::Instance *> askedInstances(const manifest::Manifest &manifest, const WhyOptions &options) {
  std::vector<const manifest::Instance *> instances;
  for (const manifest::Instance &instance : manifest.instances)
    if (instance.launch && manifest.kernels[instance.kernel].name == options.kernel)
      instances.push_back(&instance);
  auto isForVectors = [](const manifest::Instance *instance) { return compiler::isForVectors(instance->variant); };
  if (!options.allVariants && std::any_of(instances.begin(), instances.end(), isForVectors))
    std::erase_if(instances, [&](const manifest::Instance *instance) { return !isForVectors(instance); });
  return instances;
}

} // namespace

CLI::Option *addWhyOptions(CLI::App &command, WhyOptions &options) {
  auto *why = command.add_option("--why", options.kernel,
                                 "A kernel: print which optimisations its GPU code has, which not, and why");
  command.add_flag("--all-variants", options.allVariants, "With --why: also code for any strides and alignments")
      ->needs(why);
  return why;
}

ExitCode printWhy(const Library &library, const std::string &package, const WhyOptions &options) {
  const manifest::Manifest manifest = manifestOf(library);
  if (std::none_of(manifest.kernels.begin(), manifest.kernels.end(),
                   [&](const manifest::Kernel &kernel) { return kernel.name == options.kernel; }))
    return refuseName(manifest, package, options.kernel);
  std::vector<const manifest::Instance *> instances = askedInstances(manifest, options);
  if (instances.empty())
    return refuse(fmt::format("{} has no GPU code of kernel '{}', which --why tells about; build it with a target such "
                              "as --target sm_90a",
                              printableLines(package), options.kernel));
  Remarks remarks(library);
  std::vector<std::pair<std::string, std::vector<std::string>>> reports; // a text, and the lines of its instances
  for (const manifest::Instance *instance : instances) {
    auto found = remarks.of(*instance);
    if (!found)
      return refuse(fmt::format("{} has no remarks of the compiler for {}: they were stripped, or an older kpkg built "
                                "it; build it again",
                                printableLines(package), printable(instance->target)));
    std::string text = textOf(*instance->launch, *found);
    auto known = std::find_if(reports.begin(), reports.end(), [&](const auto &one) { return one.first == text; });
    if (known == reports.end())
      known = reports.insert(reports.end(), {text, {}});
    known->second.push_back(
        fmt::format("{}: {}", titleOf(manifest, *instance), fmt::join(describeLaunch(*instance->launch), ", ")));
  }
  for (size_t i = 0; i < reports.size(); ++i)
    fmt::print("{}{}\n{}", i == 0 ? "" : "\n", fmt::join(reports[i].second, "\n"), reports[i].first);
  return Success;
}

} // namespace kpkg::command
