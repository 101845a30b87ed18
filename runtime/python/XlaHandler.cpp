// Runs ops as custom calls of XLA: its buffers are the op's arguments and results, so that nothing is copied.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/python/XlaHandler.h"
#include "runtime/python/Call.h"
#include "runtime/python/XlaFfi.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace kpkg::python {
namespace {

/// An op and the part of its schema that calls read.
struct NamedOp {
  struct Argument {
    std::string name;
    int32_t kind;
    bool mutates;
  };
  OpHandle handle;
  std::vector<Argument> arguments;
  size_t resultCount;
};

/// Compiled programs refer to ops by name, since an address would not survive XLA's caches on disk. Entries stay for
/// the life of the process, as programs do.
std::shared_mutex namedOpsLock;
std::unordered_map<std::string, std::unique_ptr<NamedOp>> namedOps;

void nameOp(const std::string &name, const OpHandle &op) {
  kpkg_op_info info = {};
  info.struct_size = sizeof info;
  check(kpkg_op_describe(op.op, &info));
  auto named = std::make_unique<NamedOp>();
  named->handle = op;
  named->resultCount = size_t(info.result_count);
  for (int32_t i = 0; i < info.argument_count; ++i) {
    kpkg_argument_info argument = {};
    argument.struct_size = sizeof argument;
    check(kpkg_op_argument(op.op, i, &argument));
    named->arguments.push_back({argument.name, argument.kind, argument.mutates != 0});
  }
  std::unique_lock lock(namedOpsLock);
  namedOps.try_emplace(name, std::move(named));
}

const NamedOp &findOp(std::string_view name) {
  std::shared_lock lock(namedOpsLock);
  auto found = namedOps.find(std::string(name));
  if (found == namedOps.end())
    throw std::invalid_argument("this process has not loaded the package of " + std::string(name) +
                                ": call kpkg.jax.load with it before the program runs");
  return *found->second;
}

/// What tells dtypes apart. Exponent bits are 0 for integers.
struct Format {
  enum Kind { Bool, Signed, Unsigned, Float };
  Kind kind;
  int bits, exponentBits;
  bool operator==(const Format &) const = default;
};

constexpr std::pair<xla::DataType, Format> formatsOfXla[] = {
    {xla::DataType::Pred, {Format::Bool, 8, 0}},      {xla::DataType::S8, {Format::Signed, 8, 0}},
    {xla::DataType::S16, {Format::Signed, 16, 0}},    {xla::DataType::S32, {Format::Signed, 32, 0}},
    {xla::DataType::S64, {Format::Signed, 64, 0}},    {xla::DataType::U8, {Format::Unsigned, 8, 0}},
    {xla::DataType::U16, {Format::Unsigned, 16, 0}},  {xla::DataType::U32, {Format::Unsigned, 32, 0}},
    {xla::DataType::U64, {Format::Unsigned, 64, 0}},  {xla::DataType::F16, {Format::Float, 16, 5}},
    {xla::DataType::F32, {Format::Float, 32, 8}},     {xla::DataType::F64, {Format::Float, 64, 11}},
    {xla::DataType::BF16, {Format::Float, 16, 8}},    {xla::DataType::F8E5M2, {Format::Float, 8, 5}},
    {xla::DataType::F8E4M3FN, {Format::Float, 8, 4}}, {xla::DataType::F8E8M0FNU, {Format::Float, 8, 8}},
};

/// Returns kpkg's dtype of the same format. Types that kpkg lacks have none: the op refuses them by the argument's
/// name.
int32_t dtypeOf(xla::DataType type) {
  auto *found = std::ranges::find(formatsOfXla, type, &std::pair<xla::DataType, Format>::first);
  if (found == std::end(formatsOfXla))
    return KPKG_NO_DTYPE;
#define KPKG_DTYPE_ROW(constant, Type, name, code, bits, kind, exponent, ...)                                          \
  if (found->second == Format{Format::kind, bits, exponent})                                                           \
    return KPKG_##constant;
#include "kpkg/dtypes.def"
  return KPKG_NO_DTYPE;
}

/// Attributes of a call by name.
class Attributes {
public:
  explicit Attributes(const xla::Attributes &all) : all(all) {}

  std::string_view text(std::string_view name) const {
    auto *bytes = static_cast<const xla::Bytes *>(value(name, xla::AttributeType::String));
    return {bytes->data, bytes->size};
  }
  template <typename Number> Number scalar(std::string_view name, xla::DataType type) const {
    auto *scalar = static_cast<const xla::Scalar *>(value(name, xla::AttributeType::Scalar));
    if (scalar->dtype != type)
      throw std::invalid_argument("attribute " + std::string(name) + " has another dtype than its argument");
    return *static_cast<const Number *>(scalar->value);
  }
  const xla::Array &array(std::string_view name, xla::DataType type) const {
    auto *array = static_cast<const xla::Array *>(value(name, xla::AttributeType::Array));
    if (array->dtype != type && array->count != 0)
      throw std::invalid_argument("attribute " + std::string(name) + " has another dtype than its argument");
    return *array;
  }

private:
  const void *value(std::string_view name, xla::AttributeType type) const {
    for (int64_t i = 0; i < all.count; ++i)
      if (std::string_view(all.names[i]->data, all.names[i]->size) == name && all.types[i] == type)
        return all.values[i];
    throw std::invalid_argument("the call lacks attribute " + std::string(name));
  }
  const xla::Attributes &all;
};

/// One call, and the memory that its pointers refer to.
class Call {
public:
  Call(const NamedOp &op, const xla::CallFrame &frame, kpkg_device device)
      : op(op), frame(frame), attributes(frame.attributes), device(device) {
    bindArguments(attributes.text("_form"));
    bindResults(attributes.text("_results"));
  }

  kpkg_status run(void *stream) {
    std::vector<kpkg_result> results(op.resultCount);
    kpkg_call call = {};
    call.struct_size = sizeof call;
    call.arguments = values.data();
    call.argument_count = int32_t(values.size());
    call.results = results.data();
    call.result_capacity = int32_t(results.size());
    call.stream = stream;
    call.outputs = outputs.data();
    return kpkg_op_call(op.handle.op, &call);
  }

private:
  void bindArguments(std::string_view form) {
    if (form.size() != op.arguments.size())
      throw std::invalid_argument("the call was compiled for another schema of the op");
    for (size_t i = 0; i < form.size(); ++i) {
      if (form[i] == 't' && op.arguments[i].mutates)
        written.push_back(nextArgument);
      values.push_back(form[i] == 't' ? tensorValue() : form[i] == 'v' ? attributeValue(op.arguments[i]) : none());
    }
  }

  /// Results get the memory that XLA has reserved for them.
  void bindResults(std::string_view form) {
    int64_t next = 0;
    for (char letter : form)
      outputs.push_back(letter == 't' ? tensor(frame.results, next++) : nullptr);
    outputs.resize(op.resultCount, nullptr);
    for (int64_t argument : written)
      if (tensor(frame.results, next++)->data != frame.arguments.buffers[argument]->data)
        throw std::runtime_error("XLA gave a tensor that the op writes into other memory than its result");
  }

  const kpkg_tensor *tensor(const xla::Buffers &buffers, int64_t index) {
    if (index >= buffers.count)
      throw std::invalid_argument("the call has fewer buffers than the op needs");
    const xla::Buffer &buffer = *buffers.buffers[index];
    return &tensors.emplace_back(
        kpkg_tensor{buffer.data, buffer.dims, nullptr, int32_t(buffer.rank), dtypeOf(buffer.dtype), device});
  }

  kpkg_value tensorValue() {
    kpkg_value value = {};
    value.kind = KPKG_TENSOR;
    value.as.tensor = tensor(frame.arguments, nextArgument++);
    return value;
  }

  static kpkg_value none() {
    kpkg_value value = {};
    value.kind = KPKG_NONE;
    return value;
  }

  kpkg_value attributeValue(const NamedOp::Argument &argument) {
    kpkg_value value = {};
    value.kind = argument.kind;
    switch (argument.kind) {
    case KPKG_INT:
      value.as.integer = attributes.scalar<int64_t>(argument.name, xla::DataType::S64);
      break;
    case KPKG_BOOLEAN:
      value.as.integer = attributes.scalar<bool>(argument.name, xla::DataType::Pred);
      break;
    case KPKG_FLOAT:
      value.as.real = attributes.scalar<double>(argument.name, xla::DataType::F64);
      break;
    case KPKG_INT_LIST: {
      const xla::Array &list = attributes.array(argument.name, xla::DataType::S64);
      value.as.list = static_cast<const int64_t *>(list.data);
      value.count = int32_t(list.count);
      break;
    }
    case KPKG_DTYPE:
      value.as.integer = kpkg_dtype_from_name(text(argument.name));
      break;
    case KPKG_STRING:
      value.as.string = text(argument.name);
      break;
    default:
      throw std::invalid_argument("argument " + argument.name + " has a type that an attribute cannot give");
    }
    return value;
  }

  /// XLA's texts have no terminator.
  const char *text(std::string_view name) { return strings.emplace_back(attributes.text(name)).c_str(); }

  const NamedOp &op;
  const xla::CallFrame &frame;
  Attributes attributes;
  kpkg_device device;
  int64_t nextArgument = 0;
  std::vector<int64_t> written; ///< buffers of arguments that the op writes into
  std::deque<kpkg_tensor> tensors;
  std::deque<std::string> strings;
  std::vector<kpkg_value> values;
  std::vector<const kpkg_tensor *> outputs;
};

xla::Error *failure(const xla::Api *api, xla::ErrorCode code, const char *message) {
  xla::ErrorCreateArgs error = {sizeof error, nullptr, message, code};
  return api->createError(&error);
}

xla::Error *failure(const xla::Api *api, kpkg_status status) {
  kpkg_error error = {};
  error.struct_size = sizeof error;
  kpkg_last_error(&error);
  switch (status) {
  case KPKG_ERROR_USE:
  case KPKG_ERROR_KERNEL:
    return failure(api, xla::ErrorCode::InvalidArgument, error.message);
  case KPKG_ERROR_NO_INSTANCE:
  case KPKG_ERROR_UNSUPPORTED:
    return failure(api, xla::ErrorCode::Unimplemented, error.message);
  case KPKG_ERROR_MEMORY:
    return failure(api, xla::ErrorCode::ResourceExhausted, error.message);
  default:
    return failure(api, xla::ErrorCode::Internal, error.message);
  }
}

/// Answers XLA's question for the version of the ABI, which comes as a call without arguments.
bool tellsVersion(const xla::CallFrame &frame) {
  if (!frame.extensions || frame.extensions->type != xla::ExtensionType::Metadata)
    return false;
  xla::Metadata *metadata = reinterpret_cast<xla::MetadataExtension *>(frame.extensions)->metadata;
  metadata->version = {sizeof(xla::Version), nullptr, xla::majorVersion, xla::minorVersion};
  metadata->traits = 0; // calls may load code, so that they cannot be captured into a CUDA graph
  return true;
}

xla::Error *call(xla::CallFrame *frame, kpkg_device device, void *stream) {
  try {
    kpkg_status status = Call(findOp(Attributes(frame->attributes).text("_op")), *frame, device).run(stream);
    return status == KPKG_OK ? nullptr : failure(frame->api, status);
  } catch (const std::invalid_argument &error) {
    return failure(frame->api, xla::ErrorCode::InvalidArgument, error.what());
  } catch (const std::exception &error) {
    return failure(frame->api, xla::ErrorCode::Internal, error.what());
  }
}

xla::Error *callOnHost(xla::CallFrame *frame) {
  return tellsVersion(*frame) ? nullptr : call(frame, {KPKG_DEVICE_CPU, 0}, nullptr);
}

xla::Error *callOnGpu(xla::CallFrame *frame) {
  if (tellsVersion(*frame))
    return nullptr;
  const xla::Api *api = frame->api;
  if (api->size < sizeof(xla::Api))
    return failure(api, xla::ErrorCode::Unimplemented,
                   "this XLA does not tell a custom call its device: kpkg.jax on GPUs needs a newer JAX");
  xla::StreamGetArgs stream = {sizeof stream, nullptr, frame->context, nullptr};
  if (xla::Error *error = api->getStream(&stream))
    return error;
  xla::DeviceOrdinalGetArgs device = {sizeof device, nullptr, frame->context, 0};
  if (xla::Error *error = api->getDeviceOrdinal(&device))
    return error;
  return call(frame, {KPKG_DEVICE_CUDA, device.ordinal}, stream.stream);
}

nb::capsule capsuleOf(xla::Error *(*handler)(xla::CallFrame *)) {
  return nb::capsule(reinterpret_cast<void *>(handler), "xla._CUSTOM_CALL_TARGET");
}

} // namespace

void defineXlaHandlers(nb::module_ &module) {
  module.def("xla_handlers", [] {
    nb::dict handlers;
    handlers["cpu"] = capsuleOf(callOnHost);
    handlers["CUDA"] = capsuleOf(callOnGpu);
    return handlers;
  });
  module.def("xla_name_op", nameOp, nb::arg("name"), nb::arg("op"));
}

} // namespace kpkg::python
