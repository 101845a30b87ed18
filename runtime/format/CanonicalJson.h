// JSON with one spelling: keys sorted, none twice, no white space, shortest numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FORMAT_CANONICALJSON_H
#define KPKG_FORMAT_CANONICALJSON_H

#include <kpkg/result.hpp>
#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace kpkg::format {

/// Any spelling. Refuses what is not JSON, a key that comes twice in an object, and deeper nesting than
/// `maxManifestDepth`; the message is a predicate, "is not JSON: ...".
Result<nlohmann::json> parseJson(std::string_view text);

/// Refuses anything that writeCanonical would have spelt otherwise, and nesting deeper than `maxManifestDepth`.
Result<nlohmann::json> parseCanonical(std::string_view text);

/// The one spelling of `value`. Numbers must be finite and text valid UTF-8, else an error.
Result<std::string> writeCanonical(const nlohmann::json &value);

} // namespace kpkg::format
#endif
