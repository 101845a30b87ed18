// `kpkg version`: prints the versions that determine a package's contents.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/Commands.h"
#include "llvm/Config/llvm-config.h"
#include <fmt/format.h>
#include <kpkg/kpkg.hpp>
#include <nlohmann/json.hpp>

namespace kpkg::command {

static std::vector<std::string> cpuTargets() {
  std::vector<std::string> targets;
  for (size_t i = 0; const char *target = kpkg_cpu_target(i); ++i)
    targets.push_back(target);
  return targets;
}

std::string versionText() {
  return fmt::format("kpkg {}, LLVM {}, this CPU runs {}", kpkg_version(), LLVM_VERSION_STRING,
                     fmt::join(cpuTargets(), ", "));
}

void addVersion(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("version", "Print the versions of kpkg and LLVM and what this CPU can run");
  command->footer("Example: kpkg version --json");
  auto asJson = std::make_shared<bool>(false);
  command->add_flag("--json", *asJson, "One JSON object");
  command->callback([asJson] {
    if (*asJson) {
      nlohmann::json text = {{"kpkg", kpkg_version()}, {"llvm", LLVM_VERSION_STRING}, {"cpu_targets", cpuTargets()}};
      fmt::print("{}\n", text.dump());
    } else {
      fmt::print("{}\n", versionText());
    }
  });
}

} // namespace kpkg::command
