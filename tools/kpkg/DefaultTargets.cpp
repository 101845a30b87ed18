// Determines the targets of a build whose command line names none.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/DefaultTargets.h"
#include "compiler/driver/Targets.h"
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kpkg::command {

namespace {

/// PyTorch's names of architectures from Ampere on, and their build targets.
constexpr std::pair<std::string_view, std::string_view> architectures[] = {
    {"Ampere", "8.0;8.6+PTX"}, {"Ada", "8.9+PTX"}, {"Hopper", "9.0+PTX"}, {"Blackwell", "10.0;12.0+PTX"}};

/// Returns "sm_90a" for "9.0a"; empty for other words.
std::string chipOf(const std::string &capability) {
  std::string chip = "sm_";
  size_t dots = 0;
  for (char c : capability)
    if (c == '.')
      ++dots;
    else
      chip += c;
  bool isNumber = !capability.empty() && capability.front() >= '0' && capability.front() <= '9';
  return isNumber && dots == 1 ? chip : "";
}

class ArchList {
public:
  /// Adds the items of a list, separated by semicolons, spaces or commas.
  void add(std::string_view list) {
    std::string item;
    for (char c : std::string(list) + ";")
      if (c != ';' && c != ' ' && c != ',')
        item += c;
      else if (!item.empty())
        addItem(std::exchange(item, {}));
  }
  std::vector<std::string> names, unserved;

private:
  void addItem(std::string item) {
    for (auto [name, list] : architectures)
      if (item == name || item == std::string(name) + "+PTX")
        return add(list);
    if (item.ends_with("+PTX")) {
      addName("ptx");
      item.resize(item.size() - 4);
    }
    std::string chip = chipOf(item);
    auto known = compiler::resolveTargets({chip});
    if (chip.empty() || !known) {
      llvm::consumeError(known.takeError());
      unserved.push_back(item);
    } else {
      addName(chip);
    }
  }
  void addName(const std::string &name) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
};

/// Returns an empty string for an unset variable.
std::string valueOf(const char *variable) {
  const char *value = std::getenv(variable);
  return value ? value : "";
}

} // namespace

std::vector<std::string> splitTargets(const std::string &text) {
  std::vector<std::string> targets;
  for (size_t start = 0; start <= text.size();) {
    size_t comma = std::min(text.find(',', start), text.size());
    targets.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  return targets;
}

DefaultTargets defaultTargets() {
  DefaultTargets chosen;
  if (std::string list = valueOf("KPKG_TARGET"); !list.empty()) {
    chosen.names = splitTargets(list);
    if (list != "native")
      chosen.notes.push_back(fmt::format("KPKG_TARGET: built for {}", fmt::join(chosen.names, ", ")));
  } else if (std::string archs = valueOf("TORCH_CUDA_ARCH_LIST"); !archs.empty()) {
    ArchList found;
    found.add(archs);
    if (!found.unserved.empty())
      chosen.notes.push_back(fmt::format("TORCH_CUDA_ARCH_LIST: {} {} not served and left out",
                                         fmt::join(found.unserved, ", "), found.unserved.size() == 1 ? "is" : "are"));
    if (found.names.empty())
      return chosen;
    chosen.names = std::move(found.names);
    chosen.names.push_back("native");
    chosen.notes.push_back(fmt::format("TORCH_CUDA_ARCH_LIST: built for {}", fmt::join(chosen.names, ", ")));
  }
  return chosen;
}

} // namespace kpkg::command
