// Writes notes on variants that are slow or omitted.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/VariantNotes.h"
#include "compiler/source/Source.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <set>

using namespace llvm;

namespace kpkg::compiler {

namespace {

/// Limit of reasons of one kind in a line, each with an example.
constexpr size_t mostReasons = 3;

/// The contents of a kernel's line for one kind.
struct Finding {
  size_t count = 0;
  std::set<std::string> targets;
  std::set<std::string> reasons; ///< without their numbers
  std::vector<std::string> examples;
};

StringRef wordsFor(VariantNote::Kind kind) {
  switch (kind) {
  case VariantNote::LeftOut:
    return "left out, which others serve";
  case VariantNote::Slow:
    return "slow";
  case VariantNote::Outperformed:
    return "left out, since an alternative is faster";
  }
  llvm_unreachable("a kind without words");
}

} // namespace

std::string inOneLine(StringRef text) {
  SmallVector<StringRef> lines, kept;
  text.split(lines, '\n');
  for (StringRef line : lines)
    if (line = line.trim(); !line.empty())
      kept.push_back(line);
  return join(kept, " ");
}

std::string withoutNumbers(StringRef text) {
  std::string rest;
  for (char c : text)
    if (!isDigit(c))
      rest += c;
  return rest;
}

std::string title(const Program &program, InstanceRef ref) {
  const KernelRecord &kernel = program.kernels()[ref.kernel];
  std::string text;
  for (auto [parameter, value] : zip(kernel.parameters, kernel.instances[ref.instance].parameters))
    text += (text.empty() ? "" : ", ") + parameter.name + "=" + value.str();
  return text.empty() ? kernel.name : kernel.name + "[" + text + "]";
}

std::vector<std::string> notesOnVariants(const Program &program, const SourceManager &sources,
                                         ArrayRef<InstanceRef> refs, ArrayRef<std::vector<VariantNote>> notes) {
  std::map<size_t, std::map<VariantNote::Kind, Finding>> byKernel;
  for (auto [ref, list] : zip(refs, notes))
    for (const VariantNote &note : list) {
      Finding &finding = byKernel[ref.kernel][note.kind];
      ++finding.count;
      finding.targets.insert(note.target);
      std::string why = inOneLine(note.why);
      if (finding.reasons.insert(withoutNumbers(why)).second && finding.examples.size() < mostReasons)
        finding.examples.push_back(
            formatv("{0}{1}{2}: {3}", title(program, ref), note.variant.empty() ? "" : " ", note.variant, why).str());
    }
  std::vector<std::string> lines;
  for (const auto &[kernel, findings] : byKernel) {
    const KernelRecord &record = program.kernels()[kernel];
    std::string text = formatv("{0}: kernel `{1}`: ", sources.describe(record.range), record.name).str();
    for (const auto &[kind, finding] : findings)
      text += formatv("{0}{1} {2} for {3} {4} {5} ({6}{7})", kind == findings.begin()->first ? "" : "; ", finding.count,
                      finding.count == 1 ? "variant" : "variants", join(finding.targets, ", "),
                      finding.count == 1 ? "is" : "are", wordsFor(kind), finding.count == 1 ? "" : "such as ",
                      join(finding.examples, "; "))
                  .str();
    lines.push_back(std::move(text));
  }
  return lines;
}

} // namespace kpkg::compiler
