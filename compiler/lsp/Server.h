// Declares the language server.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/lsp/Analysis.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdio>

namespace kpkg::lsp {

/// Serves one editor, by the language server protocol, until it says `exit` or the input ends. Returns whether the
/// editor said `shutdown` before. `version` names the server.
bool serve(std::FILE *in, llvm::raw_ostream &out, const AnalysisOptions &options, const std::string &version);

} // namespace kpkg::lsp
