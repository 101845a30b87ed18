// Reads how PyTorch may multiply float32, for code that knows no Python.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/python/Precision.h"
#include "runtime/python/Gil.h"

#include <cstdint>
#include <string_view>

namespace kpkg::python {

/// The function of Python; never released, since the module lives as long as the process.
static nanobind::object *read;

/// Returns a static text, since the caller reads it without the GIL.
static const char *nameOf(const nanobind::object &answer) {
  if (!PyUnicode_Check(answer.ptr()))
    return nullptr;
  if (PyUnicode_CompareWithASCIIString(answer.ptr(), "high") == 0)
    return "high";
  return PyUnicode_CompareWithASCIIString(answer.ptr(), "medium") == 0 ? "medium" : nullptr;
}

static const char *readPrecision(int32_t device) {
  if (!Py_IsInitialized())
    return nullptr;
  HoldGil lock;
  try {
    return nameOf((*read)(device));
  } catch (nanobind::python_error &error) {
    error.discard_as_unraisable(*read);
    return nullptr;
  }
}

void definePrecision(nanobind::module_ &module) {
  module.def(
      "precision_reader",
      [](nanobind::callable reader) {
        if (!read)
          read = new nanobind::object;
        *read = std::move(reader);
        return reinterpret_cast<uintptr_t>(&readPrecision);
      },
      nanobind::arg("read"));
}

} // namespace kpkg::python
