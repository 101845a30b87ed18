// Reads from a package how it was built, and its sources.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/edit/PackedBuild.h"
#include "compiler/check/ImportPaths.h"
#include "runtime/format/OutputFile.h"
#include "tools/kpkg/InstanceText.h"
#include "tools/kpkg/Report.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Config/llvm-config.h"
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <regex>

namespace kpkg::command::edit {

using compiler::CompileOptions;
namespace fs = std::filesystem;

namespace {

Error refused(const OpenedPackage &package, const std::string &why) {
  return {KPKG_ERROR_USE, fmt::format("{}: {}", package.reader.name(), printableLines(why)), {}, {}, {}};
}

struct Source {
  std::string name; ///< without folders
  std::string text;
};

/// Returns the sources in the order in which the build read them, without the prelude.
Result<std::vector<Source>> sourcesOf(const OpenedPackage &package) {
  constexpr std::string_view prefix = "source/";
  std::vector<Source> sources;
  for (const format::Section &section : package.reader.sections()) {
    if (section.kind != "source" || !section.name.starts_with(prefix))
      continue;
    auto contents = package.reader.read(section, /*checkDigest=*/true);
    if (!contents)
      return contents.error();
    std::string name = section.name.substr(prefix.size());
    if (name.find('/') != name.npos || name.starts_with(".")) // it becomes a path
      return refused(package, fmt::format("'{}' is no name of a source", name));
    if (name != std::string(compiler::preludeName) + ".k")
      sources.push_back({std::move(name), std::string(contents->bytes)});
  }
  if (sources.empty())
    return refused(package,
                   "it has no sources to compile: `kpkg strip --sources` takes them out; build for all targets "
                   "from the source tree");
  return sources;
}

/// Returns the folders of modules that are imported by dotted names: "norm" of `from norm.gradient import ...`.
std::map<std::string, std::string> foldersOfModules(const std::vector<Source> &sources) {
  static const std::regex import(R"((?:^|\n)[ \t]*(?:from|import)[ \t]+((?:\w+\.)+)(\w+))");
  std::map<std::string, std::string> folders;
  for (const Source &source : sources)
    for (std::sregex_iterator each(source.text.begin(), source.text.end(), import), end; each != end; ++each) {
      std::string folder = (*each)[1];
      std::replace(folder.begin(), folder.end(), '.', '/');
      folders[(*each)[2].str() + ".k"] = folder;
    }
  return folders;
}

/// Writes the sources where their imports find each other. A second file of one name, "x.k.1" in the package, gets a
/// folder of its own. Returns the paths.
Result<std::vector<std::string>> unpack(const std::vector<Source> &sources, const std::string &folder) {
  std::map<std::string, std::string> folders = foldersOfModules(sources);
  std::vector<std::string> paths;
  for (const Source &source : sources) {
    std::string name = source.name, beside = folders[name];
    if (size_t end = name.rfind(".k."); end != name.npos) {
      beside = name.substr(end + 3);
      name.resize(end + 2);
    }
    fs::path path = fs::path(folder) / beside / name;
    std::error_code error;
    fs::create_directories(path.parent_path(), error); // writing reports what is wrong
    if (Status status = format::writeFile(path.string(), source.text); !status)
      return status.error();
    paths.push_back(path.string());
  }
  return paths;
}

/// Returns whether the package has code for a target as a build names it: "x86-64-v3", "sm_90a", "ptx/sm_80".
bool hasCodeFor(const std::set<std::string> &targets, llvm::StringRef name) {
  std::string chip = name.split("sm_").second.str();
  bool isPtx = name.starts_with("ptx/");
  return targets.empty() || (!isPtx && targets.count(name.str())) ||
         (!chip.empty() && targets.count("compute_" + chip));
}

/// Adds a constant that the build set. Files that a build names see it, and files that they import do not. Packages do
/// not tell them apart.
Status addDefine(CompileOptions &options, llvm::StringRef define, const std::vector<Source> &sources,
                 const OpenedPackage &package) {
  auto [name, value] = define.split('=');
  std::regex declared("(?:^|\n)[ \t]*comptime[ \t]+" + name.str() + R"(\b)");
  auto declares = [&](const Source &source) { return std::regex_search(source.text, declared); };
  if (std::count_if(sources.begin(), sources.end(), declares) > 1)
    return refused(package, fmt::format("it was built with -D {}, a constant of several of its sources; build it from "
                                        "the source tree",
                                        name.str()));
  options.defines.emplace_back(name, value);
  return {};
}

/// Reads one word of the recorded options, with its leading "-".
Status addOption(CompileOptions &options, llvm::StringRef word, const OpenedPackage &package) {
  auto list = [](llvm::StringRef text) {
    llvm::SmallVector<llvm::StringRef> parts;
    text.split(parts, ',');
    return std::vector<std::string>(parts.begin(), parts.end());
  };
  if (word.consume_front("-O") && !word.getAsInteger(10, options.optLevel))
    return {};
  if (word.consume_front("--target ")) {
    for (const std::string &name : list(word))
      if (hasCodeFor(package.targets(), name))
        options.targets.push_back(name.starts_with("ptx/") ? "ptx" : name);
    return {};
  }
  if (word == "--fast")
    options.fast = true;
  else if (word.consume_front("--dtypes="))
    options.dtypes = list(word);
  else if (word.consume_front("--why "))
    options.explainedKernel = word.str();
  else if (word == "-g" || word.starts_with("--sanitize="))
    return refused(package, fmt::format("it was built with {}, whose messages and line tables have paths of files that "
                                        "it does not record; build it from the source tree",
                                        word.str()));
  else
    return refused(package, fmt::format("its record of options has '{}', which is not understood", word.str()));
  return {};
}

/// Writes the tuning rows to a file that a build reads.
Status addTuning(CompileOptions &options, const OpenedPackage &package, const std::string &folder) {
  const format::Section *section = package.reader.find("tuning");
  if (!section)
    return {};
  auto text = package.reader.read(*section, /*checkDigest=*/true);
  if (!text)
    return text.error();
  std::string path = (fs::path(folder) / "tuning.json").string();
  options.tuning = {path};
  return format::writeFile(path, text->bytes);
}

} // namespace

Result<CompileOptions> packedBuild(const OpenedPackage &package, const std::string &folder) {
  const auto producer = manifestOf(package.library).producer;
  if (producer.kpkg != kpkg_version() || producer.llvm != LLVM_VERSION_STRING)
    return refused(package, fmt::format("kpkg {} with LLVM {} made it, and this is kpkg {} with LLVM {}, whose code "
                                        "differs; build it from the source tree",
                                        producer.kpkg, producer.llvm, kpkg_version(), LLVM_VERSION_STRING));
  if (llvm::StringRef(producer.options).contains("; -O"))
    return refused(package, "it is merged from several builds; build it from the source tree");
  auto sources = sourcesOf(package);
  if (!sources)
    return sources.error();
  CompileOptions options;
  auto [before, defines] = llvm::StringRef(producer.options).split(" -D ");
  llvm::SmallVector<llvm::StringRef> words, constants;
  before.split(words, " -");
  for (size_t i = 0; i < words.size(); ++i) // the first one has its "-"
    if (Status status = addOption(options, (i == 0 ? "" : "-") + words[i].str(), package); !status)
      return status.error();
  defines.split(constants, " -D ", -1, /*KeepEmpty=*/false);
  for (llvm::StringRef define : constants)
    if (Status status = addDefine(options, define, *sources, package); !status)
      return status.error();
  auto paths = unpack(*sources, folder);
  if (!paths)
    return paths.error();
  options.inputs = std::move(*paths);
  if (Status status = addTuning(options, package, folder); !status)
    return status.error();
  return options;
}

} // namespace kpkg::command::edit
