// Maps safetensors files: the length of a header in 8 bytes, the header in JSON, and the data.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "checkpoint.h"
#include "config.h"

#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace decoder {

using nlohmann::json;

namespace {

constexpr uint64_t longestHeader = 100'000'000; // as the safetensors library

[[noreturn]] void refuse(const std::string &path, const std::string &what) {
  throw std::runtime_error(path + ": " + what);
}

std::string inBrackets(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

/// Maps a file; the last copy of the pointer unmaps it.
std::shared_ptr<const char> mapFile(const std::string &path, uint64_t &size) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status = {};
  if (file < 0 || ::fstat(file, &status) != 0) {
    std::string reason = std::strerror(errno);
    if (file >= 0)
      ::close(file);
    refuse(path, "cannot be opened: " + reason);
  }
  size = uint64_t(status.st_size);
  void *memory = size ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  ::close(file);
  if (memory == MAP_FAILED)
    refuse(path, size ? "cannot be mapped into memory" : "is empty");
  return {static_cast<const char *>(memory),
          [size](const char *mapped) { ::munmap(const_cast<char *>(mapped), size); }};
}

StoredTensor describe(const std::string &path, const std::string &name, const json &entry, const char *data,
                      uint64_t size) {
  auto isCount = [](const json &value) { return value.is_number_unsigned(); };
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() || !entry.contains("shape") ||
      !entry["shape"].is_array() || !entry.contains("data_offsets") || !entry["data_offsets"].is_array() ||
      entry["data_offsets"].size() != 2 || !isCount(entry["data_offsets"][0]) || !isCount(entry["data_offsets"][1]))
    refuse(path, "tensor '" + name + "' needs a dtype, a shape and two data_offsets");
  StoredTensor tensor;
  std::string dtype = entry["dtype"].get<std::string>();
  tensor.dtype = dtype == "F32"    ? kpkg::DType::Float32
                 : dtype == "F16"  ? kpkg::DType::Float16
                 : dtype == "BF16" ? kpkg::DType::BFloat16
                                   : kpkg::DType::None; // an error only where the model needs it
  uint64_t begin = entry["data_offsets"][0].get<uint64_t>(), end = entry["data_offsets"][1].get<uint64_t>();
  if (begin > end || end > size)
    refuse(path, "tensor '" + name + "' has bytes " + std::to_string(begin) + " to " + std::to_string(end) + " of " +
                     std::to_string(size) + ": the file is truncated or damaged");
  tensor.data = data + begin;
  tensor.bytes = end - begin;
  uint64_t elements = 1;
  for (const json &extent : entry["shape"]) {
    uint64_t n = isCount(extent) ? extent.get<uint64_t>() : UINT64_MAX;
    if (n > size || (n != 0 && elements > size / n))
      refuse(path, "tensor '" + name + "' has the impossible shape " + entry["shape"].dump());
    elements *= n;
    tensor.shape.push_back(int64_t(n));
  }
  uint64_t width = dtype == "F32" ? 4 : 2;
  if (tensor.dtype != kpkg::DType::None && tensor.bytes != elements * width)
    refuse(path, "tensor '" + name + "' of shape " + inBrackets(tensor.shape) + " and dtype " + dtype + " has " +
                     std::to_string(tensor.bytes) + " bytes, expected " + std::to_string(elements * width));
  return tensor;
}

} // namespace

void Checkpoint::readFile(const std::string &path) {
  uint64_t size = 0, length = 0;
  std::shared_ptr<const char> file = mapFile(path, size);
  if (size >= 8)
    std::memcpy(&length, file.get(), 8); // little-endian, as every CPU that kpkg compiles for
  if (size < 8 || length > size - 8 || length > longestHeader)
    refuse(path, "is no safetensors file: its header has " + std::to_string(length) + " bytes, the file " +
                     std::to_string(size));
  json header;
  try {
    header = json::parse(file.get() + 8, file.get() + 8 + length);
  } catch (const json::exception &error) {
    refuse(path, std::string("the header is no JSON: ") + error.what());
  }
  if (!header.is_object())
    refuse(path, "the header is no JSON object");
  for (const auto &[name, entry] : header.items())
    if (name != "__metadata__" &&
        !tensors.emplace(name, describe(path, name, entry, file.get() + 8 + length, size - 8 - length)).second)
      refuse(path, "tensor '" + name + "' is in another file too");
  files.push_back(std::move(file));
}

Checkpoint::Checkpoint(const std::string &folder) : folder(folder) {
  std::string index = folder + "/model.safetensors.index.json";
  if (!std::filesystem::exists(index)) {
    readFile(folder + "/model.safetensors");
    return;
  }
  json listed = readJson(index);
  if (!listed.is_object() || !listed.contains("weight_map") || !listed["weight_map"].is_object())
    refuse(index, "'weight_map' is missing");
  std::set<std::string> names;
  for (const auto &[tensor, file] : listed["weight_map"].items()) {
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos)
      refuse(index, "tensor '" + tensor + "' is in " + file.dump() + ", expected the name of a file of the folder");
    names.insert(file.get<std::string>());
  }
  for (const std::string &name : names)
    readFile(folder + "/" + name);
}

const StoredTensor &Checkpoint::tensor(const std::string &name, const std::vector<int64_t> &shape) const {
  auto found = tensors.find(name);
  if (found == tensors.end())
    refuse(folder, "the checkpoint has no tensor '" + name + "'");
  if (found->second.shape != shape)
    refuse(folder,
           "tensor '" + name + "' has shape " + inBrackets(found->second.shape) + ", expected " + inBrackets(shape));
  if (found->second.dtype == kpkg::DType::None)
    refuse(folder, "tensor '" + name + "' must be F32, F16 or BF16");
  return found->second;
}

} // namespace decoder
