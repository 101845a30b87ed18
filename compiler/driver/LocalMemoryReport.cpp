// Describes spills and local arrays by lines of the source.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/LocalMemoryReport.h"
#include "compiler/codegen/nvptx/LocalMemory.h"

using namespace llvm;

namespace kpkg::compiler {

namespace {

constexpr StringLiteral pass = "ptxas";
constexpr StringLiteral optimisation = "values in registers";

StringRef wordsFor(LocalMemory::Content content) {
  switch (content) {
  case LocalMemory::Content::Spills:
    return "registers spill";
  case LocalMemory::Content::Arrays:
    return "an array in local memory";
  case LocalMemory::Content::Both:
    return "an array in local memory, or registers spill";
  }
  llvm_unreachable("a content without words");
}

Expected<LocalMemory> memoryOf(const KernelReport &report, Expected<Cubin> withLines) {
  if (!withLines)
    return withLines.takeError();
  const KernelReport *other = withLines->report.find(report.symbol);
  if (!other || other->spillStores != report.spillStores || other->spillLoads != report.spillLoads)
    return createStringError("with a line table ptxas makes other code");
  return readLocalMemory(withLines->bytes, report);
}

} // namespace

std::optional<unsigned> localBytes(const PtxasReport &report) {
  if (!report.warnings.empty())
    return std::nullopt;
  unsigned bytes = 0;
  for (const KernelReport &kernel : report.kernels)
    bytes += kernel.stackBytes + kernel.spillStores + kernel.spillLoads;
  return bytes;
}

bool usesLocalMemory(const KernelReport &report) {
  return report.stackBytes || report.spillStores || report.spillLoads;
}

LocalMemoryReport reportLocalMemory(const KernelReport &report, Expected<Cubin> withLines) {
  auto memory = memoryOf(report, std::move(withLines));
  if (!memory) {
    std::string why = "the lines that use local memory cannot be told: " + toString(memory.takeError());
    return {"; " + why, {{"", pass.str(), false, optimisation.str(), why}}};
  }
  LocalMemoryReport result{": " + memory->describe(), {}};
  for (const LocalAccess &access : memory->accesses)
    result.remarks.push_back({access.place, pass.str(), false, optimisation.str(),
                              (wordsFor(memory->content) + ": " + LocalMemory::describe(access)).str()});
  return result;
}

} // namespace kpkg::compiler
