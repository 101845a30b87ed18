// Fuzz target: reads any text as a manifest and a tuning table, and the schemas of its ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/CanonicalJson.h"
#include "runtime/package/ReadTables.h"
#include "runtime/package/Schema.h"
#include "runtime/package/Tuning.h"
#include "test/fuzz/MemoryBudget.h"
#include "test/fuzz/MutateManifest.h"

#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

using nlohmann::json;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

/// The manifest, then a zero byte and the tuning table's text.
static std::pair<std::string_view, std::string_view> split(const uint8_t *data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  size_t end = std::min(bytes.find('\0'), size);
  return {bytes.substr(0, end), bytes.substr(std::min(end + 1, size))};
}

/// Checks that a schema which was written is read as what it was written from.
static void checkSchema(const kpkg::package::OpEntry &op) {
  auto again = kpkg::package::readSchema(op.name.substr(0, op.name.rfind(':') + 1) + op.schema);
  if (!again || kpkg::package::schemaOf(*again) != op.schema)
    std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  kpkg::fuzz::MemoryBudget budget((4 << 20) + 64 * size);
  auto [text, tuning] = split(data, size);
  auto manifest = kpkg::format::parseJson(text);
  if (!manifest || !manifest->is_object())
    return 0;
  if (size % 8 == 0) // as slow as everything else together
    if (auto canonical = kpkg::format::writeCanonical(*manifest))
      if (!kpkg::format::parseCanonical(*canonical))
        std::abort();
  auto tables = kpkg::package::readTables(*manifest);
  if (!tables)
    return 0;
  for (const kpkg::package::OpEntry &op : (*tables)->ops)
    checkSchema(op);
  if (!tuning.empty())
    (void)kpkg::package::readTuning(tuning, **tables);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  std::mt19937 random(seed);
  if (random() % 4 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  auto [text, tuning] = split(data, size);
  auto manifest = kpkg::format::parseJson(text);
  if (!manifest)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::string table(tuning);
  if (auto rows = kpkg::format::parseJson(tuning); rows && random() % 4 == 0) {
    kpkg::fuzz::mutateManifest(*rows, random);
    table = rows->dump(-1, ' ', false, json::error_handler_t::replace);
  } else {
    kpkg::fuzz::mutateManifest(*manifest, random);
    if (random() % 4)
      kpkg::fuzz::repairSchemas(*manifest);
  }
  std::string changed = manifest->dump(-1, ' ', false, json::error_handler_t::replace) + '\0' + table;
  if (changed.size() > maxSize)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}
