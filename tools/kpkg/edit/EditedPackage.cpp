// Makes changed copies of packages: fewer sections or targets, or the instances of several packages.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/edit/EditedPackage.h"
#include "runtime/format/CanonicalJson.h"
#include "runtime/format/OutputFile.h"
#include "runtime/format/Rewrite.h"
#include "tools/kpkg/InstanceText.h"
#include "tools/kpkg/Report.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>

namespace kpkg::command::edit {

using nlohmann::json;

static constexpr const char *tuningName = "tuning";
static constexpr std::string_view remarksPrefix = "remarks/"; ///< before a target

static Error refused(std::string why) { return {KPKG_ERROR_USE, std::move(why), {}, {}, {}}; }

static bool isCode(const format::Section &section) {
  return section.kind == "host-object" || section.kind == "cubin" || section.kind == "ptx" ||
         section.kind == "tile-program";
}

Result<OpenedPackage> OpenedPackage::open(const std::string &path) {
  auto file = format::WholeFile::open(path);
  if (!file)
    return file.error();
  auto reader = format::Reader::fromMemory(file->bytes(), path);
  if (!reader)
    return reader.error();
  auto library = Library::openMemory(file->bytes(), path);
  if (!library)
    return library.error();
  return OpenedPackage{std::move(*file), std::move(*reader), std::move(*library)};
}

std::set<std::string> OpenedPackage::targets() const {
  std::set<std::string> all;
  for (const json &instance : tableOf(reader.manifest(), "instances"))
    all.insert(instance.at("target").get<std::string>());
  return all;
}

bool OpenedPackage::isSigned() const {
  return std::any_of(reader.sections().begin(), reader.sections().end(),
                     [](const format::Section &section) { return section.kind == "signature"; });
}

const json &tableOf(const json &manifest, const char *name) {
  static const json empty = json::array();
  auto found = manifest.find(name);
  return found == manifest.end() ? empty : *found;
}

std::string labelOf(const json &manifest, const json &instance) {
  std::vector<std::string> values;
  for (const json &value : instance.at("params"))
    values.push_back(value.is_string() ? value.get<std::string>() : value.dump());
  std::string variant = instance.value("variant", "");
  return fmt::format(
      "{}[{}]{}{} {}", manifest.at("kernels").at(instance.at("kernel").get<size_t>()).at("name").get<std::string>(),
      fmt::join(values, ","), variant.empty() ? "" : " ", variant, instance.at("target").get<std::string>());
}

/// Returns the rows of the tuning table by their keys; none without a table.
static Result<std::map<std::string, json>> tuningRows(const OpenedPackage &package) {
  std::map<std::string, json> rows;
  const format::Section *section = package.reader.find(tuningName);
  if (!section)
    return rows;
  auto text = package.reader.read(*section, /*checkDigest=*/true);
  auto table = text ? format::parseCanonical(text->bytes) : text.error();
  if (!table)
    return table.error();
  for (const json &row : table->at("rows")) {
    json key = row;
    key.erase("choice");
    rows.emplace(key.dump(), row);
  }
  return rows;
}

static Status addTuning(format::Writer &writer, const std::map<std::string, json> &rows) {
  if (rows.empty())
    return {};
  json list = json::array();
  for (const auto &[key, row] : rows)
    list.push_back(row);
  auto text = format::writeCanonical({{"format", 1}, {"rows", std::move(list)}});
  if (!text)
    return text.error();
  return writer.add(tuningName, tuningName, std::move(*text), format::Compression::Zstd, /*required=*/false);
}

Result<std::string> reduced(const OpenedPackage &package, const std::set<std::string> &kinds,
                            const std::set<std::string> &targets) {
  std::set<std::string> known = package.targets();
  for (const std::string &target : targets)
    if (!known.count(target))
      return refused(
          fmt::format("'{}' has no code for '{}'; it has {}", package.reader.name(), target, fmt::join(known, ", ")));
  auto isKept = [&](const json &item) { return targets.empty() || targets.count(item.at("target")); };
  json manifest = package.reader.manifest(), instances = json::array();
  std::set<std::string> used;
  for (const json &instance : tableOf(package.reader.manifest(), "instances"))
    if (isKept(instance)) {
      instances.push_back(instance);
      used.insert(instance.at("section").get<std::string>());
    }
  manifest["instances"] = std::move(instances);
  auto isUsed = [&](const format::Section &section) {
    if (section.kind == "docs" && section.name.starts_with(remarksPrefix)) // they tell about lines of the sources
      return !kinds.count("source") &&
             (targets.empty() || targets.count(section.name.substr(remarksPrefix.size())) != 0);
    return !isCode(section) || used.count(section.name) != 0;
  };
  auto rows = tuningRows(package);
  if (!rows)
    return rows.error();
  std::erase_if(*rows, [&](const auto &item) { return !isKept(item.second); });
  format::Writer writer;
  Status status = format::copySections(package.reader, writer, [&](const format::Section &section) {
    return section.name != tuningName && !kinds.count(section.kind) && isUsed(section);
  });
  if (status)
    status = addTuning(writer, *rows);
  if (!status)
    return status.error();
  return writer.finish(manifest);
}

/// Returns the options of the builds, each once, since code for one target may be of a fast build.
static std::string optionsOf(const std::vector<OpenedPackage> &packages) {
  std::vector<std::string> all;
  for (const OpenedPackage &package : packages) {
    std::string options = manifestOf(package.library).producer.options;
    if (!options.empty() && std::find(all.begin(), all.end(), options) == all.end())
      all.push_back(options);
  }
  return fmt::format("{}", fmt::join(all, "; "));
}

Result<std::string> merged(const std::vector<OpenedPackage> &packages) {
  const format::Reader &first = packages.front().reader;
  json manifest = first.manifest();
  std::map<std::string, json> instances, rows;
  format::Writer writer;
  for (const OpenedPackage &package : packages)
    for (const char *table : {"kernels", "ops"})
      if (tableOf(package.reader.manifest(), table) != tableOf(manifest, table))
        return refused(fmt::format("'{}' and '{}' have different {}; only packages of the same sources can be merged",
                                   first.name(), package.reader.name(), table));
  manifest["instances"] = json::array();
  if (std::string options = optionsOf(packages); !options.empty())
    manifest["producer"]["options"] = options;
  std::set<std::string> requirements;
  for (const OpenedPackage &package : packages) {
    const format::Reader &reader = package.reader;
    for (const json &name : tableOf(reader.manifest(), "requires"))
      requirements.insert(name.get<std::string>());
    for (const json &instance : tableOf(reader.manifest(), "instances")) {
      std::string label = labelOf(manifest, instance);
      auto [known, isNew] = instances.emplace(label, instance);
      if (isNew)
        manifest["instances"].push_back(instance);
      else if (known->second != instance)
        return refused(fmt::format("'{}' has another instance {} than those before it", reader.name(), label));
    }
    for (const format::Section &section : reader.sections())
      for (const OpenedPackage &other : packages)
        if (const format::Section *same = other.reader.find(section.name);
            same && section.name != tuningName && section.kind != "signature" &&
            (same->digest != section.digest || same->kind != section.kind))
          return refused(fmt::format("section '{}' of '{}' is another one in '{}'", section.name, reader.name(),
                                     other.reader.name()));
    if (Status status = format::copySections(
            reader, writer,
            [&](const format::Section &section) { return section.name != tuningName && !writer.has(section.name); });
        !status)
      return status.error();
    auto own = tuningRows(package);
    if (!own)
      return own.error();
    for (const auto &[key, row] : *own)
      if (auto [known, isNew] = rows.emplace(key, row); !isNew && known->second != row)
        return refused(fmt::format("'{}' has another row of the tuning table: {}", reader.name(), row.dump()));
  }
  if (Status status = addTuning(writer, rows); !status)
    return status.error();
  if (!requirements.empty())
    manifest["requires"] = requirements;
  return writer.finish(manifest);
}

ExitCode writePackage(const std::string &path, const std::string &bytes, bool wasSigned) {
  if (auto opened = Library::openMemory(bytes, path); !opened)
    return report(opened.error());
  if (Status status = format::writeFile(path, bytes); !status)
    return report(status.error());
  if (wasSigned)
    fmt::print(stderr, "kpkg: note: {} has no signature; sign it again\n", printableLines(path));
  fmt::print("{}: {} bytes\n", printableLines(path), bytes.size());
  return Success;
}

} // namespace kpkg::command::edit
