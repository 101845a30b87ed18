// Converts values of tvm-ffi to a call of the C ABI, and its results to tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/tvm_ffi/Call.h"
#include "runtime/tvm_ffi/Allocation.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/string.h>

#include <algorithm>
#include <exception>
#include <new>
#include <sstream>

namespace ffi = tvm::ffi;

namespace kpkg::tvm_abi {
namespace {

const char *exceptionOf(kpkg_status status) {
  switch (status) {
  case KPKG_ERROR_FILE:
    return "OSError";
  case KPKG_ERROR_FORMAT:
  case KPKG_ERROR_TRUST:
    return "PackageError";
  case KPKG_ERROR_CAPTURE:
    return "CaptureError";
  case KPKG_ERROR_DEVICE:
    return "DeviceError";
  case KPKG_ERROR_MEMORY:
    return "MemoryError";
  case KPKG_ERROR_USE:
  case KPKG_ERROR_NOT_FOUND:
    return "ValueError";
  default:
    return "KernelError";
  }
}

int32_t kpkgDtype(const DLDataType &type) {
  // Cases of a switch, since every tensor of every call comes here.
  switch (type.lanes == 1 ? type.code << 8 | type.bits : 0) {
#define KPKG_DTYPE_ROW(constant, Type, name, code, bits, kind, exponent, mantissa, infinity, dlpack, ...)              \
  case dlpack << 8 | bits:                                                                                             \
    return KPKG_##constant;
#include <kpkg/dtypes.def>
  default:
    return KPKG_NO_DTYPE;
  }
}

/// Shows a value in errors: as Python writes it where that is short, and else its type.
std::string shown(ffi::AnyView value) {
  switch (value.type_index()) {
  case ffi::TypeIndex::kTVMFFINone:
    return "None";
  case ffi::TypeIndex::kTVMFFIBool:
    return value.cast<bool>() ? "True" : "False";
  case ffi::TypeIndex::kTVMFFIInt:
    return std::to_string(value.cast<int64_t>());
  case ffi::TypeIndex::kTVMFFIFloat: {
    std::ostringstream text;
    text << value.cast<double>();
    return text.str();
  }
  case ffi::TypeIndex::kTVMFFIDLTensorPtr:
  case ffi::TypeIndex::kTVMFFITensor:
    return "a tensor";
  default:
    if (auto text = value.try_cast<ffi::String>())
      return "'" + std::string(*text) + "'";
    return "of the type " + value.GetTypeKey();
  }
}

} // namespace

void raise(const Error &error) {
  std::string message = error.message;
  if (!error.op.empty() && message.find(error.op) == std::string::npos)
    message = error.op + ": " + message;
  throw ffi::Error(exceptionOf(error.status), message, "");
}

Call::Call(const Op &op, ffi::PackedArgs given, Form form) : op(op) {
  size_t resultCount = size_t(op.info().result_count), first = form == Writing ? resultCount : 0;
  const std::vector<ArgumentInfo> &arguments = op.arguments();
  size_t count = size_t(given.size());
  if (count > first + arguments.size() || count < first)
    throw ffi::Error("TypeError",
                     op.name() + " takes " + (first ? std::to_string(first) + " tensors for results and " : "") +
                         "at most " + std::to_string(arguments.size()) + " arguments, " + std::to_string(count) +
                         " given: " + op.schema(),
                     "");
  auto *values = arena.take<kpkg_value>(count - first);
  auto **outputs = arena.take<const kpkg_tensor *>(first);
  for (size_t i = 0; i < first; ++i)
    if (ffi::AnyView output = given[int(i)]; !(outputs[i] = tensorOf(output)))
      throw ffi::Error("TypeError",
                       op.name() + ": result " + std::to_string(i) + " goes to a tensor before the arguments, not to " +
                           shown(output) + ": " + op.schema(),
                       "");
  for (size_t i = first; i < count; ++i)
    values[i - first] = lower(arguments[i - first], given[int(i)]);
  call.struct_size = sizeof call;
  call.arguments = values;
  call.argument_count = int32_t(count - first);
  call.results = arena.take<kpkg_result>(resultCount);
  call.result_capacity = int32_t(resultCount);
  call.stream = device.type == KPKG_DEVICE_CUDA ? TVMFFIEnvGetStream(device.type, device.index) : nullptr;
  call.allocate = allocate;
  call.allocate_context = this;
  call.outputs = form == Writing ? outputs : nullptr;
}

std::vector<ffi::Any> Call::entriesOf(const ArgumentInfo &argument, ffi::AnyView given) const {
  if (auto array = given.try_cast<ffi::Array<ffi::Any>>())
    return {array->begin(), array->end()};
  if (auto list = given.try_cast<ffi::List<ffi::Any>>())
    return {list->begin(), list->end()};
  refuse(argument, shown(given));
}

void Call::refuse(const ArgumentInfo &argument, const std::string &what) const {
  throw ffi::Error("TypeError",
                   op.name() + ": argument '" + argument.name + "' is " + what + ", expected " + argument.type + ": " +
                       op.schema(),
                   "");
}

std::optional<kpkg_tensor> Call::describe(ffi::AnyView given) {
  std::optional<DLTensor *> source = given.try_cast<DLTensor *>();
  if (!source)
    return std::nullopt;
  const DLTensor &from = **source;
  kpkg_tensor tensor = {};
  tensor.data = from.data ? static_cast<char *>(from.data) + from.byte_offset : nullptr;
  tensor.shape = from.shape;
  tensor.strides = from.strides;
  tensor.rank = from.ndim;
  tensor.dtype = kpkgDtype(from.dtype);
  tensor.device = {int32_t(from.device.device_type), from.device.device_id};
  if (device.type == 0)
    device = tensor.device;
  return tensor;
}

const kpkg_tensor *Call::tensorOf(ffi::AnyView given) {
  std::optional<kpkg_tensor> described = describe(given);
  return described ? new (arena.take<kpkg_tensor>(1)) kpkg_tensor(*described) : nullptr;
}

kpkg_value Call::lower(const ArgumentInfo &argument, ffi::AnyView given) {
  kpkg_value lowered = {};
  if (given.type_index() == ffi::TypeIndex::kTVMFFINone) {
    if (!argument.optional && !argument.has_default)
      refuse(argument, "None");
    lowered.kind = argument.optional ? KPKG_NONE : KPKG_DEFAULT;
    return lowered;
  }
  lowered.kind = argument.kind;
  bool fits = true;
  auto take = [&](auto &target, auto value) {
    fits = value.has_value();
    if (fits)
      target = *value;
  };
  switch (argument.kind) {
  case KPKG_TENSOR:
    lowered.as.tensor = tensorOf(given);
    fits = lowered.as.tensor != nullptr;
    break;
  case KPKG_INT:
    take(lowered.as.integer, given.try_cast<int64_t>());
    break;
  case KPKG_BOOLEAN:
    take(lowered.as.integer, given.try_cast<bool>());
    break;
  case KPKG_FLOAT:
    take(lowered.as.real, given.try_cast<double>());
    break;
  case KPKG_DTYPE:
    lowered.as.integer = dtypeOf(argument, given);
    break;
  case KPKG_INT_LIST:
    lowerIntegers(argument, given, lowered);
    break;
  case KPKG_TENSOR_LIST:
    lowerTensors(argument, given, lowered);
    break;
  case KPKG_STRING:
    if (auto text = given.try_cast<ffi::String>())
      lowered.as.string = strings.emplace_front(*text).c_str();
    else
      fits = false;
    break;
  default:
    fits = false;
  }
  if (!fits)
    refuse(argument, shown(given));
  return lowered;
}

int32_t Call::dtypeOf(const ArgumentInfo &argument, ffi::AnyView given) const {
  if (auto text = given.try_cast<ffi::String>()) {
    int32_t named = kpkg_dtype_from_name(text->c_str());
    if (named == KPKG_NO_DTYPE)
      refuse(argument, "'" + std::string(*text) + "', which names no dtype");
    return named;
  }
  auto type = given.try_cast<DLDataType>();
  if (!type)
    refuse(argument, shown(given));
  int32_t dtype = kpkgDtype(*type);
  if (dtype == KPKG_NO_DTYPE)
    refuse(argument, "'" + std::string(ffi::DLDataTypeToString(*type)) + "', which kpkg lacks");
  return dtype;
}

void Call::lowerIntegers(const ArgumentInfo &argument, ffi::AnyView given, kpkg_value &lowered) {
  if (given.type_index() == ffi::TypeIndex::kTVMFFIShape) {
    auto shape = given.cast<ffi::Shape>(); // the caller keeps it
    lowered.as.list = shape.data();
    lowered.count = int32_t(shape.size());
    return;
  }
  std::vector<ffi::Any> entries = entriesOf(argument, given);
  auto *integers = arena.take<int64_t>(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    std::optional<int64_t> integer = entries[i].try_cast<int64_t>();
    if (!integer)
      refuse(argument, "a list with " + shown(entries[i]));
    integers[i] = *integer;
  }
  lowered.as.list = integers;
  lowered.count = int32_t(entries.size());
}

void Call::lowerTensors(const ArgumentInfo &argument, ffi::AnyView given, kpkg_value &lowered) {
  std::vector<ffi::Any> entries = entriesOf(argument, given);
  auto *tensors = arena.take<kpkg_tensor>(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    std::optional<kpkg_tensor> tensor = describe(entries[i]);
    if (!tensor)
      refuse(argument, "a list with " + shown(entries[i]));
    tensors[i] = *tensor;
  }
  lowered.as.tensor = tensors;
  lowered.count = int32_t(entries.size());
}

kpkg_status Call::allocate(void *context, const kpkg_allocation *wanted, void **data) {
  auto &call = *static_cast<Call *>(context);
  if (size_t(wanted->index) >= call.allocated.size())
    return kpkg_set_error(KPKG_ERROR_UNSUPPORTED,
                          ("more than " + std::to_string(maxResults) + " results in tvm-ffi").c_str());
  try {
    ffi::Tensor tensor = allocateTensor(*wanted, call.call.stream);
    *data = tensor.data_ptr();
    call.allocated[size_t(wanted->index)] = std::move(tensor);
    return KPKG_OK;
  } catch (const std::exception &error) {
    return kpkg_set_error(KPKG_ERROR_MEMORY, error.what());
  }
}

ffi::Any Call::pack(const kpkg_result &result) {
  switch (result.kind) {
  case KPKG_TENSOR: {
    ffi::Tensor &memory = allocated[size_t(result.index)];
    ffi::ShapeView shape(result.shape, size_t(result.rank)), strides(result.strides, size_t(result.rank));
    bool isAllOfIt =
        result.whole && std::equal(shape.begin(), shape.end(), memory.shape().begin(), memory.shape().end());
    if (isAllOfIt && std::equal(strides.begin(), strides.end(), memory.strides().begin()))
      return std::move(memory);
    return memory.as_strided(shape, strides, result.offset);
  }
  case KPKG_INT:
    return result.as.integer;
  case KPKG_BOOLEAN:
    return result.as.integer != 0;
  case KPKG_FLOAT:
    return result.as.real;
  default:
    return {};
  }
}

ffi::Any Call::run() {
  if (kpkg_op_call(op.get(), &call) != KPKG_OK)
    raise(Error::last());
  if (call.outputs || call.result_capacity == 0)
    return {};
  if (call.result_capacity == 1)
    return pack(call.results[0]);
  ffi::Array<ffi::Any> all;
  all.reserve(call.result_capacity);
  for (int32_t i = 0; i < call.result_capacity; ++i)
    all.push_back(pack(call.results[i]));
  return all;
}

} // namespace kpkg::tvm_abi
