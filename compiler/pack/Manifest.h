// Writes the manifest of a package from the results of a build.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/pack/PackageContents.h"
#include <nlohmann/json.hpp>

namespace kpkg::compiler {

/// Returns the manifest except `format` and `sections`, which the container's writer adds.
nlohmann::json makeManifest(const PackageContents &contents);

/// Returns a parameter's value in the manifest's format.
manifest::Value valueRecord(const Value &value);

/// Return names of sections.
std::string hostSectionName(const std::string &target);
std::string planSectionName(const std::string &op);
std::string shapePlanSectionName(const std::string &op);
std::string gpuPlanSectionName(const std::string &op);
std::string gpuShapePlanSectionName(const std::string &op);

} // namespace kpkg::compiler
