// Converts Python values to a call of the C ABI, and its results to arrays.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/python/Call.h"
#include "runtime/python/Gil.h"

#include <kpkg/dtype.hpp>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

namespace nb = nanobind;

namespace kpkg::python {
namespace {

nb::handle kernelError, captureError, deviceError, packageError;

[[noreturn]] void refuse(const OpHandle &op, int32_t index, const std::string &what) {
  kpkg_argument_info info = {};
  info.struct_size = sizeof info;
  kpkg_op_argument(op.op, index, &info);
  throw nb::type_error(("argument '" + std::string(info.name) + "' " + what).c_str());
}

int32_t dtypeOf(const nb::dlpack::dtype &type) {
  for (const DTypeRecord &record : dtypeRecords)
    if (type.lanes == 1 && record.bits != 0 && record.dlpackCode == type.code && record.bits == type.bits)
      return int32_t(record.dtype);
  return KPKG_NO_DTYPE;
}

/// Returns DLPack's type of a dtype. A dtype that NumPy lacks becomes an unsigned integer of its width, and Python
/// restores its name.
nb::dlpack::dtype arrayType(int32_t dtype) {
  const DTypeRecord &record = dtypeRecord(DType(dtype));
  uint8_t carrier = uint8_t(nb::dlpack::dtype_code::UInt);
  return {record.isInNumpy ? record.dlpackCode : carrier, uint8_t(record.bits), 1};
}

/// The C call, and all memory that its pointers refer to.
struct Frame {
  std::deque<nb::ndarray<nb::ro>> arrays;
  std::deque<kpkg_tensor> tensors;
  std::deque<std::vector<int64_t>> lists;
  std::deque<std::vector<kpkg_tensor>> tensorLists;
  std::deque<std::string> strings;
  std::vector<kpkg_value> values;
  std::vector<const kpkg_tensor *> outputs;
  std::vector<kpkg_result> results;
  std::vector<void *> allocations;
  kpkg_call call = {};

  ~Frame() {
    for (void *memory : allocations)
      std::free(memory);
  }
};

/// Returns the tensor of a pair of an array and a dtype name, or null if the first is no array.
const kpkg_tensor *arrayOrNull(Frame &frame, nb::handle value) {
  nb::tuple pair = nb::cast<nb::tuple>(value);
  nb::ndarray<nb::ro> array;
  if (!nb::try_cast(pair[0], array))
    return nullptr;
  kpkg_tensor tensor = {};
  tensor.data = const_cast<void *>(static_cast<const void *>(array.data()));
  tensor.rank = int32_t(array.ndim());
  tensor.shape = array.shape_ptr();
  tensor.strides = array.stride_ptr();
  tensor.dtype =
      pair[1].is_none() ? dtypeOf(array.dtype()) : kpkg_dtype_from_name(nb::cast<std::string>(pair[1]).c_str());
  tensor.device = {array.device_type(), array.device_id()};
  frame.arrays.push_back(std::move(array));
  frame.tensors.push_back(tensor);
  return &frame.tensors.back();
}

constexpr char noArray[] = "is no array: it must be a NumPy array or give its memory through __dlpack__";

const kpkg_tensor *arrayTensor(const OpHandle &op, Frame &frame, int32_t index, nb::handle value) {
  const kpkg_tensor *tensor = arrayOrNull(frame, value);
  if (!tensor)
    refuse(op, index, noArray);
  return tensor;
}

const kpkg_tensor *shapeTensor(const OpHandle &, Frame &frame, int32_t, nb::handle value) {
  nb::tuple parts = nb::cast<nb::tuple>(value);
  kpkg_tensor tensor = {};
  for (int i = 0; i < 2; ++i) {
    std::vector<int64_t> &extents = frame.lists.emplace_back();
    for (nb::handle extent : parts[i])
      extents.push_back(nb::cast<int64_t>(extent));
    (i == 0 ? tensor.shape : tensor.strides) = extents.data();
    tensor.rank = int32_t(extents.size());
  }
  tensor.dtype = kpkg_dtype_from_name(nb::cast<std::string>(parts[2]).c_str());
  tensor.device = {nb::cast<int32_t>(parts[3]), 0};
  frame.tensors.push_back(tensor);
  return &frame.tensors.back();
}

using TensorReader = const kpkg_tensor *(*)(const OpHandle &, Frame &, int32_t, nb::handle);

kpkg_value lower(const OpHandle &op, Frame &frame, int32_t index, nb::handle value, TensorReader readTensor) {
  kpkg_value lowered = {};
  if (value.is(nb::handle(Py_Ellipsis)))
    return lowered;
  if (value.is_none()) {
    lowered.kind = KPKG_NONE;
    return lowered;
  }
  kpkg_argument_info info = {};
  info.struct_size = sizeof info;
  check(kpkg_op_argument(op.op, index, &info));
  lowered.kind = info.kind;
  switch (info.kind) {
  case KPKG_TENSOR:
    lowered.as.tensor = readTensor(op, frame, index, value);
    break;
  case KPKG_INT:
    lowered.as.integer = nb::cast<int64_t>(value);
    break;
  case KPKG_BOOLEAN:
    lowered.as.integer = nb::cast<bool>(value);
    break;
  case KPKG_FLOAT:
    lowered.as.real = nb::cast<double>(value);
    break;
  case KPKG_DTYPE:
    lowered.as.integer = kpkg_dtype_from_name(nb::cast<std::string>(value).c_str());
    if (lowered.as.integer == KPKG_NO_DTYPE)
      refuse(op, index, "names no dtype");
    break;
  case KPKG_INT_LIST: {
    std::vector<int64_t> &entries = frame.lists.emplace_back();
    for (nb::handle entry : value)
      entries.push_back(nb::cast<int64_t>(entry));
    lowered.as.list = entries.data();
    lowered.count = int32_t(entries.size());
    break;
  }
  case KPKG_TENSOR_LIST: {
    std::vector<kpkg_tensor> &tensors = frame.tensorLists.emplace_back();
    for (nb::handle entry : value)
      tensors.push_back(*readTensor(op, frame, index, entry));
    lowered.as.tensor = tensors.data();
    lowered.count = int32_t(tensors.size());
    break;
  }
  case KPKG_STRING:
    lowered.as.string = frame.strings.emplace_back(nb::cast<std::string>(value)).c_str();
    break;
  default:
    refuse(op, index, "has a type that Python cannot give");
  }
  return lowered;
}

kpkg_status allocate(void *context, const kpkg_allocation *wanted, void **data) {
  auto *frame = static_cast<Frame *>(context);
  if (wanted->device.type != KPKG_DEVICE_CPU)
    return kpkg_set_error(KPKG_ERROR_UNSUPPORTED, "results on a device other than the host need `out`");
  size_t bytes = (wanted->bytes + 63) / 64 * 64;
  void *memory = std::aligned_alloc(64, bytes ? bytes : 64);
  if (!memory)
    return kpkg_set_error(KPKG_ERROR_MEMORY, "out of memory for a result");
  if (frame->allocations.size() <= size_t(wanted->index))
    frame->allocations.resize(size_t(wanted->index) + 1, nullptr);
  frame->allocations[size_t(wanted->index)] = memory;
  *data = memory;
  return KPKG_OK;
}

void bind(const OpHandle &op, Frame &frame, nb::list values, TensorReader readTensor) {
  kpkg_op_info info = {};
  info.struct_size = sizeof info;
  check(kpkg_op_describe(op.op, &info));
  for (size_t i = 0; i < values.size(); ++i) {
    try {
      frame.values.push_back(lower(op, frame, int32_t(i), values[i], readTensor));
    } catch (const nb::cast_error &) {
      kpkg_argument_info argument = {};
      argument.struct_size = sizeof argument;
      check(kpkg_op_argument(op.op, int32_t(i), &argument));
      nb::handle type = nb::handle(values[i]).type();
      refuse(op, int32_t(i),
             "must be " + std::string(argument.type) + ", not " + nb::str(type.attr("__name__")).c_str());
    }
  }
  frame.results.resize(size_t(info.result_count));
  frame.call.struct_size = sizeof frame.call;
  frame.call.arguments = frame.values.data();
  frame.call.argument_count = int32_t(frame.values.size());
  frame.call.results = frame.results.data();
  frame.call.result_capacity = info.result_count;
  frame.call.allocate = allocate;
  frame.call.allocate_context = &frame;
}

/// Returns a result as a new array that owns its memory.
nb::object arrayOf(Frame &frame, const kpkg_result &result, std::vector<nb::capsule> &owners) {
  std::vector<size_t> shape(result.shape, result.shape + result.rank);
  nb::object owner;
  if (result.source == KPKG_FROM_ALLOCATION)
    owner = owners[size_t(result.index)];
  nb::ndarray<nb::numpy> array(result.data, shape.size(), shape.data(), owner, result.strides, arrayType(result.dtype));
  // A result in an argument's memory has no owner here, so it is copied.
  nb::object object =
      owner.is_valid() ? nb::cast(array, nb::rv_policy::reference) : nb::cast(array, nb::rv_policy::copy);
  return nb::make_tuple(object, kpkg_dtype_name(result.dtype));
}

nb::object scalarOf(const kpkg_result &result) {
  switch (result.kind) {
  case KPKG_INT:
    return nb::int_(result.as.integer);
  case KPKG_BOOLEAN:
    return nb::bool_(result.as.integer != 0);
  case KPKG_FLOAT:
    return nb::float_(result.as.real);
  default:
    return nb::none();
  }
}

} // namespace

void defineErrors(nb::module_ &module) {
  kernelError = PyErr_NewException("kpkg.KernelError", PyExc_RuntimeError, nullptr);
  captureError = PyErr_NewException("kpkg.CaptureError", kernelError.ptr(), nullptr);
  deviceError = PyErr_NewException("kpkg.DeviceError", PyExc_RuntimeError, nullptr);
  packageError = PyErr_NewException("kpkg.PackageError", PyExc_RuntimeError, nullptr);
  module.attr("KernelError") = kernelError;
  module.attr("CaptureError") = captureError;
  module.attr("DeviceError") = deviceError;
  module.attr("PackageError") = packageError;
}

void check(kpkg_status status) {
  if (status == KPKG_OK)
    return;
  kpkg_error error = {};
  error.struct_size = sizeof error;
  kpkg_last_error(&error);
  nb::handle type;
  switch (status) {
  case KPKG_ERROR_FILE:
    type = PyExc_OSError;
    break;
  case KPKG_ERROR_FORMAT:
  case KPKG_ERROR_TRUST:
    type = packageError;
    break;
  case KPKG_ERROR_CAPTURE:
    type = captureError;
    break;
  case KPKG_ERROR_DEVICE:
    type = deviceError;
    break;
  case KPKG_ERROR_MEMORY:
    type = PyExc_MemoryError;
    break;
  case KPKG_ERROR_USE:
  case KPKG_ERROR_NOT_FOUND:
    type = PyExc_ValueError;
    break;
  default:
    type = kernelError;
  }
  nb::object exception = nb::handle(type)(error.message);
  exception.attr("op") = error.op;
  exception.attr("instance") = error.instance;
  exception.attr("argument") = error.argument;
  PyErr_SetObject(type.ptr(), exception.ptr());
  throw nb::python_error();
}

nb::list call(const OpHandle &op, nb::list values, nb::object outputs) {
  Frame frame;
  bind(op, frame, values, arrayTensor);
  if (!outputs.is_none()) {
    for (nb::handle output : outputs) {
      frame.outputs.push_back(output.is_none() ? nullptr : arrayOrNull(frame, output));
      if (!output.is_none() && !frame.outputs.back())
        throw nb::type_error(("`out` " + std::string(noArray)).c_str());
    }
    frame.call.outputs = frame.outputs.data();
  }
  check(withoutGil([&] { return kpkg_op_call(op.op, &frame.call); }));
  std::vector<nb::capsule> owners;
  for (void *&memory : frame.allocations)
    owners.emplace_back(std::exchange(memory, nullptr), [](void *pointer) noexcept { std::free(pointer); });
  nb::list results;
  for (const kpkg_result &result : frame.results) {
    if (result.kind != KPKG_TENSOR)
      results.append(scalarOf(result));
    else if (result.source == KPKG_FROM_OUTPUT)
      results.append(nb::none()); // the caller has the array
    else
      results.append(arrayOf(frame, result, owners));
  }
  return results;
}

nb::list infer(const OpHandle &op, nb::list values) {
  Frame frame;
  bind(op, frame, values, shapeTensor);
  check(kpkg_op_infer(op.op, &frame.call));
  nb::list results;
  for (const kpkg_result &result : frame.results) {
    if (result.kind != KPKG_TENSOR) {
      results.append(scalarOf(result));
      continue;
    }
    nb::list shape, strides;
    for (int32_t i = 0; i < result.rank; ++i) {
      shape.append(result.shape[i]);
      strides.append(result.strides[i]);
    }
    results.append(
        nb::make_tuple(nb::tuple(shape), nb::tuple(strides), kpkg_dtype_name(result.dtype), result.device.type));
  }
  return results;
}

nb::str explain(const OpHandle &op, nb::list values, bool json) {
  Frame frame;
  bind(op, frame, values, shapeTensor);
  kpkg_string *text = nullptr;
  check(kpkg_op_explain(op.op, &frame.call, json ? KPKG_JSON : KPKG_TEXT, &text));
  nb::str copy(kpkg_string_data(text), kpkg_string_size(text));
  kpkg_string_free(text);
  return copy;
}

nb::str resolve(const OpHandle &op, nb::list values, const std::string &target) {
  Frame frame;
  bind(op, frame, values, shapeTensor);
  kpkg_string *json = nullptr;
  check(kpkg_op_resolve(op.op, &frame.call, target.c_str(), &json));
  nb::str copy(kpkg_string_data(json), kpkg_string_size(json));
  kpkg_string_free(json);
  return copy;
}

} // namespace kpkg::python
