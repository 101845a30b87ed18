// Checks an open file with the compiler's own front end.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/Analysis.h"
#include "compiler/check/Checker.h"
#include "compiler/check/ImportPaths.h"
#include "compiler/diag/Diagnostics.h"
#include "compiler/driver/Guard.h"

namespace kpkg::lsp {

using namespace compiler;

namespace {

/// Gives the checker the open texts, and collects types.
class Session : public Observer {
public:
  Session(const OpenTexts &texts, SourceManager &sources) : texts(texts), sources(sources) {}

  const SourceFile *openFile(const std::string &path) override {
    std::string canonical = canonicalPath(path);
    if (auto known = opened.find(canonical); known != opened.end())
      return known->second;
    auto text = texts.find(canonical);
    if (text == texts.end())
      return nullptr;
    return opened[canonical] = &sources.add(path, std::string(text->second->text()));
  }
  void typed(SourceRange range, const Type &type, const Value *value) override { types.add(range, type, value); }

  TypeCollector types;

private:
  const OpenTexts &texts;
  SourceManager &sources;
  std::map<std::string, const SourceFile *> opened;
};

class Reports {
public:
  Reports(const std::string &root, const SourceManager &sources) : root(root), sources(sources) {}

  std::map<std::string, std::vector<PlacedDiagnostic>> placed(const DiagnosticEngine &diags) const {
    std::map<std::string, std::vector<PlacedDiagnostic>> byPath;
    for (const Diagnostic &diagnostic : diags.diagnostics()) {
      auto &list = byPath[pathOf(diagnostic.message.range)];
      list.push_back(one(diagnostic));
    }
    return byPath;
  }

private:
  const std::string &root;
  const SourceManager &sources;

  std::string pathOf(SourceRange range) const {
    return range.isValid() ? canonicalPath(sources.file(range.file).path()) : root;
  }
  llvm::lsp::Range rangeOf(SourceRange range) const {
    return range.isValid() ? lsp::rangeOf(sources.file(range.file), range) : llvm::lsp::Range();
  }

  void addMessage(const DiagnosticMessage &message, PlacedDiagnostic &placed) const {
    for (const FixIt &fix : message.fixes)
      placed.fixes.push_back({pathOf(fix.range), {rangeOf(fix.range), validText(fix.replacement)}});
  }

  PlacedDiagnostic one(const Diagnostic &diagnostic) const {
    PlacedDiagnostic placed;
    const DiagnosticMessage &message = diagnostic.message;
    placed.code = info(message.id).code;
    placed.severity = message.severity == Severity::Error ? llvm::lsp::DiagnosticSeverity::Error
                                                          : llvm::lsp::DiagnosticSeverity::Warning;
    placed.range = rangeOf(message.range);
    placed.message = validText(message.text);
    addMessage(message, placed);
    for (const DiagnosticMessage &note : diagnostic.notes) {
      addMessage(note, placed);
      if (note.range.isValid())
        placed.related.push_back({pathOf(note.range), validText(note.text), rangeOf(note.range)});
      else
        placed.message += "\n" + validText(note.text);
    }
    for (const InstanceFrame &frame : diagnostic.instances)
      if (frame.requestedAt.isValid())
        placed.related.push_back(
            {pathOf(frame.requestedAt), "in " + validText(frame.description), rangeOf(frame.requestedAt)});
    return placed;
  }
};

/// Returns a filter that keeps the first instance of each kernel.
Program::InstanceFilter firstInstances() {
  return
      [](const KernelRecord &kernel, const KernelInstance &instance) { return &instance == &kernel.instances.front(); };
}

} // namespace

std::optional<Analysis> analyse(const std::string &path, const OpenTexts &texts, const ProgramOptions &options,
                                llvm::function_ref<bool()> isStale, llvm::function_ref<void(const Analysis &)> early) {
  SourceManager sources;
  DiagnosticEngine diags;
  Session session(texts, sources);
  Analysis analysis;
  Reports reports(path, sources);
  auto failure = failureOf([&] {
    for (const char *kind : {"cpu", "gpu"}) {
      ProgramOptions ofKind = options;
      ofKind.targetKind = kind;
      auto program = Checker::load({path}, ofKind, sources, diags, &session);
      if (diags.hasErrors() || isStale())
        break;
      program->check(firstInstances());
      if (diags.hasErrors() && !isStale()) {
        analysis.diagnostics = reports.placed(diags);
        early(analysis);
      }
      program->check([&](const KernelRecord &, const KernelInstance &) { return !isStale(); });
      if (diags.hasErrors() || isStale())
        break;
    }
  });
  if (isStale())
    return std::nullopt;
  analysis.diagnostics = reports.placed(diags);
  if (failure) {
    PlacedDiagnostic crash;
    crash.severity = llvm::lsp::DiagnosticSeverity::Error;
    crash.message = *failure;
    analysis.diagnostics[path].push_back(crash);
  }
  for (uint32_t id = 0; id < sources.fileCount(); ++id) {
    const SourceFile &file = sources.file(id);
    std::string canonical = canonicalPath(file.path());
    if (file.path() == std::string(preludeName) + ".k")
      continue;
    analysis.files.push_back(canonical);
    auto open = texts.find(canonical);
    Text text = open != texts.end() ? open->second : makeText(canonical, std::string(file.text()));
    if (auto entries = session.types.take(id); !entries.empty())
      analysis.types[canonical] = std::make_shared<Types>(std::move(text), std::move(entries));
  }
  return analysis;
}

} // namespace kpkg::lsp
