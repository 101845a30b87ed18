// Reads records of the manifest from JSON, with limits. Files are not trusted.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_MANIFEST_READ_H
#define KPKG_MANIFEST_READ_H

#include "runtime/manifest/Records.h"

#include <nlohmann/json_fwd.hpp>

#include <string_view>

namespace kpkg::manifest {

/// An error in a manifest: the place, the value that was found, and the expected one.
struct Refusal {
  std::string why;
};

/// The place of a value. Chains of places are on the stack; only a refusal makes their text.
struct Place {
  const Place *outer = nullptr;
  std::string_view key; ///< of a member; empty for an item of a list
  size_t index = 0;

  /// "instances[3].launch.threads"
  std::string str() const;
};

/// Reads a record. Unknown keys are ignored. Throws Refusal if a field is absent, of the wrong type or beyond its
/// limit.
template <class Record> Record read(const nlohmann::json &value, const Place &place = {});

/// Reads one field of the manifest.
template <class Type> Type readField(const nlohmann::json &manifest, Type Manifest::*member);

/// Returns the first of the manifest's `requires` that this version does not know; nothing if it knows all.
std::optional<std::string> unknownRequirement(const nlohmann::json &manifest);

} // namespace kpkg::manifest
#endif
