// Describes records of the manifest to people, by the labels of their fields.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_MANIFEST_DESCRIBE_H
#define KPKG_MANIFEST_DESCRIBE_H

#include "runtime/manifest/Records.h"

#include <nlohmann/json_fwd.hpp>

namespace kpkg::manifest {

/// Describes the resources of GPU code: "128 threads", "30 registers", "no spills". Texts are those of the file.
std::vector<std::string> describe(const Launch &launch);

/// Describes an assumption: "stride 1 in dimension 0", "address by 16 bytes".
std::vector<std::string> describe(const Fact &fact);

/// Returns all numbers and flags by their keys, and the lengths of lists.
nlohmann::ordered_json figures(const Launch &launch);

} // namespace kpkg::manifest
#endif
