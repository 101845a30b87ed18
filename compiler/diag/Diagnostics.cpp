// Implements the diagnostic engine, which keeps each report once.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/Diagnostics.h"
#include <algorithm>

using namespace kpkg::compiler;

DiagnosticBuilder::DiagnosticBuilder(DiagnosticEngine &engine, DiagnosticMessage message) : engine(engine) {
  diagnostic.message = std::move(message);
}

DiagnosticBuilder::~DiagnosticBuilder() { engine.add(std::move(diagnostic)); }

/// Returns whether both are instances of one function, for other values of its parameters.
static bool areInstancesOfOne(const std::vector<InstanceFrame> &some, const std::vector<InstanceFrame> &others) {
  if (some.empty() || others.empty() || some[0].description == others[0].description)
    return false;
  auto nameOf = [](const InstanceFrame &frame) { return frame.description.substr(0, frame.description.find('[')); };
  return nameOf(some[0]) == nameOf(others[0]);
}

/// Returns an earlier report with the same cause; null if there is none.
static Diagnostic *sameInOtherInstance(std::vector<Diagnostic> &reported, const DiagnosticMessage &message,
                                       const std::vector<InstanceFrame> &instances) {
  auto hasPlace = [&](const Diagnostic &earlier) {
    return earlier.message.id == message.id && earlier.message.range == message.range;
  };
  auto equal = std::find_if(reported.begin(), reported.end(), [&](const Diagnostic &earlier) {
    return hasPlace(earlier) && earlier.message.text == message.text;
  });
  if (equal != reported.end())
    return &*equal;
  auto similar = std::find_if(reported.begin(), reported.end(), [&](const Diagnostic &earlier) {
    return hasPlace(earlier) && areInstancesOfOne(earlier.instances, instances);
  });
  return similar == reported.end() ? nullptr : &*similar;
}

void DiagnosticEngine::add(Diagnostic diagnostic) {
  const DiagnosticMessage &message = diagnostic.message;
  bool isNew =
      seen.emplace(message.id, message.range.file, message.range.begin, message.range.end, message.text).second;
  // A report with the same cause in another instance is counted. Outside instances it is a repetition, and ignored.
  Diagnostic *earlier = instanceStack.empty() ? nullptr : sameInOtherInstance(reported, message, instanceStack);
  if (earlier)
    ++earlier->furtherInstances;
  if (earlier || !isNew)
    return;
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
