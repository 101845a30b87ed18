// Reads how PyTorch may multiply float32, for code that knows no Python.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_PYTHON_PRECISION_H
#define KPKG_RUNTIME_PYTHON_PRECISION_H

#include <nanobind/nanobind.h>

namespace kpkg::python {

/// Adds `precision_reader(read)`, which returns the address of a kpkg_torch_precision_fn. That function calls
/// `read(device type)` under the GIL. An exception, and any answer but "high" and "medium", means highest. The process
/// has one reader: a later call replaces `read`.
void definePrecision(nanobind::module_ &module);

} // namespace kpkg::python

#endif // KPKG_RUNTIME_PYTHON_PRECISION_H
