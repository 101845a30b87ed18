// Describes a package's instances in words.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/manifest/Records.h"
#include <kpkg/kpkg.hpp>
#include <string>

namespace kpkg::command {

/// Returns the manifest's records. An open library has a valid manifest.
manifest::Manifest manifestOf(const Library &library);

/// Returns "gemm_tiles[T=float32] vector sm_90a".
std::string titleOf(const manifest::Manifest &manifest, const manifest::Instance &instance);

/// Describes the resources of GPU code: "128 threads", "30 registers", "no spills".
std::vector<std::string> describeLaunch(const manifest::Launch &launch);

} // namespace kpkg::command
