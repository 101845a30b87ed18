// Fuzz target: opens, verifies and describes any package and asks it for shapes; the process must never crash.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/CanonicalJson.h"
#include "runtime/format/Container.h"
#include "test/fuzz/MemoryBudget.h"
#include "test/fuzz/MutateManifest.h"
#include "test/fuzz/PackageFile.h"

#include <cstring>
#include <kpkg/kpkg.h>
#include <nlohmann/json.hpp>
#include <string>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

/// Turns the input into a package file. After an initial 'R', the rest is the file. Otherwise the input is a manifest,
/// a zero byte and the sections.
static std::string toFile(const uint8_t *data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  if (bytes.starts_with('R'))
    return std::string(bytes.substr(1));
  size_t end = std::min(bytes.find('\0'), bytes.size());
  return kpkg::fuzz::packageFile(bytes.substr(0, end), bytes.substr(std::min(end + 1, bytes.size())));
}

/// Computes shapes only: no kernel of an untrusted file runs.
static void useOp(const kpkg_op *op) {
  kpkg_op_info info = {};
  info.struct_size = sizeof info;
  kpkg_op_describe(op, &info);
  int64_t shape[3] = {3, 4, 5};
  kpkg_tensor tensor = {nullptr, shape, nullptr, 2, KPKG_FLOAT32, {KPKG_DEVICE_CPU, 0}};
  kpkg_value values[64] = {};
  for (int32_t i = 0; i < info.argument_count && i < 64; ++i) {
    kpkg_argument_info argument = {};
    argument.struct_size = sizeof argument;
    kpkg_op_argument(op, i, &argument);
    if (argument.kind == KPKG_TENSOR) {
      values[i].kind = KPKG_TENSOR;
      values[i].as.tensor = &tensor;
    } else if (argument.kind == KPKG_INT || argument.kind == KPKG_FLOAT) {
      values[i].kind = KPKG_INT;
      values[i].as.integer = 1;
    }
  }
  kpkg_result results[64];
  kpkg_call call = {};
  call.struct_size = sizeof call;
  call.arguments = values;
  call.argument_count = std::min(info.argument_count, 64);
  call.results = results;
  call.result_capacity = 64;
  kpkg_op_infer(op, &call);
  for (kpkg_text_format format : {KPKG_TEXT, KPKG_JSON}) {
    kpkg_string *text = nullptr;
    if (kpkg_op_explain(op, &call, format, &text) == KPKG_OK)
      kpkg_string_free(text);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string file = toFile(data, size);
  kpkg::fuzz::MemoryBudget budget((24 << 20) + 4 * size + kpkg::format::maxExpanded(size));
  kpkg_open_options options = {sizeof options, KPKG_TRUST_ANY, nullptr, 0};
  kpkg_library *library = nullptr;
  if (kpkg_library_open_memory(file.data(), file.size(), "fuzz", &options, &library) != KPKG_OK)
    return 0;
  for (size_t i = 0; i < kpkg_library_op_count(library) && i < 8; ++i)
    useOp(kpkg_library_op_at(library, i));
  kpkg_library_verify(library);
  kpkg_library_close(library);
  return 0;
}

/// Changes the manifest, and mends schemas and sections in most runs, so that reading goes on behind their checks.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  std::mt19937 random(seed);
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  size_t end = bytes.find('\0');
  if (random() % 4 == 0 || bytes.starts_with('R') || end == bytes.npos)
    return LLVMFuzzerMutate(data, size, maxSize);
  auto manifest = kpkg::format::parseJson(bytes.substr(0, end));
  if (!manifest)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::string sections(bytes.substr(end + 1));
  kpkg::fuzz::mutateManifest(*manifest, random);
  if (random() % 8)
    kpkg::fuzz::repairSchemas(*manifest);
  if (random() % 8)
    kpkg::fuzz::repairSections(*manifest, sections);
  std::string changed = manifest->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\0' + sections;
  if (changed.size() > maxSize)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}
