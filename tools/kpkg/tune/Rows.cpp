// Reads and writes the rows of a package's tuning table, as text and in a package.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/tune/Rows.h"
#include "runtime/format/CanonicalJson.h"
#include "runtime/format/Reader.h"
#include "runtime/format/Rewrite.h"
#include "runtime/format/Writer.h"
#include <algorithm>

namespace kpkg::command::tune {

using nlohmann::json;

static constexpr const char *sectionName = "tuning";

Result<Rows> Rows::of(const std::string &package) {
  auto reader = format::Reader::open(package);
  if (!reader)
    return reader.error();
  Rows rows;
  const format::Section *section = reader->find(sectionName);
  if (!section || section->kind != sectionName)
    return rows;
  auto text = reader->read(*section, /*checkDigest=*/true);
  if (!text)
    return text.error();
  auto table = format::parseCanonical(text->bytes);
  if (!table)
    return table.error();
  for (json row : table->value("rows", json::array())) {
    json choice = row.value("choice", json::object());
    row.erase("choice");
    rows.set(row, choice);
  }
  return rows;
}

json Rows::table() const {
  json rows = json::array();
  for (const auto &[text, row] : choices) {
    rows.push_back(row.key);
    rows.back()["choice"] = row.choice;
  }
  return {{"format", 1}, {"rows", std::move(rows)}};
}

Result<std::string> withTable(const std::string &package, const json &table, bool &wasSigned) {
  auto reader = format::Reader::open(package);
  if (!reader)
    return reader.error();
  auto text = format::writeCanonical(table);
  if (!text)
    return text.error();
  wasSigned = std::any_of(reader->sections().begin(), reader->sections().end(),
                          [](const format::Section &section) { return section.kind == "signature"; });
  format::Writer writer;
  if (Status status = format::copySections(*reader, writer,
                                           [](const format::Section &section) { return section.name != sectionName; });
      !status)
    return status.error();
  if (Status status =
          writer.add(sectionName, sectionName, std::move(*text), format::Compression::Zstd, /*required=*/false);
      !status)
    return status.error();
  return writer.finish(reader->manifest());
}

} // namespace kpkg::command::tune
