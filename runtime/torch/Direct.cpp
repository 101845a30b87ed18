// Calls ops with host tensors of PyTorch directly, without its dispatcher.
//
// For calls from Python to an extension's kernel, the dispatcher boxes every value twice, which takes longer than small
// kernels. This file needs PyTorch's headers and is built for one release, like the nodes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/torch/Direct.h"

#include <kpkg/kpkg.h>
#include <kpkg/limits.hpp>

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/object_ptr.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <structmember.h>
#include <vector>

namespace kpkg::torch_nodes {
namespace {

constexpr size_t mostArguments = 32, mostListEntries = 32;

/// PyTorch's types by number of the dtype.
constexpr at::ScalarType scalarTypes[] = {
    at::ScalarType::Undefined,
#define KPKG_DTYPE_ROW(constant, Type, name, code, bits, kind, exponent, mantissa, infinity, dlpack, numpy, torch,     \
                       stable)                                                                                         \
  at::ScalarType::torch,
#include <kpkg/dtypes.def>
};

int32_t dtypeOf(at::ScalarType type) {
  auto found = std::find(std::begin(scalarTypes), std::end(scalarTypes), type);
  return found == std::end(scalarTypes) || type == at::ScalarType::Undefined ? int32_t(KPKG_NO_DTYPE)
                                                                             : int32_t(found - scalarTypes);
}

at::ScalarType typeOf(int32_t dtype) { return scalarTypes[dtype]; }

struct Parameter {
  PyObject *name; ///< interned
  int32_t kind;   ///< kpkg_kind
  bool optional, hasDefault;
};

struct DirectCall {
  PyObject_HEAD;
  vectorcallfunc call;
  PyObject *next;
  const kpkg_op *op; ///< null: every call is for `next`
  size_t positional;
  std::vector<Parameter> *parameters;
  int32_t resultCount;
  bool hasPrecision; ///< whether an argument sets the precision of float32 products
};

/// Returns PyTorch's setting for host products of a call with an empty `precision`; null: the op's choice.
const char *followedPrecision() {
  switch (at::globalContext().float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL)) {
  case at::Float32Precision::TF32:
    return "high";
  case at::Float32Precision::BF16:
    return "medium";
  default:
    return nullptr;
  }
}

/// Returns whether the dispatcher would go directly to the host's kernel, apart from properties of tensors.
bool isPlain() {
  return !at::impl::torch_function_mode_enabled() && !at::globalContext().deterministicAlgorithms() &&
         !at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION).has_value();
}

/// The arguments of one call for the C ABI, borrowed from Python's objects.
class Arguments {
public:
  /// Returns false if the call needs the dispatcher.
  bool read(const DirectCall &self, PyObject *const *given, size_t count, PyObject *names);

  const kpkg_value *values() const { return valueStorage.data(); }
  int32_t count() const { return int32_t(valueCount); }
  const at::Tensor &tensor(int32_t index) const { return THPVariable_Unpack(objects[size_t(index)]); }

private:
  bool readOne(const Parameter &parameter, size_t index, PyObject *object);
  bool readTensor(size_t index, PyObject *object);
  bool readList(kpkg_value &value, PyObject *object);

  std::array<kpkg_value, mostArguments> valueStorage;
  std::array<kpkg_tensor, mostArguments> tensors;
  std::array<PyObject *, mostArguments> objects;
  std::array<int64_t, mostListEntries> entries;
  size_t valueCount = 0, entryCount = 0;
  c10::DispatchKeySet keys;
};

bool Arguments::read(const DirectCall &self, PyObject *const *given, size_t count, PyObject *names) {
  const std::vector<Parameter> &parameters = *self.parameters;
  if (count > self.positional)
    return false;
  std::copy_n(given, count, objects.begin());
  valueCount = count;
  if (names) {
    std::fill(objects.begin() + ptrdiff_t(count), objects.begin() + ptrdiff_t(parameters.size()), nullptr);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
      PyObject *name = PyTuple_GET_ITEM(names, i); // interned if a call spells it
      auto found = std::find_if(parameters.begin(), parameters.end(), [=](auto &each) { return each.name == name; });
      if (found == parameters.end())
        found = std::find_if(parameters.begin(), parameters.end(),
                             [=](auto &each) { return PyUnicode_Compare(each.name, name) == 0; });
      size_t index = size_t(found - parameters.begin());
      if (found == parameters.end() || objects[index])
        return false;
      objects[index] = given[count + size_t(i)];
      valueCount = std::max(valueCount, index + 1);
    }
  }
  for (size_t i = 0; i < valueCount; ++i)
    if (objects[i] ? !readOne(parameters[i], i, objects[i]) : !parameters[i].hasDefault)
      return false;
    else if (!objects[i])
      valueStorage[i].kind = KPKG_DEFAULT;
  for (size_t i = valueCount; i < parameters.size(); ++i)
    if (!parameters[i].hasDefault)
      return false;

  // The dispatcher's remaining keys besides the host's. Autograd was checked before, and the op has no kernels for the
  // others.
  c10::impl::LocalDispatchKeySet local = c10::impl::tls_local_dispatch_key_set();
  constexpr c10::DispatchKeySet passed =
      c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::DispatchKeySet(c10::DispatchKey::BackendSelect);
  return ((keys | local.included_) - local.excluded_ - passed) == c10::DispatchKeySet(c10::DispatchKey::CPU);
}

bool Arguments::readOne(const Parameter &parameter, size_t index, PyObject *object) {
  kpkg_value &value = valueStorage[index];
  value.kind = parameter.kind;
  if (parameter.optional && object == Py_None) {
    value.kind = KPKG_NONE;
    return true;
  }
  switch (parameter.kind) {
  case KPKG_TENSOR:
    return readTensor(index, object);
  case KPKG_INT:
  case KPKG_FLOAT:
    if (parameter.kind == KPKG_FLOAT && PyFloat_CheckExact(object)) {
      value.as.real = PyFloat_AS_DOUBLE(object);
      return true;
    }
    if (!PyLong_CheckExact(object))
      return false;
    int overflows;
    value.kind = KPKG_INT; // where a float is expected, the op accepts it as well
    value.as.integer = PyLong_AsLongLongAndOverflow(object, &overflows);
    return !overflows;
  case KPKG_BOOLEAN:
    value.as.integer = object == Py_True;
    return object == Py_True || object == Py_False;
  case KPKG_INT_LIST:
    return readList(value, object);
  case KPKG_DTYPE:
    if (!THPDtype_Check(object))
      return false;
    value.as.integer = dtypeOf(reinterpret_cast<THPDtype *>(object)->scalar_type);
    return value.as.integer != KPKG_NO_DTYPE;
  case KPKG_STRING:
    if (!PyUnicode_CheckExact(object))
      return false;
    value.as.string = PyUnicode_AsUTF8(object);
    if (!value.as.string)
      PyErr_Clear();
    return value.as.string;
  default:
    return false;
  }
}

bool Arguments::readTensor(size_t index, PyObject *object) {
  if (!THPVariable_CheckExact(object))
    return false;
  const at::Tensor &tensor = THPVariable_Unpack(object);
  const c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
  keys = keys | impl->key_set();
  if (impl->autograd_meta() &&
      ((c10::GradMode::is_enabled() && impl->requires_grad()) || tensor._fw_grad(/*level=*/0).defined()))
    return false;
  if (!impl->has_storage() || impl->has_symbolic_sizes_strides())
    return false;
  c10::IntArrayRef sizes = impl->sizes();
  int32_t dtype = dtypeOf(tensor.scalar_type());
  if (dtype == KPKG_NO_DTYPE || (!impl->storage_initialized() && impl->numel() > 0))
    return false;
  tensors[index] = {const_cast<void *>(impl->data()),
                    sizes.data(),
                    impl->strides().data(),
                    int32_t(sizes.size()),
                    dtype,
                    {KPKG_DEVICE_CPU, 0}};
  valueStorage[index].as.tensor = &tensors[index];
  return true;
}

bool Arguments::readList(kpkg_value &value, PyObject *object) {
  if (!PyList_CheckExact(object) && !PyTuple_Check(object))
    return false;
  Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
  if (size > Py_ssize_t(mostListEntries - entryCount))
    return false;
  value.as.list = entries.data() + entryCount;
  value.count = int32_t(size);
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject *entry = PySequence_Fast_GET_ITEM(object, i);
    int overflows = 1;
    if (PyLong_CheckExact(entry))
      entries[entryCount++] = PyLong_AsLongLongAndOverflow(entry, &overflows);
    if (overflows)
      return false;
  }
  return true;
}

using Allocated = std::array<at::Tensor, maxResults>;

kpkg_status allocate(void *context, const kpkg_allocation *wanted, void **data) {
  if (size_t(wanted->index) >= maxResults)
    return kpkg_set_error(KPKG_ERROR_UNSUPPORTED,
                          ("more than " + std::to_string(maxResults) + " results in PyTorch").c_str());
  try {
    at::Tensor &tensor = (*static_cast<Allocated *>(context))[size_t(wanted->index)];
    size_t rank = size_t(wanted->rank);
    tensor = at::detail::empty_strided_cpu({wanted->shape, rank}, {wanted->strides, rank}, typeOf(wanted->dtype));
    *data = tensor.unsafeGetTensorImpl()->mutable_data();
    return KPKG_OK;
  } catch (const std::exception &) {
    return kpkg_set_error(KPKG_ERROR_MEMORY, "PyTorch could not allocate a result");
  }
}

/// Throws the text that calls through the dispatcher give.
[[noreturn]] void throwLastError(const kpkg_op *op) {
  kpkg_error error = {};
  error.struct_size = sizeof error;
  kpkg_last_error(&error);
  kpkg_op_info info = {};
  info.struct_size = sizeof info;
  std::string message = error.message;
  if (kpkg_op_describe(op, &info) == KPKG_OK && message.find(info.name) == std::string::npos)
    message = std::string(info.name) + ": " + message;
  throw std::runtime_error(message);
}

PyObject *wrapTensor(const Arguments &arguments, Allocated &allocated, const kpkg_result &result) {
  if (result.source == KPKG_FROM_ALLOCATION && result.whole)
    return THPVariable_Wrap(std::move(allocated[size_t(result.index)]));
  // Copies a part of an allocation, or an argument, with which results may not share memory.
  at::AutoDispatchBelowADInplaceOrView below;
  const at::Tensor &source =
      result.source == KPKG_FROM_ALLOCATION ? allocated[size_t(result.index)] : arguments.tensor(result.index);
  c10::IntArrayRef shape(result.shape, size_t(result.rank)), strides(result.strides, size_t(result.rank));
  at::Tensor copy = at::detail::empty_strided_cpu(shape, strides, typeOf(result.dtype));
  copy.copy_(source.as_strided(shape, strides, source.storage_offset() + result.offset));
  return THPVariable_Wrap(std::move(copy));
}

PyObject *wrap(const DirectCall &self, const Arguments &arguments, Allocated &allocated, const kpkg_result &result) {
  switch (result.kind) {
  case KPKG_TENSOR:
    return wrapTensor(arguments, allocated, result);
  case KPKG_INT:
    return PyLong_FromLongLong(result.as.integer);
  case KPKG_BOOLEAN:
    return PyBool_FromLong(result.as.integer != 0);
  case KPKG_FLOAT:
    return PyFloat_FromDouble(result.as.real);
  default:
    Py_RETURN_NONE;
  }
}

/// Returns the op's results, or nothing if no kernel of a package runs the call.
std::optional<PyObject *> run(const DirectCall &self, const Arguments &arguments) {
  Allocated allocated;
  std::array<kpkg_result, maxResults> results;
  kpkg_call call = {};
  call.struct_size = sizeof call;
  call.arguments = arguments.values();
  call.argument_count = arguments.count();
  call.results = results.data();
  call.result_capacity = int32_t(maxResults);
  call.allocate = allocate;
  call.allocate_context = &allocated;
  if (self.hasPrecision)
    call.precision = followedPrecision();
  const kpkg_op *op = self.op;
  kpkg_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = kpkg_op_call_packaged(op, &call);
  Py_END_ALLOW_THREADS;
  if (status == KPKG_ERROR_NO_INSTANCE)
    return std::nullopt;
  if (status != KPKG_OK)
    throwLastError(op);
  if (self.resultCount == 1)
    return wrap(self, arguments, allocated, results[0]);
  if (self.resultCount == 0)
    return Py_NewRef(Py_None);
  THPObjectPtr all(PyTuple_New(self.resultCount));
  for (int32_t i = 0; all && i < self.resultCount; ++i) {
    PyObject *each = wrap(self, arguments, allocated, results[size_t(i)]);
    if (!each)
      return nullptr;
    PyTuple_SET_ITEM(all.get(), i, each);
  }
  return all.release();
}

PyObject *callDirect(PyObject *object, PyObject *const *given, size_t flags, PyObject *names) {
  HANDLE_TH_ERRORS
  const DirectCall &self = *reinterpret_cast<DirectCall *>(object);
  if (self.op && isPlain()) {
    Arguments arguments;
    if (arguments.read(self, given, size_t(PyVectorcall_NARGS(flags)), names))
      if (std::optional<PyObject *> result = run(self, arguments))
        return *result;
  }
  if (self.next == Py_None)
    Py_RETURN_NOTIMPLEMENTED;
  return PyObject_Vectorcall(self.next, given, flags, names);
  END_HANDLE_TH_ERRORS
}

bool readParameters(DirectCall &self) {
  kpkg_op_info info = {};
  info.struct_size = sizeof info;
  if (!self.op || kpkg_op_describe(self.op, &info) != KPKG_OK || size_t(info.argument_count) > mostArguments ||
      size_t(info.result_count) > maxResults || self.positional > size_t(info.argument_count))
    return false;
  self.resultCount = info.result_count;
  for (int32_t i = 0; i < info.argument_count; ++i) {
    kpkg_argument_info argument = {};
    argument.struct_size = sizeof argument;
    if (kpkg_op_argument(self.op, i, &argument) != KPKG_OK || argument.mutates)
      return false;
    self.hasPrecision |= std::string_view(argument.name) == "precision";
    self.parameters->push_back(
        {PyUnicode_InternFromString(argument.name), argument.kind, argument.optional != 0, argument.has_default != 0});
  }
  return true;
}

int initialise(PyObject *object, PyObject *args, PyObject *) {
  auto &self = *reinterpret_cast<DirectCall *>(object);
  PyObject *next = nullptr;
  Py_ssize_t op = 0, positional = 0;
  if (self.parameters || !PyArg_ParseTuple(args, "Onn", &next, &op, &positional)) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_TypeError, "a DirectCall is made once");
    return -1;
  }
  self.next = Py_NewRef(next);
  self.op = reinterpret_cast<const kpkg_op *>(op);
  self.positional = size_t(positional);
  self.parameters = new std::vector<Parameter>;
  self.call = callDirect;
  if (!readParameters(self)) {
    PyErr_SetString(PyExc_ValueError, "DirectCall(next, op, positional): the op writes into arguments, has too many of "
                                      "them or results, or is none");
    return -1;
  }
  return 0;
}

/// use(op): runs an op of the same schema from now on, or none
PyObject *use(PyObject *object, PyObject *address) {
  void *op = PyLong_AsVoidPtr(address);
  if (!op && PyErr_Occurred())
    return nullptr;
  reinterpret_cast<DirectCall *>(object)->op = static_cast<const kpkg_op *>(op);
  Py_RETURN_NONE;
}

void destroy(PyObject *object) {
  auto &self = *reinterpret_cast<DirectCall *>(object);
  Py_XDECREF(self.next);
  if (self.parameters)
    for (Parameter &each : *self.parameters)
      Py_XDECREF(each.name);
  delete self.parameters;
  PyTypeObject *type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(DirectCall, call), READONLY, nullptr},
    {"__wrapped__", T_OBJECT, offsetof(DirectCall, next), READONLY, nullptr},
    {},
};
PyMethodDef methods[] = {{"use", use, METH_O, nullptr}, {}};
PyType_Slot slots[] = {
    {Py_tp_init, reinterpret_cast<void *>(initialise)},
    {Py_tp_new, reinterpret_cast<void *>(PyType_GenericNew)},
    {Py_tp_dealloc, reinterpret_cast<void *>(destroy)},
    {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {},
};
PyType_Spec spec = {"kpkg.DirectCall", sizeof(DirectCall), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};

} // namespace

bool defineDirect(PyObject *module) {
  PyObject *type = PyType_FromSpec(&spec);
  bool added = type && PyModule_AddObjectRef(module, "DirectCall", type) == 0;
  Py_XDECREF(type);
  return added;
}

} // namespace kpkg::torch_nodes
