// Calls of an op with Python values: arrays by DLPack or the buffer protocol, results as new arrays.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_PYTHON_CALL_H
#define KPKG_RUNTIME_PYTHON_CALL_H

#include <kpkg/kpkg.h>
#include <nanobind/nanobind.h>

#include <memory>

namespace kpkg::python {

/// An op and what keeps it alive.
struct OpHandle {
  const kpkg_op *op;
  std::shared_ptr<void> owner;
};

/// Makes the module's exception types.
void defineErrors(nanobind::module_ &module);
/// Raises this thread's last error as a Python exception unless `status` is KPKG_OK.
void check(kpkg_status status);

/// Runs the op. `values`: one entry per argument in schema order; `...` takes the default. A tensor is an (array, dtype
/// name or None) pair: the name says what the elements are where the array's own type cannot (bfloat16 seen as uint16).
/// `outputs` is None or a list of such pairs, one per result. Returns a list of (array, dtype name) pairs, scalars and
/// None.
nanobind::list call(const OpHandle &op, nanobind::list values, nanobind::object outputs);
/// Shapes without data: tensors are (shape, strides, dtype name, device type) tuples, in and out.
nanobind::list infer(const OpHandle &op, nanobind::list values);
/// How a call with these values (as for `infer`) would be resolved, as text or JSON.
nanobind::str explain(const OpHandle &op, nanobind::list values, bool json);

} // namespace kpkg::python

#endif // KPKG_RUNTIME_PYTHON_CALL_H
