// Parses schemas of ops in PyTorch's format.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_SCHEMA_H
#define KPKG_PACKAGE_SCHEMA_H

#include "runtime/package/Tables.h"

namespace kpkg::package {

/// Parses an op such as "kpkg::gemm(Tensor a, Tensor b, float alpha=1.0) -> Tensor". Without "(" it is only a name, and
/// the op has no schema. The name has a namespace. The caller must call `referToTexts`.
Result<OpEntry> readSchema(const std::string &text);

/// Returns the schema of an op from its arguments and results, in the canonical format of packages.
std::string schemaOf(const OpEntry &op);

/// Returns why a package may not have this op; empty if it may. Its names must be valid in PyTorch and Python. Its
/// schema must match its arguments and results, which calls use.
std::string checkOp(const OpEntry &op);

} // namespace kpkg::package
#endif
