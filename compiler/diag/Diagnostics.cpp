// Implements the diagnostic engine, which keeps each report once.
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
    // A report with the same cause in another instance is counted. Outside instances it is a repetition, and ignored.
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
  // Insertion sort: there are few reports, mostly in order already, and equal places must keep their order.
  for (auto it = reported.begin() + first; it != reported.end(); ++it)
    std::rotate(std::upper_bound(reported.begin() + first, it, *it, before), it, it + 1);
}
