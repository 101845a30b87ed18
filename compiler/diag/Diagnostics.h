// Collects diagnostics: kinds with typed arguments, notes, fixes, and the generic instance in which they occurred.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/diag/Kinds.h"
#include "compiler/source/Source.h"
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace kpkg::compiler {

/// Replaces `range` (empty for an insertion) by `replacement`.
struct FixIt {
  SourceRange range;
  std::string replacement;
};

struct DiagnosticMessage {
  DiagnosticId id;
  Severity severity;
  SourceRange range; // may be invalid: no place in a source file
  std::string text;
  std::vector<FixIt> fixes;
};

/// "in softmax_rows[T=float16, COLS=128]", and the place that requested the instance.
struct InstanceFrame {
  std::string description;
  SourceRange requestedAt; // may be invalid
};

struct Diagnostic {
  DiagnosticMessage message;
  std::vector<DiagnosticMessage> notes;
  std::vector<InstanceFrame> instances; // innermost last
  uint32_t furtherInstances = 0;        // further instances with the same report
};

class DiagnosticEngine;

/// A diagnostic under construction. Its destructor reports it, normally at the end of the statement:
///
///   diags.report(diag::UnclosedBracket, range, "(").note(diag::OpenedHere, open, "(").fix(range.atEnd(), ")");
class DiagnosticBuilder {
public:
  DiagnosticBuilder(DiagnosticEngine &engine, DiagnosticMessage message);
  DiagnosticBuilder(const DiagnosticBuilder &) = delete;
  DiagnosticBuilder &operator=(const DiagnosticBuilder &) = delete;
  ~DiagnosticBuilder();

  template <typename... Args>
  DiagnosticBuilder &note(const DiagnosticKind<Args...> &kind, SourceRange range,
                          const std::type_identity_t<Args> &...args) {
    diagnostic.notes.push_back({kind.id, Severity::Note, range, fmt::format(kind.text, args...), {}});
    return *this;
  }
  /// Adds a fix to the message itself.
  DiagnosticBuilder &fix(SourceRange range, std::string replacement) {
    diagnostic.message.fixes.push_back({range, std::move(replacement)});
    return *this;
  }

private:
  DiagnosticEngine &engine;
  Diagnostic diagnostic;
};

/// Collects the reports of all stages about the user's source, in order. The driver renders them (Render.h).
///
/// Reports of one kind at one place are kept once if their texts are equal, or if they come from instances of one
/// function. So N instances do not report N times. After `errorLimit` errors, further errors are only counted.
class DiagnosticEngine {
public:
  explicit DiagnosticEngine(uint32_t errorLimit = 100) : errorLimit(errorLimit) {}
  DiagnosticEngine(const DiagnosticEngine &) = delete;
  DiagnosticEngine &operator=(const DiagnosticEngine &) = delete;

  template <typename... Args>
  DiagnosticBuilder report(const DiagnosticKind<Args...> &kind, SourceRange range,
                           const std::type_identity_t<Args> &...args) {
    return DiagnosticBuilder(*this, {kind.id, kind.severity, range, fmt::format(kind.text, args...), {}});
  }

  bool hasErrors() const { return errors != 0; }
  /// Returns the number of distinct errors, kept or not.
  uint32_t errorCount() const { return errors; }
  uint32_t warningCount() const { return warnings; }
  /// Returns the number of errors beyond the limit, which are not in diagnostics().
  uint32_t droppedCount() const { return dropped; }
  bool limitReached() const { return dropped != 0; }
  const std::vector<Diagnostic> &diagnostics() const { return reported; }
  /// Sorts the reports from index `first` on by their place, for stages that process the text in several passes.
  void sortByPlace(size_t first);

  /// While this exists, reports carry "in <description>". Scopes nest.
  class InstanceScope {
  public:
    InstanceScope(DiagnosticEngine &engine, std::string description, SourceRange requestedAt) : engine(engine) {
      engine.instanceStack.push_back({std::move(description), requestedAt});
    }
    ~InstanceScope() { engine.instanceStack.pop_back(); }
    InstanceScope(const InstanceScope &) = delete;
    InstanceScope &operator=(const InstanceScope &) = delete;

  private:
    DiagnosticEngine &engine;
  };

private:
  friend class DiagnosticBuilder;
  void add(Diagnostic diagnostic);

  uint32_t errorLimit;
  uint32_t errors = 0, warnings = 0, dropped = 0;
  std::vector<Diagnostic> reported;
  std::vector<InstanceFrame> instanceStack;
  std::set<std::tuple<DiagnosticId, uint32_t, uint32_t, uint32_t, std::string>> seen;
};

} // namespace kpkg::compiler
