// Describes a package's instances in words.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/ManifestPart.h"

namespace kpkg::command {

/// Returns an assignment such as "T=float32", also for objects and lists.
std::string assigned(const std::string &name, const ManifestPart &value);

/// Returns "gemm_tiles[T=float32] vector sm_90a".
std::string titleOf(const ManifestPart &manifest, const ManifestPart &instance);

/// Describes the resources of GPU code: "128 threads", "30 registers", "no spills".
std::vector<std::string> describeLaunch(const ManifestPart &launch);

} // namespace kpkg::command
