// Reads how PyTorch may multiply float32, for code that knows no Python.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/python/Precision.h"

#include <cstdint>
#include <string_view>

namespace kpkg::python {

static PyObject *read; ///< never released: the module lives as long as the process

/// Returns a static text, since the caller reads it without the GIL.
static const char *nameOf(PyObject *answer) {
  if (!PyUnicode_Check(answer))
    return nullptr;
  if (PyUnicode_CompareWithASCIIString(answer, "high") == 0)
    return "high";
  return PyUnicode_CompareWithASCIIString(answer, "medium") == 0 ? "medium" : nullptr;
}

static const char *readPrecision(int32_t device) {
  if (!Py_IsInitialized())
    return nullptr;
  nanobind::gil_scoped_acquire lock;
  PyObject *argument = PyLong_FromLong(device);
  PyObject *answer = argument ? PyObject_CallOneArg(read, argument) : nullptr;
  Py_XDECREF(argument);
  const char *name = answer ? nameOf(answer) : nullptr;
  if (!answer)
    PyErr_WriteUnraisable(read);
  Py_XDECREF(answer);
  return name;
}

void definePrecision(nanobind::module_ &module) {
  module.def(
      "precision_reader",
      [](nanobind::callable reader) {
        Py_XSETREF(read, reader.release().ptr());
        return reinterpret_cast<uintptr_t>(&readPrecision);
      },
      nanobind::arg("read"));
}

} // namespace kpkg::python
