// JSON with one spelling: keys sorted, none twice, no white space, shortest numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FORMAT_CANONICALJSON_H
#define KPKG_FORMAT_CANONICALJSON_H

#include <kpkg/result.hpp>
#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace kpkg::format {

/// Refuses anything that writeCanonical would have spelt otherwise, and nesting deeper than `maxManifestDepth`.
Result<nlohmann::json> parseCanonical(std::string_view text);

/// The one spelling of `value`. Numbers must be finite and text valid UTF-8, else an error.
Result<std::string> writeCanonical(const nlohmann::json &value);

} // namespace kpkg::format
#endif
