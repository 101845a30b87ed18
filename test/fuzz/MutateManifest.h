// Declares the mutator of manifests, which keeps them JSON.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FUZZ_MUTATEMANIFEST_H
#define KPKG_FUZZ_MUTATEMANIFEST_H

#include <nlohmann/json_fwd.hpp>
#include <random>

namespace kpkg::fuzz {

/// Changes one to four values, keys or lists of a document. New keys and words are those of the manifest's records.
void mutateManifest(nlohmann::json &manifest, std::mt19937 &random);

/// Rewrites the schema of each op as its arguments and results have it, so that readers look beyond it. Ops that are
/// malformed stay as they are.
void repairSchemas(nlohmann::json &manifest);

/// Moves the sections together, in `data` and in the table, and makes their digests. Sections outside of `data` stay as
/// they are.
void repairSections(nlohmann::json &manifest, std::string &data);

} // namespace kpkg::fuzz
#endif
