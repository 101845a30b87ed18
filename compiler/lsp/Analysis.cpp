// Checks an open file with the compiler's own front end.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/Analysis.h"
#include "compiler/check/Checker.h"
#include "compiler/check/ImportPaths.h"
#include "compiler/diag/Diagnostics.h"
#include "compiler/driver/Guard.h"
#include "compiler/driver/TileLayouts.h"
#include "dialect/tile/schedule/Schedule.h"
#include "llvm/Support/FormatVariadic.h"

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

/// Returns the files that were read, with the types of each and findings of GPU code generation in one.
void addFiles(Analysis &analysis, const OpenTexts &texts, const SourceManager &sources, const TypeCollector &types,
              const std::string &path, const GpuFindings &findings) {
  analysis.files.clear();
  for (uint32_t id = 0; id < sources.fileCount(); ++id) {
    const SourceFile &file = sources.file(id);
    std::string canonical = canonicalPath(file.path());
    if (file.path() == std::string(preludeName) + ".k")
      continue;
    analysis.files.push_back(canonical);
    auto open = texts.find(canonical);
    Text text = open != texts.end() ? open->second : makeText(canonical, std::string(file.text()));
    auto pathOf = [&](uint32_t of) { return canonicalPath(sources.file(of).path()); };
    if (auto entries = types.take(id, pathOf); !entries.empty())
      analysis.types[canonical] =
          std::make_shared<Types>(std::move(text), std::move(entries), canonical == path ? findings : GpuFindings());
  }
}

/// Returns how the threads of a block hold a tile.
std::string layoutText(const TileLayout &tile, const KernelLayouts &kernel, const std::string &chip) {
  return llvm::formatv("on {0}, {1} threads: {2} elements in {3} registers of each thread, `{4}`", chip, kernel.threads,
                       tile.elements, tile.registers, tile.layout);
}

/// Returns the byte of a place; `column` counts code points from 1.
uint32_t offsetAt(const SourceFile &file, unsigned line, unsigned column) {
  uint32_t offset = file.lineStart(line);
  for (unsigned passed = 1; passed < column && offset < file.text().size(); ++passed)
    do
      ++offset;
    while (offset < file.text().size() && (file.text()[offset] & 0xC0) == 0x80);
  return offset;
}

/// Lays out the first instance of each kernel of the file `path`, until `isStale`.
GpuFindings findingsOf(const Program &program, const SourceManager &sources, const std::string &path,
                       const std::string &chip, llvm::function_ref<bool()> isStale) {
  GpuFindings findings;
  for (auto [number, kernel] : llvm::enumerate(program.kernels())) {
    if (isStale())
      break;
    if (canonicalPath(kernel.path) != path || kernel.instances.empty() || !program.kernel(number, 0))
      continue;
    auto laidOut = layOut(program, sources, {number, 0}, chip);
    if (!laidOut)
      continue;
    for (const TileLayout &tile : laidOut->tiles)
      if (tile.path == kernel.path)
        findings.layouts.push_back({offsetAt(sources.file(kernel.range.file), tile.line, tile.column), tile.type,
                                    layoutText(tile, *laidOut, chip)});
    for (const kgpu::DroppedHint &dropped : laidOut->dropped)
      findings.dropped.push_back({kernel.ownName, std::string(tile::nameOf(dropped.hint)), dropped.why});
  }
  std::ranges::sort(findings.layouts, {}, &LayoutAt::begin);
  return findings;
}

/// Returns a filter that keeps the first instance of each kernel.
Program::InstanceFilter firstInstances() {
  return
      [](const KernelRecord &kernel, const KernelInstance &instance) { return &instance == &kernel.instances.front(); };
}

} // namespace

void analyse(const std::string &path, const OpenTexts &texts, const AnalysisOptions &options,
             llvm::function_ref<bool()> isStale, llvm::function_ref<void(const Analysis &)> early,
             llvm::function_ref<void(const Analysis &)> done) {
  SourceManager sources;
  DiagnosticEngine diags;
  Session session(texts, sources);
  Analysis analysis;
  Reports reports(path, sources);
  std::unique_ptr<Program> program;
  auto failure = failureOf([&] {
    for (const char *kind : {"cpu", "gpu"}) {
      ProgramOptions ofKind = options.program;
      ofKind.targetKind = kind;
      program = Checker::load({path}, ofKind, sources, diags, &session);
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
    return;
  analysis.diagnostics = reports.placed(diags);
  if (failure) {
    PlacedDiagnostic crash;
    crash.severity = llvm::lsp::DiagnosticSeverity::Error;
    crash.message = *failure;
    analysis.diagnostics[path].push_back(crash);
  }
  addFiles(analysis, texts, sources, session.types, path, {});
  done(analysis);
  if (failure || diags.hasErrors() || options.chip.empty())
    return;
  GpuFindings findings;
  // Builds report a failure of code generation.
  bool isComplete = !failureOf([&] { findings = findingsOf(*program, sources, path, options.chip, isStale); });
  if (!isComplete || isStale())
    return;
  addFiles(analysis, texts, sources, session.types, path, findings);
  done(analysis);
}

} // namespace kpkg::lsp
