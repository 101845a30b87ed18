// Fuzz target: opens, verifies and describes any package and asks it for shapes; the process must never crash.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/Container.h"
#include "runtime/format/Digest.h"

#include <kpkg/kpkg.h>

#include <string>

/// Turns the input into a package file.
///
/// After an initial 'R', the rest is the file. Otherwise the input is a manifest, a zero byte and the sections. The
/// function adds a valid header, because no mutation would find the manifest's SHA-256.
static std::string toFile(const uint8_t *data, size_t size) {
  std::string bytes(reinterpret_cast<const char *>(data), size);
  if (size && data[0] == 'R')
    return bytes.substr(1);
  size_t end = std::min(bytes.find('\0'), bytes.size());
  std::string manifest = bytes.substr(0, end), sections = bytes.substr(std::min(end + 1, bytes.size()));
  std::string file(kpkg::format::headerBytes, '\0');
  std::copy(kpkg::format::magic.begin(), kpkg::format::magic.end(), file.begin());
  file[8] = char(kpkg::format::majorVersion);
  file[10] = char(kpkg::format::minorVersion);
  for (size_t i = 0; i < 8; ++i)
    file[16 + i] = char(manifest.size() >> (8 * i) & 0xff);
  kpkg::format::Sha256 digest = kpkg::format::sha256(manifest);
  std::copy(digest.begin(), digest.end(), file.begin() + 32);
  file += manifest;
  if (!sections.empty())
    file.resize(kpkg::format::alignUp(file.size()), '\0');
  return file + sections;
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
