// Parses the output of `ptxas -v`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/nvptx/PtxasReport.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace llvm;

namespace kpkg::compiler {

/// Returns the number before `unit` in a text such as "Used 32 registers, used 1 barriers, 64 bytes smem"; 0 without
/// one.
static unsigned numberBefore(StringRef text, StringRef unit) {
  size_t at = text.find(unit);
  if (at == StringRef::npos)
    return 0;
  StringRef before = text.take_front(at).rtrim();
  size_t start = before.find_last_not_of("0123456789");
  unsigned number = 0;
  before.drop_front(start == StringRef::npos ? 0 : start + 1).getAsInteger(10, number);
  return number;
}

static StringRef quoted(StringRef text) { return text.split('\'').second.split('\'').first; }

const KernelReport *PtxasReport::find(StringRef symbol) const {
  auto found = llvm::find_if(kernels, [&](const KernelReport &kernel) { return kernel.symbol == symbol; });
  return found == kernels.end() ? nullptr : &*found;
}

PtxasReport parsePtxasReport(StringRef text) {
  PtxasReport report;
  SmallVector<StringRef> lines;
  text.split(lines, '\n', -1, false);
  for (StringRef line : lines) {
    auto [head, message] = line.split(':');
    message = message.trim();
    if (head.starts_with("ptxas info")) {
      if (message.starts_with("Compiling entry function"))
        report.kernels.emplace_back().symbol = quoted(message).str();
      else if (message.starts_with("Used ") && !report.kernels.empty()) {
        KernelReport &kernel = report.kernels.back();
        kernel.registers = numberBefore(message, " registers");
        kernel.barriers = numberBefore(message, " barriers");
        kernel.sharedBytes = numberBefore(message, " bytes smem");
      } else if (message.starts_with("(C"))
        report.warnings.push_back(line.trim().str()); // "info" about serialised or injected instructions
    } else if (line.contains("bytes stack frame") && !report.kernels.empty()) {
      KernelReport &kernel = report.kernels.back();
      kernel.stackBytes = numberBefore(line, " bytes stack frame");
      kernel.spillStores = numberBefore(line, " bytes spill stores");
      kernel.spillLoads = numberBefore(line, " bytes spill loads");
    } else if (!line.trim().empty() && !line.starts_with(" ")) {
      report.warnings.push_back(line.trim().str());
    }
  }
  return report;
}

std::vector<std::string> lint(const PtxasReport &report) {
  std::vector<std::string> findings;
  for (const KernelReport &kernel : report.kernels) {
    if (kernel.spillStores || kernel.spillLoads)
      findings.push_back(kernel.symbol + " spills registers: " + std::to_string(kernel.spillStores) +
                         " bytes stored, " + std::to_string(kernel.spillLoads) + " loaded");
    else if (kernel.stackBytes)
      findings.push_back(kernel.symbol + " has a stack frame of " + std::to_string(kernel.stackBytes) + " bytes");
  }
  findings.insert(findings.end(), report.warnings.begin(), report.warnings.end());
  return findings;
}

} // namespace kpkg::compiler
