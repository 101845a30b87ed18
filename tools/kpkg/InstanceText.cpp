// Describes a package's instances in words.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/InstanceText.h"
#include "compiler/diag/Render.h"
#include "runtime/manifest/Describe.h"
#include "runtime/manifest/Read.h"
#include "runtime/manifest/Write.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kpkg::command {

using compiler::printable;

manifest::Manifest manifestOf(const Library &library) {
  return manifest::read<manifest::Manifest>(nlohmann::json::parse(library.manifest()));
}

std::string titleOf(const manifest::Manifest &manifest, const manifest::Instance &instance) {
  const manifest::Kernel &kernel = manifest.kernels[instance.kernel];
  std::vector<std::string> params;
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const manifest::Value &value = instance.paramValues[i];
    const auto *text = std::get_if<std::string>(&value);
    params.push_back(fmt::format("{}={}", kernel.params[i].name, text ? *text : manifest::toJson(value).dump()));
  }
  return printable(
      fmt::format("{}[{}] {} {}", kernel.name, fmt::join(params, ", "), instance.variant, instance.target));
}

std::vector<std::string> describeLaunch(const manifest::Launch &launch) {
  std::vector<std::string> parts = manifest::describe(launch);
  for (std::string &part : parts)
    part = printable(part);
  return parts;
}

} // namespace kpkg::command
