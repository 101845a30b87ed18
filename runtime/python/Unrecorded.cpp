// The callable that stands before a PyTorch op and spares plain calls the way through autograd's key of the dispatcher,
// whose kernel of an extension's op is a Python function and costs several times the call. Written against CPython
// itself: it is on the path of every call. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/python/Unrecorded.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <dlfcn.h>
#include <structmember.h>
#include <utility>
#include <vector>

#include <nanobind/stl/vector.h>

namespace kpkg::python {
namespace {

struct Unrecorded {
  PyObject_HEAD;
  vectorcallfunc call;
  PyObject *target, *record;    ///< the op, and what makes autograd record a call of what its first argument calls
  PyObject *tensor, *parameter; ///< the types
  PyObject *isGradEnabled, *countFunctionModes;
  PyObject *forwardMode; ///< the dictionary of torch.autograd.forward_ad
};

/// c10::impl's functions for the thread's state of the dispatcher, which Python asks for and changes in microseconds.
/// They are no part of PyTorch's stable ABI, so they are used only once `useDispatchState` has seen them do what they
/// should.
struct DispatchState {
  bool works = false;
  bool (*isIncluded)(uint16_t key) = nullptr;
  bool (*isExcluded)(uint16_t key) = nullptr;
  void (*setExcluded)(uint16_t key, bool excluded) = nullptr;
  uint16_t autograd = 0;
  std::vector<uint16_t>
      modes; ///< keys that are included while something is to see all calls: torch.func, dispatch modes, tracing
  std::vector<uint16_t> autocast; ///< keys that are excluded while autocast is off
};
DispatchState state;

/// Whether nothing but autograd and autocast has to see a call.
bool isPlain() {
  for (uint16_t key : state.modes)
    if (state.isIncluded(key))
      return false;
  return true;
}

PyObject *requiresGrad, *currentLevel; ///< interned names

/// As many as an op in PyTorch may have.
constexpr Py_ssize_t mostArguments = 32;

/// 1 or 0; -1 with an exception set.
int needsGradient(const Unrecorded &self, PyObject *value) {
  int isTensor = Py_TYPE(value) == reinterpret_cast<PyTypeObject *>(self.tensor) ||
                 PyType_IsSubtype(Py_TYPE(value), reinterpret_cast<PyTypeObject *>(self.tensor));
  if (!isTensor)
    return 0;
  PyObject *answer = PyObject_GetAttr(value, requiresGrad);
  if (!answer)
    return -1;
  int needs = PyObject_IsTrue(answer);
  Py_DECREF(answer);
  return needs;
}

/// Whether autograd may have to record the call.
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
  PyObject *level = PyDict_GetItem(self.forwardMode, currentLevel);
  return !level || PyLong_AsLong(level) >= 0;
}

/// Whether `record` can make the call: on plain tensors, with nothing else to see it.
bool canRecordDirectly(const Unrecorded &self, PyObject *const *values, Py_ssize_t count) {
  if (state.isExcluded(state.autograd))
    return false;
  for (uint16_t key : state.autocast)
    if (!state.isExcluded(key))
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

PyObject *callUnrecorded(PyObject *object, PyObject *const *args, size_t flags, PyObject *names) {
  const Unrecorded &self = *reinterpret_cast<Unrecorded *>(object);
  if (!state.works || isForwardMode(self) || !isPlain())
    return PyObject_Vectorcall(self.target, args, flags, names);
  Py_ssize_t count = PyVectorcall_NARGS(flags) + (names ? PyTuple_GET_SIZE(names) : 0);
  int records = mayRecord(self, args, count);
  if (records < 0)
    return nullptr;
  if (records && !names && count <= mostArguments && canRecordDirectly(self, args, count)) {
    PyObject *all[1 + mostArguments] = {
        object}; // which within the node's forward, where gradients are disabled, comes to the end of this function
    std::copy_n(args, count, all + 1);
    return PyObject_Vectorcall(self.record, all, size_t(count + 1), nullptr);
  }
  if (records)
    return PyObject_Vectorcall(self.target, args, flags, names);
  bool before = state.isExcluded(state.autograd);
  state.setExcluded(state.autograd, true);
  PyObject *result = PyObject_Vectorcall(self.target, args, flags, names);
  state.setExcluded(state.autograd, before);
  return result;
}

int initialise(PyObject *object, PyObject *args, PyObject *) {
  auto &self = *reinterpret_cast<Unrecorded *>(object);
  PyObject *target, *record, *tensor, *parameter, *isGradEnabled, *countFunctionModes, *forwardMode;
  if (!PyArg_ParseTuple(args, "OOO!O!OOO!", &target, &record, &PyType_Type, &tensor, &PyType_Type, &parameter,
                        &isGradEnabled, &countFunctionModes, &PyDict_Type, &forwardMode))
    return -1;
  self.call = callUnrecorded;
  self.target = Py_NewRef(target);
  self.record = Py_NewRef(record);
  self.tensor = Py_NewRef(tensor);
  self.parameter = Py_NewRef(parameter);
  self.isGradEnabled = Py_NewRef(isGradEnabled);
  self.countFunctionModes = Py_NewRef(countFunctionModes);
  self.forwardMode = Py_NewRef(forwardMode);
  return 0;
}

void destroy(PyObject *object) {
  auto &self = *reinterpret_cast<Unrecorded *>(object);
  for (PyObject *member : {self.target, self.record, self.tensor, self.parameter, self.isGradEnabled,
                           self.countFunctionModes, self.forwardMode})
    Py_XDECREF(member);
  PyTypeObject *type = Py_TYPE(object);
  type->tp_free(object);
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

/// Keys are PyTorch's numbers of them; `isIncluded` and `isExcluded` ask PyTorch about them. False when the functions
/// are not there or do something else, and then every call goes to its target.
static bool useDispatchState(uint16_t autograd, std::vector<uint16_t> modes, std::vector<uint16_t> autocast,
                             const nanobind::callable &isIncluded, const nanobind::callable &isExcluded) {
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
  found.autograd = autograd;
  found.modes = std::move(modes);
  found.autocast = std::move(autocast);
  if (found.works)
    state = std::move(found);
  return state.works;
}

void defineUnrecorded(nanobind::module_ &module) {
  module.def("use_dispatch_state", useDispatchState, nanobind::arg("autograd"), nanobind::arg("modes"),
             nanobind::arg("autocast"), nanobind::arg("is_included"), nanobind::arg("is_excluded"));
  requiresGrad = PyUnicode_InternFromString("requires_grad");
  currentLevel = PyUnicode_InternFromString("_current_level");
  PyObject *type = PyType_FromSpec(&spec);
  if (!type || PyModule_AddObjectRef(module.ptr(), "Unrecorded", type) != 0)
    throw nanobind::python_error();
  Py_DECREF(type);
}

} // namespace kpkg::python
