// Reads and writes files in the safetensors format: a JSON header, then the bytes of all tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/Safetensors.h"
#include "runtime/format/CanonicalJson.h"

#include <nlohmann/json.hpp>

namespace kpkg::format {

using nlohmann::json;

static constexpr const char *metadataKey = "__metadata__";
/// The size of the header stands before it, little-endian.
static constexpr size_t sizeBytes = 8;

Result<std::string> Safetensors::text() const {
  json header = json::object();
  if (!metadata.empty())
    header[metadataKey] = metadata;
  size_t end = 0;
  for (const auto &[name, entry] : tensors) {
    size_t begin = end;
    end += entry.bytes.size();
    header[name] = {{"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {begin, end}}};
  }
  auto written = writeCanonical(header);
  if (!written)
    return written.error();
  written->resize((written->size() + sizeBytes - 1) / sizeBytes * sizeBytes, ' ');
  std::string all;
  all.reserve(sizeBytes + written->size() + end);
  for (size_t i = 0; i < sizeBytes; ++i)
    all.push_back(char(uint64_t(written->size()) >> (8 * i) & 0xff));
  all += *written;
  for (const auto &[name, entry] : tensors)
    all += entry.bytes;
  return all;
}

/// Returns an error's predicate, or an empty text.
static std::string readEntry(const json &value, std::string_view data, Safetensors::Entry &entry) {
  bool hasAll = value.is_object() && value.contains("dtype") && value["dtype"].is_string() && value.contains("shape") &&
                value["shape"].is_array() && value.contains("data_offsets") && value["data_offsets"].is_array() &&
                value["data_offsets"].size() == 2;
  if (!hasAll)
    return "has no `dtype`, `shape` and `data_offsets`";
  entry.dtype = value["dtype"];
  for (const json &extent : value["shape"]) {
    if (!extent.is_number_unsigned())
      return "has a `shape` that is not a list of extents";
    entry.shape.push_back(extent);
  }
  const json &offsets = value["data_offsets"];
  if (!offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned() || offsets[0] > offsets[1] ||
      offsets[1].get<uint64_t>() > data.size())
    return "has `data_offsets` outside the file";
  size_t begin = offsets[0], end = offsets[1];
  entry.bytes = data.substr(begin, end - begin);
  return "";
}

Result<Safetensors> Safetensors::parse(std::string_view bytes, const std::string &name) {
  auto refuse = [&](const std::string &why) {
    return Error{KPKG_ERROR_FORMAT, "'" + name + "' is no safetensors file: " + why, {}, {}, {}};
  };
  uint64_t size = 0;
  for (size_t i = 0; i < sizeBytes && i < bytes.size(); ++i)
    size |= uint64_t(static_cast<unsigned char>(bytes[i])) << (8 * i);
  if (bytes.size() < sizeBytes || size > bytes.size() - sizeBytes)
    return refuse("its header is longer than the file");
  auto header = parseJson(bytes.substr(sizeBytes, size));
  if (!header || !header->is_object())
    return refuse("its header " + (header ? "is no object" : header.error().message));
  Safetensors file;
  for (const auto &[key, value] : header->items()) {
    if (key != metadataKey) {
      if (std::string why = readEntry(value, bytes.substr(sizeBytes + size), file.tensors[key]); !why.empty())
        return refuse("'" + key + "' " + why);
      continue;
    }
    for (const auto &[text, item] : value.items())
      if (item.is_string())
        file.metadata[text] = item;
  }
  return file;
}

} // namespace kpkg::format
