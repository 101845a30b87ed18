// Runs ops as custom calls of XLA, which compiles the programs of JAX.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_PYTHON_XLAHANDLER_H
#define KPKG_RUNTIME_PYTHON_XLAHANDLER_H

#include <nanobind/nanobind.h>

namespace kpkg::python {

/// Adds `xla_handlers()`, a handler for each platform of XLA, and `xla_name_op(name, op)`, which gives calls their op.
///
/// A call has these attributes:
///   _op       name of the op, given to `xla_name_op` in this process
///   _form     one letter per argument: 't' the next buffer, 'v' the attribute of the argument's name, 'n' None
///   _results  one letter per result: 't' the next buffer, '-' a result that is no tensor
/// Buffers of results are followed by one for each tensor that the op writes into, which must share its memory.
void defineXlaHandlers(nanobind::module_ &module);

} // namespace kpkg::python

#endif // KPKG_RUNTIME_PYTHON_XLAHANDLER_H
