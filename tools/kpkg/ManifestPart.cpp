// Reads a part of a manifest that may have any form.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/ManifestPart.h"
#include "compiler/diag/Render.h"

namespace kpkg::command {

using nlohmann::json;

static const json nothing;

ManifestPart ManifestPart::operator[](const char *key) const {
  if (!value->is_object())
    return ManifestPart(nothing);
  auto found = value->find(key);
  return ManifestPart(found == value->end() ? nothing : *found);
}

ManifestPart ManifestPart::operator[](size_t index) const {
  return ManifestPart(value->is_array() && index < value->size() ? (*value)[index] : nothing);
}

std::vector<ManifestPart> ManifestPart::items() const {
  std::vector<ManifestPart> parts;
  if (value->is_array())
    for (const json &item : *value)
      parts.emplace_back(item);
  return parts;
}

std::vector<std::pair<std::string, ManifestPart>> ManifestPart::members() const {
  std::vector<std::pair<std::string, ManifestPart>> parts;
  if (value->is_object())
    for (const auto &[name, member] : value->items())
      parts.emplace_back(compiler::printable(name), ManifestPart(member));
  return parts;
}

std::string ManifestPart::text(const std::string &absent) const {
  if (value->is_null())
    return absent;
  return compiler::printable(value->is_string() ? value->get<std::string>()
                                                : value->dump(-1, ' ', false, json::error_handler_t::replace));
}

uint64_t ManifestPart::number() const { return value->is_number_unsigned() ? value->get<uint64_t>() : 0; }

} // namespace kpkg::command
