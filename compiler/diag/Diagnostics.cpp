// The diagnostic engine: keeps reports, each once.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/Diagnostics.h"
#include <algorithm>

using namespace kpkg::compiler;

DiagnosticBuilder::DiagnosticBuilder(DiagnosticEngine &engine, DiagnosticMessage message) : engine(engine) {
  diagnostic.message = std::move(message);
}

DiagnosticBuilder::~DiagnosticBuilder() { engine.add(std::move(diagnostic)); }

void DiagnosticEngine::add(Diagnostic diagnostic) {
  const DiagnosticMessage &message = diagnostic.message;
  auto [place, isNew] =
      seen.emplace(message.id, message.range.file, message.range.begin, message.range.end, message.text);
  if (!isNew) {
    // Same cause in another instance: count it there. Outside instances it is a plain repetition.
    for (Diagnostic &earlier : reported)
      if (!instanceStack.empty() && earlier.message.id == message.id && earlier.message.range == message.range &&
          earlier.message.text == message.text)
        ++earlier.furtherInstances;
    return;
  }
  if (message.severity == Severity::Error) {
    ++errors;
    if (errorLimit != 0 && errors > errorLimit) {
      ++dropped;
      return;
    }
  } else if (message.severity == Severity::Warning) {
    ++warnings;
  }
  diagnostic.instances = instanceStack;
  reported.push_back(std::move(diagnostic));
}

void DiagnosticEngine::sortByPlace(size_t first) {
  first = std::min(first, reported.size());
  auto before = [](const Diagnostic &a, const Diagnostic &b) {
    return std::tie(a.message.range.file, a.message.range.begin) <
           std::tie(b.message.range.file, b.message.range.begin);
  };
  // Insertion sort: few reports, mostly in order already, and equal places keep their order.
  for (auto it = reported.begin() + first; it != reported.end(); ++it)
    std::rotate(std::upper_bound(reported.begin() + first, it, *it, before), it, it + 1);
}
