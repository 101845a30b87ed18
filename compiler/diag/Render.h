// Renders diagnostics as text for people and as JSON for programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/diag/Diagnostics.h"
#include <string>

namespace kpkg::compiler {

struct TextOptions {
  bool colour = false;
  /// Longer source lines are cut to a window around the marked range.
  uint32_t lineWidth = 120;
};

/// Renders one diagnostic as
///   softmax.k:12:7: error: found end of line, expected `)` [K0121]
///      12 | var x = f(1
///         |            ^
/// with its notes, fixes and instances; the text ends with a newline. Control characters and invalid UTF-8 of the
/// source never reach the terminal.
std::string renderText(const Diagnostic &diagnostic, const SourceManager &sources, const TextOptions &options = {});
/// Renders all diagnostics, then a summary line if there were errors.
std::string renderText(const DiagnosticEngine &engine, const SourceManager &sources, const TextOptions &options = {});

/// Renders one JSON object on one line, without the newline:
/// {"code","severity","message","file","range","notes","fixes", "instances"}. Lines and columns count from 1, "offset"
/// is in bytes.
std::string renderJson(const Diagnostic &diagnostic, const SourceManager &sources);

/// Returns the text on one line without control characters, marks that reorder text, and invalid UTF-8.
std::string printable(std::string_view text);

/// Returns whether a stream supports colours: it is a terminal, TERM is not "dumb" and NO_COLOR is not set.
bool wantsColour(int fileDescriptor);

} // namespace kpkg::compiler
