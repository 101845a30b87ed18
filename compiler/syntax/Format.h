// Formats .k source in the canonical layout of `kpkg fmt`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/diag/Diagnostics.h"
#include "compiler/source/Source.h"
#include <optional>
#include <string>

namespace kpkg::compiler {

/// Returns the file's text in the canonical layout. The layout depends on tokens, comments, blank lines, and on the
/// lines of bracketed lists that end with a comma. Nothing if the file has syntax errors, which then are in `diags`.
std::optional<std::string> formatSource(const SourceFile &file, DiagnosticEngine &diags);

/// Returns whether two sources have the same tokens, blocks and comments in the same order.
bool hasSameTokens(const SourceFile &one, const SourceFile &other);

} // namespace kpkg::compiler
