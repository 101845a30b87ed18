// Fuzz target: opens any file as a container, and reads its sections and signatures.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/CanonicalJson.h"
#include "runtime/format/Container.h"
#include "runtime/format/Reader.h"
#include "test/fuzz/MemoryBudget.h"
#include "test/fuzz/MutateManifest.h"
#include "test/fuzz/PackageFile.h"

#include <cstring>
#include <nlohmann/json.hpp>

using nlohmann::json;
using namespace kpkg;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view file(reinterpret_cast<const char *>(data), size);
  fuzz::MemoryBudget budget((4 << 20) + 4 * size + format::maxExpanded(size));
  auto reader = format::Reader::fromMemory(file, "fuzz");
  if (!reader)
    return 0;
  for (const format::Section &section : reader->sections())
    (void)reader->read(section, /*withDigest=*/false);
  if (reader->checkSections())
    (void)reader->signers();
  return 0;
}

/// Changes the manifest and makes header, offsets and digests agree with it, or changes bytes.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  std::mt19937 random(seed);
  unsigned way = random() % 8;
  if (way == 0 || size < format::headerBytes)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::string file(reinterpret_cast<const char *>(data), size), manifest(fuzz::manifestOf(file)), sections;
  if (size_t start = format::alignUp(format::headerBytes + manifest.size()); start < size)
    sections = file.substr(start);
  if (way < 3) { // bytes of the manifest
    manifest.resize(manifest.size() + 16);
    manifest.resize(
        LLVMFuzzerMutate(reinterpret_cast<uint8_t *>(manifest.data()), manifest.size() - 16, manifest.size()));
  } else if (way < 5 && !sections.empty()) { // bytes of the sections
    sections.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t *>(sections.data()), sections.size(), sections.size()));
  }
  if (way >= 3)
    if (auto value = format::parseJson(manifest)) {
      if (way >= 5)
        fuzz::mutateManifest(*value, random);
      if (random() % 4)
        fuzz::repairSections(*value, sections);
      manifest = value->dump(-1, ' ', false, json::error_handler_t::replace);
    }
  file = fuzz::packageFile(manifest, sections);
  if (file.size() > maxSize)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::memcpy(data, file.data(), file.size());
  return file.size();
}
