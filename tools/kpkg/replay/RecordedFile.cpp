// Reads a call that KPKG_RECORD wrote.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/replay/RecordedFile.h"
#include "runtime/format/CanonicalJson.h"
#include "runtime/format/Safetensors.h"
#include "runtime/format/WholeFile.h"
#include "tools/kpkg/InputText.h"
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

namespace kpkg::command::replay {

using nlohmann::json;

namespace {

Error wrong(const std::string &what) { return {KPKG_ERROR_FORMAT, what, {}, {}, {}}; }

/// Limit of an element count, so that sizes below do not overflow.
constexpr int64_t mostElements = int64_t(1) << 48;

std::optional<std::vector<int64_t>> integersOf(const json &value, const char *key) {
  std::vector<int64_t> all;
  if (!value.contains(key) || !value[key].is_array())
    return std::nullopt;
  for (const json &item : value[key]) {
    if (!item.is_number_integer())
      return std::nullopt;
    all.push_back(item);
  }
  return all;
}

std::optional<std::string> textOf(const json &value, const char *key) {
  if (!value.is_object() || !value.contains(key) || !value[key].is_string())
    return std::nullopt;
  return value[key].get<std::string>();
}

/// Creates a tensor, after a check that all its elements lie in the recorded memory.
Result<Tensor> makeTensor(const format::Safetensors &file, const json &value) {
  auto name = textOf(value, "tensor"), dtypeName = textOf(value, "dtype");
  auto shape = integersOf(value, "shape");
  auto dtype = dtypeName ? parseDType(*dtypeName) : std::nullopt;
  auto found = name ? file.tensors.find(*name) : file.tensors.end();
  if (!shape || !dtype || found == file.tensors.end() || shape->size() > KPKG_MAX_RANK)
    return wrong("has a tensor without data, shape or dtype");
  std::vector<int64_t> strides(shape->size());
  int64_t dense = 1, lowest = 0, highest = 0, elements = 1;
  if (auto given = integersOf(value, "strides"))
    strides = *given;
  else
    for (size_t d = shape->size(); d-- > 0; dense *= std::max<int64_t>((*shape)[d], 1)) {
      if ((*shape)[d] < 0 || (*shape)[d] > mostElements || dense > mostElements)
        return wrong("has a tensor that is too large");
      strides[d] = dense;
    }
  if (strides.size() != shape->size())
    return wrong("has a tensor whose shape and strides differ in length");
  for (size_t d = 0; d < shape->size(); ++d) {
    int64_t extent = (*shape)[d], stride = std::abs(strides[d]);
    if (extent < 0 || extent > mostElements || stride > mostElements || (extent > 1 && stride > mostElements / extent))
      return wrong("has a tensor that is too large");
    elements = extent == 0 ? 0 : std::min(elements * extent, mostElements);
    (strides[d] < 0 ? lowest : highest) += extent > 0 ? (extent - 1) * strides[d] : 0;
  }
  const std::string &bytes = found->second.bytes;
  int64_t before = value.contains("offset") && value["offset"].is_number_integer() ? value["offset"].get<int64_t>() : 0;
  if (elements && (before < 0 || before + dtypeBytes(*dtype, lowest) < 0 ||
                   before + dtypeBytes(*dtype, highest + 1) > int64_t(bytes.size())))
    return wrong("has a tensor that reaches beyond its data");
  auto memory = Tensor::allocate(bytes.size());
  std::memcpy(memory.get(), bytes.data(), bytes.size());
  void *first = static_cast<char *>(memory.get()) + (elements ? before : 0);
  return Tensor(first, *dtype, *shape, std::move(strides), Cpu, std::move(memory));
}

Result<Value> makeValue(const format::Safetensors &file, const json &value) {
  if (value.contains("tensor")) {
    auto tensor = makeTensor(file, value);
    return tensor ? Result<Value>(Value(std::move(*tensor))) : tensor.error();
  }
  if (value.contains("tensors") && value["tensors"].is_array()) {
    std::vector<Tensor> list;
    for (const json &item : value["tensors"]) {
      auto tensor = makeTensor(file, item);
      if (!tensor)
        return tensor.error();
      list.push_back(std::move(*tensor));
    }
    return Value(std::move(list));
  }
  if (value.contains("int") && value["int"].is_number_integer())
    return Value(value["int"].get<int64_t>());
  if (value.contains("bool") && value["bool"].is_boolean())
    return Value(value["bool"].get<bool>());
  if (auto text = textOf(value, "float"))
    return Value(std::strtod(text->c_str(), nullptr));
  if (auto text = textOf(value, "string"))
    return Value(*text);
  if (auto list = integersOf(value, "ints"))
    return Value(std::move(*list));
  if (auto text = textOf(value, "dtype"))
    if (auto dtype = parseDType(*text))
      return Value(*dtype);
  if (value.contains("none"))
    return Value();
  return wrong("has an argument that is not understood");
}

} // namespace

Result<std::vector<Named>> RecordedFile::arguments() const {
  const json call = json::parse(description);
  std::vector<Named> all;
  for (const json &argument : call["arguments"]) {
    auto name = textOf(argument, "name");
    auto value = name ? makeValue(*file, argument) : Result<Value>(wrong("has an argument without a name"));
    if (!value)
      return wrong("'" + path + "' " + value.error().message);
    all.emplace_back(*name, std::move(*value));
  }
  return all;
}

Result<RecordedFile> RecordedFile::open(const std::string &path) {
  auto bytes = format::WholeFile::open(path);
  if (!bytes)
    return bytes.error();
  auto parsed = format::Safetensors::parse(bytes->bytes(), path);
  if (!parsed)
    return parsed.error();
  auto refuse = [&](const std::string &why) { return wrong("'" + path + "' is no recorded call: it " + why); };
  auto text = parsed->metadata.find("kpkg.call");
  if (text == parsed->metadata.end())
    return refuse("has no text `kpkg.call` in its metadata");
  auto call = format::parseJson(text->second);
  auto op = call ? textOf(*call, "op") : std::nullopt;
  if (!op || !call->contains("arguments") || !(*call)["arguments"].is_array())
    return refuse("does not say the op and its arguments");
  RecordedFile recorded;
  recorded.path = path;
  recorded.op = *op;
  recorded.description = text->second;
  recorded.file = std::make_shared<format::Safetensors>(std::move(*parsed));
  if (call->contains("instances") && (*call)["instances"].is_array())
    for (const json &label : (*call)["instances"])
      if (label.is_string())
        recorded.instances.push_back(label);
  if (auto arguments = recorded.arguments(); !arguments)
    return arguments.error();
  if (!call->contains("results") || !(*call)["results"].is_array())
    return recorded;
  recorded.results.emplace();
  for (const json &result : (*call)["results"]) {
    auto tensor = result.contains("tensor") ? makeTensor(*recorded.file, result) : Tensor();
    if (!tensor)
      return refuse(tensor.error().message);
    recorded.results->push_back(std::move(*tensor));
  }
  return recorded;
}

} // namespace kpkg::command::replay
