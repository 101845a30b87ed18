// Writes the schemas by which PyTorch knows an op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_TORCH_SCHEMAS_H
#define KPKG_RUNTIME_TORCH_SCHEMAS_H

#include <kpkg/kpkg.h>

#include <optional>
#include <string>
#include <string_view>

namespace kpkg::torch_abi {

/// Returns `schema` with symbolic integers as arguments. A compiled graph is then not specialised for a size that is an
/// argument.
std::string symbolicSchema(std::string_view schema);

/// Returns the schema of `op` in PyTorch, without a namespace. It throws nothing: null stands for a failed kpkg call.
///
/// The out= form (`isOut`) has the overload name "out", an argument per result after the op's own, and no results.
/// PyTorch cannot compile ops that return arguments, except ops with Tag.out (2.13). Inductor calls those instead of
/// the op itself, with arguments that do not fit. Ops that write into arguments, or return anything but tensors, have
/// no such form.
std::optional<std::string> torchSchema(const kpkg_op *op, bool isOut);

} // namespace kpkg::torch_abi

#endif // KPKG_RUNTIME_TORCH_SCHEMAS_H
