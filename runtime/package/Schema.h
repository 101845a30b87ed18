// Schemas of ops as text, as PyTorch writes them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_SCHEMA_H
#define KPKG_PACKAGE_SCHEMA_H

#include "runtime/package/Tables.h"

namespace kpkg::package {

/// The op of "kpkg::gemm(Tensor a, Tensor b, float alpha=1.0) -> Tensor", or, where there is no "(", of a name alone,
/// which then has no schema. The name has a namespace. `referToTexts` is the caller's.
Result<OpEntry> readSchema(const std::string &text);

/// The schema of an op by its arguments and results, in the one spelling that packages have.
std::string schemaOf(const OpEntry &op);

/// Why a package may not have this op: its names are none that PyTorch and Python take, or its schema is not that of
/// its arguments and results, by which calls go. Empty when nothing is wrong.
std::string checkOp(const OpEntry &op);

} // namespace kpkg::package
#endif
