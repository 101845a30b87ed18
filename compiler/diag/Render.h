// Turns diagnostics into text for people and into JSON for programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/diag/Diagnostics.h"
#include <string>

namespace kpkg::compiler {

struct TextOptions {
  bool colour = false;
  /// Source lines longer than this are cut to a window around what is marked.
  uint32_t lineWidth = 120;
};

/// One diagnostic as
///   softmax.k:12:7: error: found end of line, expected `)` [K0121]
///      12 | var x = f(1
///         |            ^
/// with its notes, fixes and instances; ends with a newline. Control characters and invalid UTF-8 of the source never
/// reach the terminal.
std::string renderText(const Diagnostic &diagnostic, const SourceManager &sources, const TextOptions &options = {});
/// All of them, then a summary line when there were errors.
std::string renderText(const DiagnosticEngine &engine, const SourceManager &sources, const TextOptions &options = {});

/// One JSON object on one line, without the newline: {"code","severity","message","file","range","notes","fixes",
/// "instances"}; lines and columns count from 1, "offset" is in bytes.
std::string renderJson(const Diagnostic &diagnostic, const SourceManager &sources);

/// The text in one line without what would steer a terminal: control characters, marks that reorder text, bytes that
/// are not UTF-8.
std::string printable(std::string_view text);

/// Whether a stream wants colours: it is a terminal, TERM is not "dumb" and NO_COLOR is not set.
bool wantsColour(int fileDescriptor);

} // namespace kpkg::compiler
