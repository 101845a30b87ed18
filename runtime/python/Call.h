// Calls an op with Python values: takes arrays by DLPack or the buffer protocol, and returns results as new arrays.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_PYTHON_CALL_H
#define KPKG_RUNTIME_PYTHON_CALL_H

#include <kpkg/kpkg.h>
#include <nanobind/nanobind.h>

#include <memory>
#include <string>

namespace kpkg::python {

/// An op and the owner that keeps it alive.
struct OpHandle {
  const kpkg_op *op;
  std::shared_ptr<void> owner;
};

/// Adds the module's exception types.
void defineErrors(nanobind::module_ &module);
/// Raises this thread's last error as a Python exception unless `status` is KPKG_OK.
void check(kpkg_status status);

/// Runs the op without the GIL. `values` has one entry per argument in schema order; `...` takes the default.
///
/// A tensor is a pair of an array and a dtype name or None. The name gives the element type where the array's own type
/// cannot (bfloat16 seen as uint16). `outputs` is None or a list of such pairs, one per result; None in it leaves that
/// result to be allocated.
///
/// Returns a list of (array, dtype name) pairs, scalars and None. A result in `outputs` is None, too. Raises TypeError
/// for a value that does not fit the schema, and the errors of `check`.
nanobind::list call(const OpHandle &op, nanobind::list values, nanobind::object outputs);
/// Returns the results of a call without data. Tensors are (shape, strides, dtype name, device type) tuples, both in
/// `values` and in the results.
nanobind::list infer(const OpHandle &op, nanobind::list values);
/// Explains, as text or JSON, how dispatch would resolve a call with these values, given as for `infer`.
nanobind::str explain(const OpHandle &op, nanobind::list values, bool json);
/// Returns the JSON of kpkg_op_resolve for a call with these values, given as for `infer`.
nanobind::str resolve(const OpHandle &op, nanobind::list values, const std::string &target);

} // namespace kpkg::python

#endif // KPKG_RUNTIME_PYTHON_CALL_H
