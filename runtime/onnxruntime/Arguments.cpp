// Implements the reading of attributes as arguments of an op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/onnxruntime/Arguments.h"
#include "runtime/onnxruntime/Errors.h"

namespace kpkg::ort {
namespace {

bool exists(const Attributes &attributes, const char *name) {
  return attributes.integer(name) || attributes.real(name) || attributes.text(name) || attributes.integers(name);
}

[[noreturn]] void refuse(const Op &op, const std::string &what) {
  throw Failure(ErrorCode::InvalidArgument, op.name() + ": " + what + ": " + op.schema());
}

} // namespace

std::optional<int64_t> KernelAttributes::integer(const char *name) const {
  int64_t value = 0;
  return succeeds(api, api.getInt(info, name, &value)) ? std::optional(value) : std::nullopt;
}

std::optional<float> KernelAttributes::real(const char *name) const {
  float value = 0;
  return succeeds(api, api.getFloat(info, name, &value)) ? std::optional(value) : std::nullopt;
}

std::optional<std::string> KernelAttributes::text(const char *name) const {
  size_t size = 0; // with the terminator
  if (!succeeds(api, api.getString(info, name, nullptr, &size)))
    return std::nullopt;
  std::string value(size, '\0');
  check(api, api.getString(info, name, value.data(), &size));
  value.resize(size - 1);
  return value;
}

std::optional<std::vector<int64_t>> KernelAttributes::integers(const char *name) const {
  size_t count = 0;
  if (!succeeds(api, api.getInts(info, name, nullptr, &count)))
    return std::nullopt;
  std::vector<int64_t> value(count);
  check(api, api.getInts(info, name, value.data(), &count));
  return value;
}

const Attribute *ShapeAttributes::find(const char *name) const {
  const Attribute *attribute = nullptr;
  return succeeds(api, api.getInferAttribute(context, name, &attribute)) ? attribute : nullptr;
}

std::optional<int64_t> ShapeAttributes::integer(const char *name) const {
  int64_t value = 0;
  size_t needed = 0;
  const Attribute *attribute = find(name);
  if (!attribute || !succeeds(api, api.readAttribute(attribute, AttributeType::Int, &value, sizeof value, &needed)))
    return std::nullopt;
  return value;
}

std::optional<float> ShapeAttributes::real(const char *name) const {
  float value = 0;
  size_t needed = 0;
  const Attribute *attribute = find(name);
  if (!attribute || !succeeds(api, api.readAttribute(attribute, AttributeType::Float, &value, sizeof value, &needed)))
    return std::nullopt;
  return value;
}

std::optional<std::string> ShapeAttributes::text(const char *name) const {
  const Attribute *attribute = find(name);
  if (!attribute)
    return std::nullopt;
  std::string value;
  size_t needed = 0;
  if (!succeeds(api, api.readAttribute(attribute, AttributeType::String, value.data(), 0, &needed))) {
    value.resize(needed);
    if (!succeeds(api, api.readAttribute(attribute, AttributeType::String, value.data(), needed, &needed)))
      return std::nullopt;
  }
  return value.c_str(); // without the terminator, where ONNX Runtime counts it
}

std::optional<std::vector<int64_t>> ShapeAttributes::integers(const char *name) const {
  const Attribute *attribute = find(name);
  if (!attribute)
    return std::nullopt;
  std::vector<int64_t> value;
  size_t bytes = 0;
  if (!succeeds(api, api.readAttribute(attribute, AttributeType::Ints, value.data(), 0, &bytes))) {
    value.resize(bytes / sizeof(int64_t));
    if (!succeeds(api, api.readAttribute(attribute, AttributeType::Ints, value.data(), bytes, &bytes)))
      return std::nullopt;
  }
  return value;
}

Arguments::Arguments(const Op &op, const Attributes &attributes) {
  for (const ArgumentInfo &argument : op.arguments()) {
    kpkg_value value = {}; // the default
    if (argument.kind == KPKG_TENSOR)
      value.kind = argument.optional && !argument.has_default ? KPKG_NONE : KPKG_DEFAULT;
    else
      value = read(op, argument, attributes);
    all.push_back(value);
  }
}

kpkg_value Arguments::read(const Op &op, const ArgumentInfo &argument, const Attributes &attributes) {
  const char *name = argument.name;
  kpkg_value value = {};
  value.kind = argument.kind;
  switch (argument.kind) {
  case KPKG_INT:
  case KPKG_BOOLEAN:
    if (auto given = attributes.integer(name))
      return value.as.integer = *given, value;
    break;
  case KPKG_FLOAT:
    if (auto given = attributes.real(name))
      return value.as.real = double(*given), value;
    if (auto given = attributes.integer(name))
      return value.as.real = double(*given), value;
    break;
  case KPKG_DTYPE:
    if (auto given = attributes.text(name)) {
      value.as.integer = kpkg_dtype_from_name(given->c_str());
      if (value.as.integer == KPKG_NO_DTYPE)
        refuse(op, "attribute '" + std::string(name) + "' is '" + *given + "', which names no dtype");
      return value;
    }
    break;
  case KPKG_STRING:
    if (auto given = attributes.text(name))
      return value.as.string = strings.emplace_front(*given).c_str(), value;
    break;
  case KPKG_INT_LIST:
    if (auto given = attributes.integers(name)) {
      if (given->empty() && (attributes.integer(name) || attributes.real(name)))
        break;
      lists.push_front(*given);
      value.as.list = lists.front().data();
      value.count = int32_t(lists.front().size());
      return value;
    }
    break;
  default:
    break;
  }
  if (exists(attributes, name))
    refuse(op, "attribute '" + std::string(name) + "' has another type, expected " + argument.type);
  if (!argument.has_default && !argument.optional)
    refuse(op, "attribute '" + std::string(name) + "' is missing");
  value.kind = argument.has_default ? KPKG_DEFAULT : KPKG_NONE;
  return value;
}

} // namespace kpkg::ort
