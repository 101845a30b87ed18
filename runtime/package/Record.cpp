// Writes calls into files, for `kpkg replay`: KPKG_RECORD names the folder.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Record.h"
#include "runtime/format/OutputFile.h"
#include "runtime/format/Safetensors.h"
#include "runtime/package/Devices.h"
#include "runtime/package/Environment.h"
#include "runtime/package/ForkSafeMutex.h"
#include "runtime/package/Log.h"
#include "runtime/package/Observers.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <unistd.h>

namespace kpkg::package {

using nlohmann::json;

namespace {

/// Limit of files by a process.
constexpr size_t mostCalls = 1000;

struct Recorder {
  ForkSafeMutex lock;
  std::set<std::string> seen;
  size_t files = 0;
  uint64_t bytes = 0;
  bool hasWarned = false;
};

Recorder &recorder() {
  static auto *instance = new Recorder; // never destroyed: threads may outlive static objects
  return *instance;
}

/// The recorder's lock is held.
void warnOnce(Recorder &all, const std::string &why) {
  if (!all.hasWarned)
    log(KPKG_LOG_WARN, "KPKG_RECORD leaves calls out: " + why);
  all.hasWarned = true;
}

/// The memory from the first element to the end of the last, and where the element with all indices 0 is.
struct Extent {
  int64_t before = 0, bytes = 0;
};

Extent extentOf(const kpkg_tensor &tensor) {
  int64_t lowest = 0, highest = 0, dense = 1;
  for (int32_t d = tensor.rank; d-- > 0;) {
    if (tensor.shape[d] == 0)
      return {};
    int64_t reach = (tensor.shape[d] - 1) * (tensor.strides ? tensor.strides[d] : dense);
    (reach < 0 ? lowest : highest) += reach;
    dense *= tensor.shape[d];
  }
  plan::DType dtype = plan::DType(tensor.dtype);
  int64_t before = -plan::dtypeBytes(dtype, lowest);
  return {before, plan::dtypeBytes(dtype, highest + 1) + before};
}

bool isDense(const kpkg_tensor &tensor) {
  int64_t dense = 1;
  for (int32_t d = tensor.rank; d-- > 0; dense *= tensor.shape[d])
    if (tensor.strides && tensor.shape[d] != 1 && tensor.strides[d] != dense)
      return false;
  return true;
}

/// Returns the name in safetensors; empty if the format has none, or only for other shapes.
std::string safetensorsName(int32_t dtype) {
  std::string name(plan::dtypeName(plan::DType(dtype)));
  for (const auto &[own, theirs] :
       {std::pair("bool", "BOOL"), {"bfloat16", "BF16"}, {"float8_e4m3fn", "F8_E4M3"}, {"float8_e5m2", "F8_E5M2"}})
    if (name == own)
      return theirs;
  for (const auto &[prefix, letter] : {std::pair("float", "F"), {"uint", "U"}, {"int", "I"}})
    if (std::string bits = name.substr(std::min(name.size(), std::string_view(prefix).size()));
        name.starts_with(prefix) && (bits == "8" || bits == "16" || bits == "32" || bits == "64"))
      return letter + bits;
  return "";
}

bool isDType(int32_t dtype) { return dtype > KPKG_NO_DTYPE && dtype < KPKG_DTYPE_COUNT; }

/// Describes a tensor, and copies its memory into `file` under `name`.
Result<json> addTensor(format::Safetensors &file, const std::string &name, const kpkg_tensor &tensor, void *stream) {
  auto device = findDevice(tensor.device);
  if (!device)
    return device.error();
  Extent extent = extentOf(tensor);
  format::Safetensors::Entry entry;
  entry.bytes.resize(size_t(extent.bytes));
  if (extent.bytes) {
    device::Scope scope(**device);
    if (!scope.ok())
      return scope.error();
    const auto *first = static_cast<const std::byte *>(tensor.data) - extent.before;
    if (Status status = (*device)->copyToHost(entry.bytes.data(), first, entry.bytes.size(), stream); !status)
      return status.error();
    if (Status status = (*device)->synchronize(stream); !status)
      return status.error();
  }
  json described = {{"tensor", name},
                    {"dtype", plan::dtypeName(plan::DType(tensor.dtype))},
                    {"shape", std::vector<int64_t>(tensor.shape, tensor.shape + tensor.rank)}};
  std::string dtype = safetensorsName(tensor.dtype);
  if (isDense(tensor) && !dtype.empty()) {
    entry.dtype = dtype;
    entry.shape.assign(tensor.shape, tensor.shape + tensor.rank);
  } else {
    // The memory itself, so that equal elements stay equal, and gaps keep what lies in them.
    entry.dtype = "U8";
    entry.shape = {extent.bytes};
    described["offset"] = extent.before;
    if (tensor.strides)
      described["strides"] = std::vector<int64_t>(tensor.strides, tensor.strides + tensor.rank);
  }
  file.tensors[name] = std::move(entry);
  return described;
}

/// Calls `visit` with each tensor of the arguments, and with the position in its list or -1.
template <typename Visit> void forEachTensor(const kpkg_value &value, Visit visit) {
  if (value.kind == KPKG_TENSOR)
    visit(*value.as.tensor, -1);
  for (int32_t i = 0; value.kind == KPKG_TENSOR_LIST && i < value.count; ++i)
    visit(value.as.tensor[i], i);
}

/// Returns whether the tensor can be read; the call itself checks its arguments later.
bool isSound(const kpkg_tensor &tensor) {
  if (tensor.rank < 0 || tensor.rank > KPKG_MAX_RANK || (tensor.rank && !tensor.shape) || !isDType(tensor.dtype))
    return false;
  double reach = 1, dense = 1; // far below the range of integers, else no memory has these elements
  bool isEmpty = false;
  for (int32_t d = tensor.rank; d-- > 0;) {
    if (tensor.shape[d] < 0)
      return false;
    isEmpty |= tensor.shape[d] == 0;
    reach += double(tensor.shape[d]) * (tensor.strides ? std::abs(double(tensor.strides[d])) : dense);
    dense *= double(std::max<int64_t>(tensor.shape[d], 1));
  }
  return reach < 0x1p48 && dense < 0x1p60 && (tensor.data || isEmpty);
}

bool isSound(const kpkg_value &value) {
  switch (value.kind) {
  case KPKG_TENSOR:
    return value.as.tensor && isSound(*value.as.tensor);
  case KPKG_TENSOR_LIST:
    return value.count == 0 || (value.count > 0 && value.as.tensor &&
                                std::all_of(value.as.tensor, value.as.tensor + value.count,
                                            [](const kpkg_tensor &each) { return isSound(each); }));
  case KPKG_INT_LIST:
    return value.count == 0 || (value.count > 0 && value.as.list);
  case KPKG_STRING:
    return value.as.string;
  case KPKG_DTYPE:
    return value.as.integer >= KPKG_NO_DTYPE && value.as.integer < KPKG_DTYPE_COUNT;
  default:
    return value.kind >= KPKG_DEFAULT && value.kind <= KPKG_TENSOR_LIST;
  }
}

/// Returns the op's name as a part of a file name: "kpkg.softmax".
std::string fileName(const std::string &op) {
  std::string name;
  for (char c : op)
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_')
      name += c;
    else if (!name.ends_with('.'))
      name += '.';
  return name;
}

/// Appends what distinguishes calls: everything but memory and real numbers.
void appendKey(std::string &key, const kpkg_value &value) {
  key += "," + std::to_string(value.kind);
  auto add = [&](int64_t number) { key += ":" + std::to_string(number); };
  if (value.kind == KPKG_INT || value.kind == KPKG_BOOLEAN || value.kind == KPKG_DTYPE)
    add(value.as.integer);
  if (value.kind == KPKG_STRING)
    key += std::string(":") + value.as.string;
  for (int32_t i = 0; value.kind == KPKG_INT_LIST && i < value.count; ++i)
    add(value.as.list[i]);
  forEachTensor(value, [&](const kpkg_tensor &tensor, int32_t) {
    for (int64_t number : {int64_t(tensor.dtype), int64_t(tensor.device.type), int64_t(tensor.rank),
                           int64_t(reinterpret_cast<uint64_t>(tensor.data) % 16)})
      add(number);
    for (int32_t d = 0; d < tensor.rank; ++d) {
      add(tensor.shape[d]);
      add(tensor.strides ? tensor.strides[d] : -1);
    }
  });
}

/// Returns whether the call can be recorded, and adds the bytes of its tensors.
bool canRecord(const kpkg_call &call, uint64_t &bytes) {
  bool isGood = true;
  for (int32_t i = 0; i < call.argument_count; ++i)
    forEachTensor(call.arguments[i], [&](const kpkg_tensor &tensor, int32_t) {
      auto device = findDevice(tensor.device);
      if (!device) {
        isGood = false;
        return;
      }
      bytes += uint64_t(extentOf(tensor).bytes);
      device::Scope scope(**device);
      auto isCaptured = (*device)->isCapturing(call.stream);
      isGood &= scope.ok() && isCaptured && !*isCaptured;
    });
  return isGood;
}

std::string realText(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

/// Describes a value without tensors.
json describeValue(const kpkg_value &value) {
  switch (value.kind) {
  case KPKG_INT:
    return {{"int", value.as.integer}};
  case KPKG_BOOLEAN:
    return {{"bool", value.as.integer != 0}};
  case KPKG_FLOAT:
    return {{"float", realText(value.as.real)}};
  case KPKG_DTYPE:
    return {{"dtype", plan::dtypeName(plan::DType(value.as.integer))}};
  case KPKG_STRING:
    return {{"string", value.as.string}};
  case KPKG_INT_LIST:
    return {{"ints", std::vector<int64_t>(value.as.list, value.as.list + value.count)}};
  default:
    return {{"none", true}};
  }
}

/// Returns the labels of the instances that the call launches.
json instancesOf(const CallableOp &op, const kpkg_call &call) {
  json labels = json::array();
  auto text = explainCall(op, call, KPKG_JSON);
  json explained = text ? json::parse(*text, nullptr, /*allow_exceptions=*/false) : json();
  if (explained.is_object() && explained.contains("launches"))
    for (const json &launch : explained["launches"])
      if (launch.contains("chosen") && launch["chosen"].is_string())
        labels.push_back(launch["chosen"]);
  return labels;
}

} // namespace

RecordedCall::RecordedCall(const OpEntry &op, std::string path)
    : op(&op), path(std::move(path)), file(std::make_unique<format::Safetensors>()),
      description(std::make_unique<json>(json::object())) {}
RecordedCall::RecordedCall(RecordedCall &&) = default;
RecordedCall &RecordedCall::operator=(RecordedCall &&) = default;
RecordedCall::~RecordedCall() = default;

std::optional<RecordedCall> RecordedCall::begin(const CallableOp &op, const kpkg_call &call) {
  const OpEntry &entry = op.entry();
  bool isSchemaKnown = call.argument_count >= 0 && size_t(call.argument_count) <= entry.arguments.size() &&
                       call.result_capacity >= 0 && size_t(call.result_capacity) >= entry.results.size();
  if (!isSchemaKnown || (call.argument_count && !call.arguments) ||
      !std::all_of(call.arguments, call.arguments + call.argument_count,
                   [](const kpkg_value &value) { return isSound(value); }))
    return std::nullopt; // refused, or an op that is known by name alone
  std::string key = entry.name;
  for (int32_t i = 0; i < call.argument_count; ++i)
    appendKey(key, call.arguments[i]);
  Recorder &all = recorder();
  const Environment &settings = environment();
  std::string path;
  {
    std::lock_guard guard(all.lock);
    uint64_t bytes = 0;
    if (all.seen.count(key) || !canRecord(call, bytes))
      return std::nullopt;
    all.seen.insert(key);
    if (all.files >= mostCalls) {
      warnOnce(all, "there are " + std::to_string(mostCalls) + " files");
      return std::nullopt;
    }
    if (all.bytes + bytes > settings.recordBytes) {
      warnOnce(all, "more than KPKG_RECORD_LIMIT=" + std::to_string(settings.recordBytes >> 20) + " MiB");
      return std::nullopt;
    }
    all.bytes += bytes;
    path = settings.record + "/" + fileName(entry.name) + "-" + std::to_string(::getpid()) + "-" +
           std::to_string(++all.files) + ".safetensors";
  }
  RecordedCall recorded(entry, std::move(path));
  Status status = recorded.addArguments(op, call);
  if (status)
    status = recorded.write();
  if (status)
    return recorded;
  std::lock_guard guard(all.lock);
  warnOnce(all, status.error().message);
  return std::nullopt;
}

Status RecordedCall::addArguments(const CallableOp &callable, const kpkg_call &call) {
  json arguments = json::array();
  auto isGiven = [&](size_t i) {
    int32_t kind = i < size_t(call.argument_count) ? call.arguments[i].kind : int32_t(KPKG_DEFAULT);
    return kind != KPKG_DEFAULT && !(kind == KPKG_NONE && call.precision && op->arguments[i].name == "precision");
  };
  for (size_t i = 0; i < op->arguments.size(); ++i) {
    const std::string &name = op->arguments[i].name;
    if (!isGiven(i) && call.precision && name == "precision")
      arguments.push_back({{"name", name}, {"string", call.precision}});
    if (!isGiven(i))
      continue;
    const kpkg_value &value = call.arguments[i];
    json described = value.kind == KPKG_TENSOR || value.kind == KPKG_TENSOR_LIST ? json() : describeValue(value);
    std::optional<Error> failure;
    forEachTensor(value, [&](const kpkg_tensor &tensor, int32_t place) {
      auto added =
          addTensor(*file, "arguments." + name + (place < 0 ? "" : "." + std::to_string(place)), tensor, call.stream);
      if (!added)
        failure = added.error();
      else if (place < 0)
        described = *added;
      else
        described["tensors"].push_back(*added);
    });
    if (failure)
      return *failure;
    if (value.kind == KPKG_TENSOR_LIST && value.count == 0)
      described["tensors"] = json::array();
    described["name"] = name;
    arguments.push_back(std::move(described));
  }
  (*description)["op"] = op->name;
  (*description)["arguments"] = std::move(arguments);
  (*description)["instances"] = instancesOf(callable, call);
  return {};
}

Status RecordedCall::addResults(const kpkg_call &call) {
  json results = json::array();
  auto add = [&](const kpkg_tensor &tensor) -> Status {
    auto added = addTensor(*file, "results." + std::to_string(results.size()), tensor, call.stream);
    if (!added)
      return added.error();
    results.push_back(std::move(*added));
    return {};
  };
  for (size_t i = 0; i < op->results.size(); ++i) {
    const kpkg_result &result = call.results[i];
    if (result.kind != KPKG_TENSOR) {
      results.push_back({{"none", true}});
      continue;
    }
    kpkg_tensor tensor = {result.data, result.shape, result.strides, result.rank, result.dtype, result.device};
    if (Status status = add(tensor); !status)
      return status;
  }
  Status failure;
  for (int32_t i = 0; i < call.argument_count; ++i)
    if (op->arguments[size_t(i)].mutates)
      forEachTensor(call.arguments[i], [&](const kpkg_tensor &tensor, int32_t) {
        if (failure)
          failure = add(tensor);
      });
  (*description)["results"] = std::move(results);
  return failure;
}

Status RecordedCall::write() const {
  std::error_code ignored; // the file's error says what is wrong
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  file->metadata["kpkg.call"] = description->dump(-1, ' ', false, json::error_handler_t::replace);
  auto text = file->text();
  return text ? format::writeFile(path, *text) : text.error();
}

void RecordedCall::finish(const kpkg_call &call, bool succeeded) {
  Status status;
  if (succeeded && (status = addResults(call)) && (status = write()))
    return;
  std::error_code ignored; // a file without results is harmless
  std::filesystem::remove(path, ignored);
  if (status)
    return;
  std::lock_guard guard(recorder().lock);
  warnOnce(recorder(), status.error().message);
}

} // namespace kpkg::package
