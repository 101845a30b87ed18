// The callable that stands before a PyTorch op and spares calls without gradients the way through autograd, whose kernel of an
// extension's op is a Python function and costs as much again as the call. Written against CPython itself: it is on the path of every call.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/python/Unrecorded.h"

#include <cstddef>
#include <cstdint>
#include <dlfcn.h>
#include <structmember.h>

namespace kpkg::python {
namespace {

struct Unrecorded {
  PyObject_HEAD;
  vectorcallfunc call;
  PyObject *target;
  PyObject *tensor;
  PyObject *isGradEnabled;
  PyObject *scope;
};

/// c10::impl::tls_(is|set)_dispatch_key_excluded(DispatchKey, bool): what `scope` does in the end, without its 1.5 us in Python. They are no
/// part of PyTorch's stable ABI, so they are used only once `useKeySwitch` has seen them do what they should.
struct KeySwitch {
  bool (*isExcluded)(uint16_t key) = nullptr;
  void (*setExcluded)(uint16_t key, bool excluded) = nullptr;
  uint16_t key = 0;
};
KeySwitch keySwitch;

PyObject *requiresGrad, *enterName, *exitName; ///< interned names

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

/// Leaves the scope; an exception of the call goes on.
bool leave(PyObject *scope) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject *none[] = {scope, Py_None, Py_None, Py_None};
  PyObject *left = PyObject_VectorcallMethod(exitName, none, 4, nullptr);
  Py_XDECREF(left);
  if (left || type)
    PyErr_Restore(type, value, trace);
  return left != nullptr;
}

PyObject *callUnrecorded(PyObject *object, PyObject *const *args, size_t flags, PyObject *names) {
  const Unrecorded &self = *reinterpret_cast<Unrecorded *>(object);
  Py_ssize_t count = PyVectorcall_NARGS(flags) + (names ? PyTuple_GET_SIZE(names) : 0);
  int records = mayRecord(self, args, count);
  if (records < 0)
    return nullptr;
  if (records)
    return PyObject_Vectorcall(self.target, args, flags, names);
  if (keySwitch.setExcluded) {
    bool before = keySwitch.isExcluded(keySwitch.key);
    keySwitch.setExcluded(keySwitch.key, true);
    PyObject *result = PyObject_Vectorcall(self.target, args, flags, names);
    keySwitch.setExcluded(keySwitch.key, before);
    return result;
  }
  PyObject *scope = PyObject_CallNoArgs(self.scope);
  PyObject *entered = scope ? PyObject_CallMethodNoArgs(scope, enterName) : nullptr;
  PyObject *result = nullptr;
  if (entered) {
    result = PyObject_Vectorcall(self.target, args, flags, names);
    if (!leave(scope))
      Py_CLEAR(result);
  }
  Py_XDECREF(entered);
  Py_XDECREF(scope);
  return result;
}

int initialise(PyObject *object, PyObject *args, PyObject *) {
  auto &self = *reinterpret_cast<Unrecorded *>(object);
  PyObject *target, *tensor, *isGradEnabled, *scope;
  if (!PyArg_ParseTuple(args, "OO!OO", &target, &PyType_Type, &tensor, &isGradEnabled, &scope))
    return -1;
  self.call = callUnrecorded;
  self.target = Py_NewRef(target);
  self.tensor = Py_NewRef(tensor);
  self.isGradEnabled = Py_NewRef(isGradEnabled);
  self.scope = Py_NewRef(scope);
  return 0;
}

void destroy(PyObject *object) {
  auto &self = *reinterpret_cast<Unrecorded *>(object);
  for (PyObject *member : {self.target, self.tensor, self.isGradEnabled, self.scope})
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
PyType_Spec spec = {"kpkg._native.Unrecorded", sizeof(Unrecorded), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};

} // namespace

/// `key` is PyTorch's number of the dispatch key of autograd; `isExcluded` asks PyTorch about it. False when the functions are not there or do
/// something else, and then `scope` is used.
static bool useKeySwitch(uint16_t key, const nanobind::callable &isExcluded) {
  KeySwitch found;
  void *library = ::dlopen("libc10.so", RTLD_NOW | RTLD_NOLOAD);
  if (!library)
    return false;
  found.isExcluded = reinterpret_cast<bool (*)(uint16_t)>(::dlsym(library, "_ZN3c104impl28tls_is_dispatch_key_excludedENS_11DispatchKeyE"));
  found.setExcluded = reinterpret_cast<void (*)(uint16_t, bool)>(::dlsym(library, "_ZN3c104impl29tls_set_dispatch_key_excludedENS_11DispatchKeyEb"));
  found.key = key;
  if (!found.isExcluded || !found.setExcluded)
    return false;
  bool before = nanobind::cast<bool>(isExcluded());
  bool works = found.isExcluded(key) == before;
  for (bool excluded : {true, false, true, before}) {
    found.setExcluded(key, excluded);
    works &= nanobind::cast<bool>(isExcluded()) == excluded && found.isExcluded(key) == excluded;
  }
  if (works)
    keySwitch = found;
  return works;
}

void defineUnrecorded(nanobind::module_ &module) {
  module.def("use_key_switch", useKeySwitch, nanobind::arg("key"), nanobind::arg("is_excluded"));
  requiresGrad = PyUnicode_InternFromString("requires_grad");
  enterName = PyUnicode_InternFromString("__enter__");
  exitName = PyUnicode_InternFromString("__exit__");
  PyObject *type = PyType_FromSpec(&spec);
  if (!type || PyModule_AddObjectRef(module.ptr(), "Unrecorded", type) != 0)
    throw nanobind::python_error();
  Py_DECREF(type);
}

} // namespace kpkg::python
