// Makes the tile programs of kernel instances, for the target tpu.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/CompileTpu.h"
#include "compiler/codegen/tile_program/TileProgram.h"
#include "compiler/driver/DescribeInstance.h"
#include "compiler/source/Source.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <set>

using namespace llvm;

namespace kpkg::compiler {

/// Operations and bytes per cycle of a core of TPU v5e, for the choice among alternatives.
static constexpr double kFlopsPerCycle = 131072, kBytesPerCycle = 544;

static std::string whyNot(tile::KernelOp kernel) {
  if (std::string construct = whyNoTileProgram(kernel); !construct.empty())
    return construct;
  if (int64_t bytes = vmemBytes(kernel); bytes > kVmemBytes)
    return formatv("{0} bytes of VMEM, of which a kernel has {1}", bytes, kVmemBytes).str();
  return {};
}

void compileForTpus(mlir::ModuleOp tile, const Program &program, InstanceRef instance, JobResult &result) {
  for (auto kernel : tile.getOps<tile::KernelOp>()) {
    if (result.whyNotOnTpu = whyNot(kernel); !result.whyNotOnTpu.empty())
      return;
    PackedInstance packed = describeInstance(kernel, program, instance);
    packed.target = "tpu";
    packed.section = "tpu/" + packed.symbol;
    if (packed.work) {
      packed.work->flopsPerCycle = kFlopsPerCycle;
      packed.work->bytesPerCycle = kBytesPerCycle;
    }
    result.tpuObjects.push_back({packed.section, "tile-program", tileProgram(kernel)});
    result.instances.push_back(std::move(packed));
  }
}

static Error checkResults(const Program &program, const SourceManager &sources, ArrayRef<InstanceRef> refs,
                          ArrayRef<JobResult> results) {
  if (refs.empty() || any_of(results, [](const JobResult &result) { return !result.tpuObjects.empty(); }))
    return Error::success();
  return make_error<KernelRefused>(sources.describe(program.kernels()[refs.front().kernel].range) + ": in " +
                                   title(program, refs.front()) + ": the target tpu does not take " +
                                   results.front().whyNotOnTpu + ", nor any other kernel of these sources");
}

static std::vector<std::string> notesOn(const Program &program, const SourceManager &sources,
                                        ArrayRef<InstanceRef> refs, ArrayRef<JobResult> results) {
  struct LeftOut {
    size_t count = 0, all = 0;
    std::set<std::string> constructs;
  };
  std::map<size_t, LeftOut> kernels;
  for (auto [ref, result] : zip(refs, results)) {
    LeftOut &kernel = kernels[ref.kernel];
    ++kernel.all;
    if (!result.whyNotOnTpu.empty()) {
      ++kernel.count;
      kernel.constructs.insert(result.whyNotOnTpu);
    }
  }
  std::vector<std::string> lines;
  for (const auto &[number, kernel] : kernels)
    if (kernel.count) {
      const KernelRecord &record = program.kernels()[number];
      std::string of;
      if (kernel.count < kernel.all)
        of = formatv("{0} of {1} instances of ", kernel.count, kernel.all).str();
      lines.push_back(formatv("{0}: {1}kernel `{2}` left out for tpu, which does not take {3}",
                              sources.describe(record.range), of, record.name, join(kernel.constructs, "; "))
                          .str());
    }
  return lines;
}

Error addTpuPrograms(const Program &program, const SourceManager &sources, ArrayRef<InstanceRef> refs,
                     MutableArrayRef<JobResult> results, CompiledInstances &compiled) {
  if (Error error = checkResults(program, sources, refs, results))
    return error;
  for (JobResult &result : results)
    std::move(result.tpuObjects.begin(), result.tpuObjects.end(), std::back_inserter(compiled.objects));
  append_range(compiled.notes, notesOn(program, sources, refs, results));
  return Error::success();
}

} // namespace kpkg::compiler
