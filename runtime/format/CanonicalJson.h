// Declares canonical JSON: sorted unique keys, no white space, shortest numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FORMAT_CANONICALJSON_H
#define KPKG_FORMAT_CANONICALJSON_H

#include <kpkg/result.hpp>
#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace kpkg::format {

/// Parses JSON with any formatting. Refuses invalid JSON, duplicate keys in an object, and nesting deeper than
/// `maxManifestDepth`. The message is a predicate, "is not JSON: ...".
Result<nlohmann::json> parseJson(std::string_view text);

/// Parses canonical JSON. Refuses texts that writeCanonical would not produce, and nesting deeper than
/// `maxManifestDepth`.
Result<nlohmann::json> parseCanonical(std::string_view text);

/// Returns the canonical text of `value`. Fails unless numbers are finite and text is valid UTF-8.
Result<std::string> writeCanonical(const nlohmann::json &value);

} // namespace kpkg::format
#endif
