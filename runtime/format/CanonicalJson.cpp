// Implements canonical JSON: sorted unique keys, no white space, shortest numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/CanonicalJson.h"
#include "runtime/format/Container.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
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
  // dump() would silently write null for these.
  if (!isFinite(value))
    return formatError("the manifest holds a number that is not finite");
  try {
    return value.dump();
  } catch (const json::exception &error) {
    return formatError(std::string("the manifest cannot be written: ") + error.what());
  }
}

namespace {

/// Builds a value from the parser's events. The library's own callbacks visit all elements of a list whenever one ends,
/// which takes quadratic time for long lists.
class Builder : public nlohmann::json_sax<json> {
public:
  json value;
  std::string refusal;

  bool null() override { return add(nullptr); }
  bool boolean(bool item) override { return add(item); }
  bool number_integer(number_integer_t item) override { return add(item); }
  bool number_unsigned(number_unsigned_t item) override { return add(item); }
  bool number_float(number_float_t item, const string_t &) override { return add(item); }
  bool string(string_t &item) override { return add(std::move(item)); }
  bool binary(binary_t &item) override { return add(std::move(item)); }
  bool start_object(size_t) override { return open(json::object()); }
  bool start_array(size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t &name) override {
    auto [place, isNew] = stack.back()->get_ref<json::object_t &>().try_emplace(name, nullptr);
    if (!isNew)
      return refuse("has the key '" + name + "' twice in one object");
    member = &place->second;
    return true;
  }
  bool parse_error(size_t, const std::string &, const json::exception &error) override {
    // The parser quotes what it read, which need not be UTF-8; messages are.
    std::string why = error.what();
    std::replace_if(why.begin(), why.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
    return refuse("is not JSON: " + why);
  }

private:
  bool refuse(std::string why) {
    refusal = std::move(why);
    return false;
  }
  json &place(json item) {
    if (stack.empty())
      return value = std::move(item);
    if (stack.back()->is_object())
      return *member = std::move(item);
    return stack.back()->get_ref<json::array_t &>().emplace_back(std::move(item));
  }
  bool add(json item) {
    place(std::move(item));
    return true;
  }
  bool open(json empty) {
    if (stack.size() == size_t(maxManifestDepth))
      return refuse("is nested deeper than " + std::to_string(maxManifestDepth));
    // A list's elements only move when it grows, and by then this one is closed.
    stack.push_back(&place(std::move(empty)));
    return true;
  }
  bool close() {
    stack.pop_back();
    return true;
  }

  std::vector<json *> stack;
  json *member = nullptr; ///< of the innermost object, for the last key
};

} // namespace

Result<json> parseJson(std::string_view text) {
  Builder builder;
  if (!json::sax_parse(text.begin(), text.end(), &builder))
    return formatError(std::move(builder.refusal));
  return std::move(builder.value);
}

Result<json> parseCanonical(std::string_view text) {
  auto value = parseJson(text);
  if (!value)
    return formatError("the manifest " + value.error().message);
  auto spelling = writeCanonical(*value);
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
