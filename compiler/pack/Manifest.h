// The manifest of a package, from what a build made.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/pack/Package.h"
#include <nlohmann/json.hpp>

namespace kpkg::compiler {

/// Everything but `format` and `sections`, which the container's writer fills in. docs/package-format.md describes the
/// keys.
nlohmann::json makeManifest(const PackageContents &contents);

/// A parameter's value as the manifest has it.
nlohmann::json valueRecord(const Value &value);

/// Names of sections.
std::string hostSectionName(const std::string &target);
std::string planSectionName(const std::string &op);
std::string shapePlanSectionName(const std::string &op);
std::string gpuPlanSectionName(const std::string &op);
std::string gpuShapePlanSectionName(const std::string &op);

} // namespace kpkg::compiler
