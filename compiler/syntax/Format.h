// The one layout of .k source: what `kpkg fmt` writes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/diag/Diagnostics.h"
#include "compiler/source/Source.h"
#include <optional>
#include <string>

namespace kpkg::compiler {

/// The file's text in the one layout, which depends on its tokens, comments, blank lines, and on the lines of bracketed
/// lists that end with a comma. Nothing when the file has syntax errors, which then are in `diags`.
std::optional<std::string> formatSource(const SourceFile &file, DiagnosticEngine &diags);

/// Whether two sources have the same tokens, blocks and comments in the same order.
bool hasSameTokens(const SourceFile &one, const SourceFile &other);

} // namespace kpkg::compiler
