// How PyTorch may multiply float32, read by code that knows no Python.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_PYTHON_PRECISION_H
#define KPKG_RUNTIME_PYTHON_PRECISION_H

#include <nanobind/nanobind.h>

namespace kpkg::python {

/// Adds `precision_reader(read)`: the address of a kpkg_torch_precision_fn that calls `read(device type)` under the
/// GIL. What is neither "high" nor "medium", and an exception, is highest. There is one; the last `read` serves.
void definePrecision(nanobind::module_ &module);

} // namespace kpkg::python

#endif // KPKG_RUNTIME_PYTHON_PRECISION_H
