// Implements a callable that wraps a PyTorch op, so that plain calls bypass the dispatcher's autograd key. For an op of
// an extension, the kernel of that key is a Python function, which costs several times the call. The callable uses
// CPython's API directly, since every call goes through it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/python/Unrecorded.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <dlfcn.h>
#include <iterator>
#include <optional>
#include <structmember.h>
#include <utility>
#include <vector>

#include <nanobind/stl/vector.h>

// The limited API has these only from Python 3.12 on, but the ABI of Python 3.10 is the same.
extern "C" PyObject *PyVectorcall_Call(PyObject *callable, PyObject *args, PyObject *kwargs);
#ifndef Py_TPFLAGS_HAVE_VECTORCALL
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
#endif

namespace kpkg::python {
namespace {

struct Unrecorded {
  PyObject_HEAD;
  PyObject *(*call)(PyObject *object, PyObject *const *args, size_t flags, PyObject *argumentNames);
  PyObject *target, *record;    ///< the op, and the function with which autograd records a call of its first argument
  PyObject *tensor, *parameter; ///< the types
  PyObject *isGradEnabled, *countFunctionModes;
  PyObject *forwardMode; ///< the dictionary of torch.autograd.forward_ad
  /// A list of autocast's rules for arguments on the CPU and on a GPU. A rule is a dtype, a function that returns it,
  /// or a word that decides for arguments of several dtypes. A pair of a rule and positions is for these arguments
  /// only.
  PyObject *casts;
};

/// c10::impl's functions for the dispatcher's thread-local state. From Python, these calls take microseconds. The
/// functions are not part of PyTorch's stable ABI, so they are used only after `useDispatchState` has verified them.
struct DispatchState {
  bool works = false;
  bool (*isIncluded)(uint16_t key) = nullptr;
  bool (*isExcluded)(uint16_t key) = nullptr;
  void (*setExcluded)(uint16_t key, bool excluded) = nullptr;
  uint16_t autograd = 0;
  std::vector<uint16_t>
      modes; ///< keys that are included while torch.func, dispatch modes or tracing have to see all calls
  std::vector<uint16_t> autocast; ///< keys of the CPU and of CUDA that are excluded while autocast is off
};
DispatchState state;

/// Returns whether only autograd and autocast have to see a call.
bool isPlain() {
  for (uint16_t key : state.modes)
    if (state.isIncluded(key))
      return false;
  return true;
}

/// Interned names of attributes.
struct Names {
  PyObject *requiresGrad, *currentLevel, *isCuda, *dtype, *to;
};
Names names;
std::vector<nanobind::object>
    *castDtypes; ///< the dtypes that autocast changes; never freed, as the interpreter ends first

/// The most arguments that an op of PyTorch may have.
constexpr Py_ssize_t mostArguments = 32;

/// Returns whether `value` is a tensor that requires a gradient: 1 or 0, or -1 with an exception set.
int needsGradient(const Unrecorded &self, PyObject *value) {
  int isTensor = Py_TYPE(value) == reinterpret_cast<PyTypeObject *>(self.tensor) ||
                 PyType_IsSubtype(Py_TYPE(value), reinterpret_cast<PyTypeObject *>(self.tensor));
  if (!isTensor)
    return 0;
  PyObject *answer = PyObject_GetAttr(value, names.requiresGrad);
  if (!answer)
    return -1;
  int needs = PyObject_IsTrue(answer);
  Py_DECREF(answer);
  return needs;
}

/// Returns whether autograd may have to record the call: 1 or 0, or -1 with an exception set.
int mayRecord(const Unrecorded &self, PyObject *const *values, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; ++i) {
    int needs = needsGradient(self, values[i]);
    if (needs < 0)
      return -1;
    if (!needs)
      continue;
    PyObject *enabled = PyObject_CallNoArgs(self.isGradEnabled);
    if (!enabled)
      return -1;
    int result = PyObject_IsTrue(enabled);
    Py_DECREF(enabled);
    return result;
  }
  return 0;
}

bool isForwardMode(const Unrecorded &self) {
  PyObject *level = PyDict_GetItem(self.forwardMode, names.currentLevel);
  return !level || PyLong_AsLong(level) >= 0;
}

bool isAutocast() {
  return std::any_of(state.autocast.begin(), state.autocast.end(), [](uint16_t key) { return !state.isExcluded(key); });
}

/// Returns whether only autograd and autocast have to see a call with these arguments. Then tensors are of PyTorch's
/// own types, and there are no function modes.
bool isDirect(const Unrecorded &self, PyObject *const *values, Py_ssize_t count) {
  if (state.isExcluded(state.autograd))
    return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    auto *type = reinterpret_cast<PyObject *>(Py_TYPE(values[i]));
    if (type != self.tensor && type != self.parameter &&
        PyType_IsSubtype(Py_TYPE(values[i]), reinterpret_cast<PyTypeObject *>(self.tensor)))
      return false;
  }
  PyObject *modes = PyObject_CallNoArgs(self.countFunctionModes);
  bool none = modes && PyLong_AsLong(modes) == 0;
  Py_XDECREF(modes);
  PyErr_Clear();
  return none;
}

/// Calls the op, or the function that records it if `records` is set.
PyObject *makeCall(PyObject *object, PyObject *const *args, size_t count, bool records) {
  const Unrecorded &self = *reinterpret_cast<Unrecorded *>(object);
  if (records) {
    PyObject *all[1 + mostArguments] = {object}; // the node's forward calls it, with gradients disabled
    std::copy_n(args, count, all + 1);
    return nanobind::detail::vectorcall(self.record, all, count + 1, nullptr);
  }
  bool before = state.isExcluded(state.autograd);
  state.setExcluded(state.autograd, true);
  PyObject *result = nanobind::detail::vectorcall(self.target, args, count, nullptr);
  state.setExcluded(state.autograd, before);
  return result;
}

bool isTensor(const Unrecorded &self, PyObject *value) {
  auto *type = reinterpret_cast<PyObject *>(Py_TYPE(value));
  return type == self.tensor || type == self.parameter;
}

nanobind::object attribute(PyObject *object, PyObject *name) {
  PyObject *value = PyObject_GetAttr(object, name);
  if (!value)
    throw nanobind::python_error();
  return nanobind::steal(value);
}

bool isTrue(PyObject *object, PyObject *name) { return attribute(object, name).is(Py_True); }

/// Makes the call under autocast: floating-point arguments are cast to the dtype of the op, and autocast is off within.
/// Returns nothing if Python has to decide, since arguments have several dtypes or the rule is for some arguments only.
std::optional<nanobind::object> autocastCall(PyObject *object, PyObject *const *args, Py_ssize_t count, bool records) {
  const Unrecorded &self = *reinterpret_cast<Unrecorded *>(object);
  PyObject *const *first = std::find_if(args, args + count, [&](PyObject *value) { return isTensor(self, value); });
  if (first == args + count)
    return std::nullopt;
  int device = isTrue(*first, names.isCuda);
  nanobind::object wanted = nanobind::borrow(PyList_GetItem(self.casts, device));
  bool isOn = !state.isExcluded(state.autocast[size_t(device)]);
  if (PyTuple_Check(wanted.ptr()))
    return std::nullopt;
  if (isOn && PyCallable_Check(wanted.ptr()))
    wanted = wanted();
  bool isWord = PyUnicode_Check(wanted.ptr());

  std::vector<nanobind::object> values(static_cast<size_t>(count));
  PyObject *all[mostArguments];
  nanobind::object common;
  for (Py_ssize_t i = 0; i < count; ++i) {
    values[size_t(i)] = nanobind::borrow(args[i]);
    if (isOn && isTensor(self, args[i])) {
      nanobind::object dtype = attribute(args[i], names.dtype);
      auto isDtype = [&](const nanobind::object &each) { return each.is(dtype); };
      if (std::any_of(castDtypes->begin(), castDtypes->end(), isDtype)) {
        if (isWord && common && !common.is(dtype))
          return std::nullopt;
        common = dtype;
        if (!isWord && !wanted.is(dtype))
          values[size_t(i)] = nanobind::handle(args[i]).attr(names.to)(wanted);
      }
    }
    all[i] = values[size_t(i)].ptr();
  }
  if (!isOn)
    return std::nullopt;
  uint16_t key = state.autocast[size_t(device)];
  state.setExcluded(key, true);
  PyObject *result = makeCall(object, all, size_t(count), records);
  state.setExcluded(key, false);
  if (!result)
    throw nanobind::python_error();
  return nanobind::steal(result);
}

PyObject *callUnrecorded(PyObject *object, PyObject *const *args, size_t flags, PyObject *argumentNames) {
  const Unrecorded &self = *reinterpret_cast<Unrecorded *>(object);
  if (!state.works || isForwardMode(self) || !isPlain())
    return nanobind::detail::vectorcall(self.target, args, flags, argumentNames);
  Py_ssize_t count = NB_VECTORCALL_NARGS(flags) + (argumentNames ? PyTuple_Size(argumentNames) : 0);
  int records = mayRecord(self, args, count);
  if (records < 0)
    return nullptr;
  bool casts = isAutocast();
  if ((records || casts) && !argumentNames && count <= mostArguments && isDirect(self, args, count)) {
    if (!casts)
      return makeCall(object, args, size_t(count), true);
    try {
      if (std::optional<nanobind::object> result = autocastCall(object, args, count, records))
        return result->release().ptr();
    } catch (nanobind::python_error &error) {
      error.restore();
      return nullptr;
    }
  }
  if (records)
    return nanobind::detail::vectorcall(self.target, args, flags, argumentNames);
  bool before = state.isExcluded(state.autograd);
  state.setExcluded(state.autograd, true);
  PyObject *result = nanobind::detail::vectorcall(self.target, args, flags, argumentNames);
  state.setExcluded(state.autograd, before);
  return result;
}

/// The members that the constructor takes, in the order of its arguments.
constexpr PyObject *Unrecorded::*given[] = {&Unrecorded::target,        &Unrecorded::record,
                                            &Unrecorded::tensor,        &Unrecorded::parameter,
                                            &Unrecorded::isGradEnabled, &Unrecorded::countFunctionModes,
                                            &Unrecorded::forwardMode,   &Unrecorded::casts};

int initialise(PyObject *object, PyObject *args, PyObject *) {
  auto &self = *reinterpret_cast<Unrecorded *>(object);
  if (PyTuple_Size(args) != Py_ssize_t(std::size(given)) || !PyType_Check(PyTuple_GetItem(args, 2)) ||
      !PyType_Check(PyTuple_GetItem(args, 3)) || !PyDict_Check(PyTuple_GetItem(args, 6)) ||
      !PyList_Check(PyTuple_GetItem(args, 7)) || PyList_Size(PyTuple_GetItem(args, 7)) != 2) {
    PyErr_SetString(
        PyExc_TypeError,
        "Unrecorded(target, record, tensor, parameter, is_grad_enabled, count_function_modes, forward_mode, casts)");
    return -1;
  }
  self.call = callUnrecorded;
  Py_ssize_t next = 0;
  for (PyObject *Unrecorded::*member : given)
    self.*member = Py_NewRef(PyTuple_GetItem(args, next++));
  return 0;
}

void destroy(PyObject *object) {
  auto &self = *reinterpret_cast<Unrecorded *>(object);
  for (PyObject *Unrecorded::*member : given)
    Py_XDECREF(self.*member);
  PyTypeObject *type = Py_TYPE(object);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Unrecorded, call), READONLY, nullptr},
    {"__wrapped__", T_OBJECT, offsetof(Unrecorded, target), READONLY, nullptr},
    {},
};
PyType_Slot slots[] = {
    {Py_tp_init, reinterpret_cast<void *>(initialise)},
    {Py_tp_new, reinterpret_cast<void *>(PyType_GenericNew)},
    {Py_tp_dealloc, reinterpret_cast<void *>(destroy)},
    {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
    {Py_tp_members, members},
    {},
};
PyType_Spec spec = {"kpkg._native.Unrecorded", sizeof(Unrecorded), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
                    slots};

} // namespace

/// Finds c10::impl's functions and compares them with PyTorch's `isIncluded` and `isExcluded`. Keys are PyTorch's
/// numbers. Returns false if the functions are missing or behave differently. Every call then goes to its target.
static bool useDispatchState(uint16_t autograd, std::vector<uint16_t> modes, std::vector<uint16_t> autocast,
                             const nanobind::callable &isIncluded, const nanobind::callable &isExcluded,
                             std::vector<nanobind::object> cast) {
  void *library = ::dlopen("libc10.so", RTLD_NOW | RTLD_NOLOAD);
  if (!library)
    return false;
  DispatchState found;
  found.isIncluded = reinterpret_cast<bool (*)(uint16_t)>(
      ::dlsym(library, "_ZN3c104impl28tls_is_dispatch_key_includedENS_11DispatchKeyE"));
  found.isExcluded = reinterpret_cast<bool (*)(uint16_t)>(
      ::dlsym(library, "_ZN3c104impl28tls_is_dispatch_key_excludedENS_11DispatchKeyE"));
  found.setExcluded = reinterpret_cast<void (*)(uint16_t, bool)>(
      ::dlsym(library, "_ZN3c104impl29tls_set_dispatch_key_excludedENS_11DispatchKeyEb"));
  if (!found.isIncluded || !found.isExcluded || !found.setExcluded)
    return false;
  auto agrees = [&](uint16_t key) {
    return found.isIncluded(key) == nanobind::cast<bool>(isIncluded(key)) &&
           found.isExcluded(key) == nanobind::cast<bool>(isExcluded(key));
  };
  found.works = true;
  bool before = nanobind::cast<bool>(isExcluded(autograd));
  for (bool excluded : {true, false, true, before}) {
    found.setExcluded(autograd, excluded);
    found.works &= nanobind::cast<bool>(isExcluded(autograd)) == excluded && agrees(autograd);
  }
  for (const std::vector<uint16_t> &keys : {modes, autocast})
    for (uint16_t key : keys)
      found.works &= agrees(key);
  if (!castDtypes)
    castDtypes = new std::vector<nanobind::object>(std::move(cast));
  found.autograd = autograd;
  found.modes = std::move(modes);
  found.autocast = std::move(autocast);
  if (found.works)
    state = std::move(found);
  return state.works;
}

void defineUnrecorded(nanobind::module_ &module) {
  module.def("use_dispatch_state", useDispatchState, nanobind::arg("autograd"), nanobind::arg("modes"),
             nanobind::arg("autocast"), nanobind::arg("is_included"), nanobind::arg("is_excluded"),
             nanobind::arg("cast"));
  auto intern = [](const char *text) { return PyUnicode_InternFromString(text); };
  names = {intern("requires_grad"), intern("_current_level"), intern("is_cuda"), intern("dtype"), intern("to")};
  PyObject *type = PyType_FromSpec(&spec);
  if (!type || PyModule_AddObjectRef(module.ptr(), "Unrecorded", type) != 0)
    throw nanobind::python_error();
  Py_DECREF(type);
}

} // namespace kpkg::python
