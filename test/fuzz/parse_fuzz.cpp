// Fuzz target: passes any bytes through the parser, the printer and both renderers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/ast/Print.h"
#include "compiler/diag/Render.h"
#include "compiler/syntax/Parse.h"
#include "test/fuzz/MemoryBudget.h"

#include <cstdlib>

using namespace kpkg::compiler;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  kpkg::fuzz::MemoryBudget budget((64 << 20) + 4 * size);
  SourceManager sources;
  DiagnosticEngine diags(20);
  const SourceFile &file = sources.add("fuzz.k", std::string(reinterpret_cast<const char *>(data), size));
  auto module = parse(file, diags);
  ast::print(*module);
  renderText(diags, sources, {.colour = true, .lineWidth = 40});
  for (const Diagnostic &report : diags.diagnostics()) {
    renderJson(report, sources);
    // Every position is inside the file.
    SourceRange range = report.message.range;
    if (range.isValid() && (range.begin > range.end || range.end > file.text().size()))
      std::abort();
  }
  return 0;
}
