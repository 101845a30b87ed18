// Fuzz target: passes any text through the front end: parser, names, types, comptime evaluation, inline expansion.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Prelude.h"
#include "compiler/check/Program.h"
#include "compiler/diag/Diagnostics.h"
#include "compiler/diag/Render.h"
#include "compiler/source/Source.h"
#include "compiler/syntax/Parse.h"
#include "test/fuzz/MutateSource.h"

#include <cstdlib>

using namespace kpkg::compiler;

/// Renders all reports, whose positions must be inside their files. Returns 0.
static int report(const SourceManager &sources, const DiagnosticEngine &diags) {
  renderText(diags, sources, {.colour = false, .lineWidth = 80});
  for (const Diagnostic &report : diags.diagnostics()) {
    SourceRange range = report.message.range;
    if (range.isValid() && (range.begin > range.end || range.end > sources.file(range.file).text().size()))
      std::abort();
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  SourceManager sources;
  DiagnosticEngine diags(20);
  const SourceFile &file = sources.add("fuzz.k", std::string(reinterpret_cast<const char *>(data), size));
  // Declaring the prelude takes much longer than finding that a text does not parse.
  parse(file, diags);
  if (diags.hasErrors())
    return report(sources, diags);
  ProgramOptions options;
  auto program = Program::loadSources({&file}, options, sources, diags);
  if (!diags.hasErrors())
    program->check();
  return report(sources, diags);
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  return kpkg::fuzz::mutateInput(data, size, maxSize, seed, preludeText);
}
