// JSON with one spelling: keys sorted, none twice, no white space, shortest numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/CanonicalJson.h"
#include "runtime/format/Container.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace kpkg::format {

using nlohmann::json;

static Error formatError(std::string message) { return {KPKG_ERROR_FORMAT, std::move(message), {}, {}, {}}; }

static bool isFinite(const json &value) {
  if (value.is_number_float())
    return std::isfinite(value.get<double>());
  if (value.is_structured())
    return std::all_of(value.begin(), value.end(), [](const json &item) { return isFinite(item); });
  return true;
}

Result<std::string> writeCanonical(const json &value) {
  // dump() would write null for them without a word.
  if (!isFinite(value))
    return formatError("the manifest holds a number that is not finite");
  try {
    return value.dump();
  } catch (const json::exception &error) {
    return formatError(std::string("the manifest cannot be written: ") + error.what());
  }
}

Result<json> parseCanonical(std::string_view text) {
  struct Refusal {
    std::string why;
  };
  std::vector<std::set<std::string>> keys;
  auto check = [&](int depth, json::parse_event_t event, json &parsed) {
    if (depth > maxManifestDepth)
      throw Refusal{"is nested deeper than " + std::to_string(maxManifestDepth)};
    if (event == json::parse_event_t::object_start)
      keys.emplace_back();
    else if (event == json::parse_event_t::object_end)
      keys.pop_back();
    else if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      throw Refusal{"has the key '" + parsed.get<std::string>() + "' twice in one object"};
    return true;
  };
  json value;
  try {
    value = json::parse(text.begin(), text.end(), check);
  } catch (const Refusal &refusal) {
    return formatError("the manifest " + refusal.why);
  } catch (const json::exception &error) {
    return formatError(std::string("the manifest is not JSON: ") + error.what());
  }
  auto spelling = writeCanonical(value);
  if (!spelling)
    return spelling.error();
  if (*spelling != text) {
    size_t at =
        size_t(std::mismatch(text.begin(), text.end(), spelling->begin(), spelling->end()).first - text.begin());
    return formatError("the manifest is not canonical JSON (sorted keys, no white space) at byte " +
                       std::to_string(at));
  }
  return value;
}

} // namespace kpkg::format
