// Writes the results of a build to one .kpkg file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Program.h"
#include "llvm/Support/Error.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kpkg::compiler {

/// The assumptions of an instance about view argument `argument`: the facts of !tile.view. Defaults assume nothing.
struct PackedFact {
  unsigned argument = 0;
  int64_t unit = -1;
  int64_t align = 1;
  int64_t divisible = 1;
  int64_t index = 64;
  int64_t outer = 0;
};

/// How windows traverse a view, as numbers of arguments; see kgpu.window.
struct PackedWindow {
  std::vector<int64_t> counts, strides, starts, steps;
  std::vector<std::pair<int64_t, int64_t>> taps; ///< argument and dimension
};

/// A parameter for the TMA that describes a view; see kgpu.tensor_map.
struct PackedTensorMap {
  unsigned argument = 0;
  std::vector<int64_t> box; ///< elements in each of the view's dimensions
  unsigned swizzle = 0;     ///< bytes
  unsigned unit = 0;        ///< dimension of stride 1
  unsigned copies = 0;      ///< boxes per step
  unsigned sharedBy = 1;    ///< CTAs that receive one multicast copy
  std::optional<PackedWindow> window;
};

/// A hint of @schedule that the code does not follow.
struct PackedDroppedHint {
  std::string hint; ///< "occupancy=2"
  std::string why;
  bool isForWantOfRoom = false; ///< not in the manifest: it was tried, or possible with less shared memory; otherwise
                                ///< it has no meaning for this kernel
};

/// A launch that would have been chosen, had ptxas not rejected it.
struct PackedRefusedLaunch {
  std::string launch; ///< "384 threads, 2 roles"
  std::string why;
  bool hadWarpgroups = false; ///< not in the manifest: it has warpgroup products, unlike the launch that was chosen
};

/// What a pass of the GPU compiler did at a place of the source, or did not, for kernel authors.
struct PackedRemark {
  std::string place; ///< "rows.k:12", or empty
  std::string pass;  ///< its flag, "kgpu-ring-loads"
  bool isApplied = false;
  std::string optimisation; ///< in words that need no knowledge of passes
  std::string text;         ///< how it was applied, or why not

  bool operator==(const PackedRemark &) const = default;
};

/// How a GPU instance is launched, and the report of ptxas.
struct PackedLaunch {
  unsigned threads = 0;
  unsigned blocks = 1;    ///< kernel blocks of a CTA along x
  unsigned cluster = 1;   ///< CTAs per kernel block
  unsigned occupancy = 0; ///< CTAs per SM of persistent kernels; 0: the grid determines it
  int64_t shared = 0;     ///< bytes of dynamic shared memory
  unsigned registers = 0;
  unsigned spills = 0;                     ///< bytes that a thread spills
  bool overlaps = false;                   ///< may start before the previous kernel has ended: it waits itself
  unsigned counters = 0;                   ///< counters of the code; each launch in flight uses one; 0: none needed
  std::vector<PackedTensorMap> tensorMaps; ///< in the order of the parameters
  std::vector<PackedDroppedHint> dropped;
  std::vector<PackedRefusedLaunch> refused; ///< in the order in which they were tried
};

/// A step of a "count": a number, or "dim", "value", "grid" with one or two numbers, or an operation
/// (docs/package-format.md).
struct PackedTripCountStep {
  std::string kind; ///< empty: the number
  std::vector<int64_t> numbers;
};

/// One factor of a cost formula: "blocks", or "dim", "tiles", "clip", "share" of a dimension of an argument, or a
/// "count" (docs/package-format.md).
struct PackedCostFactor {
  std::string kind;
  unsigned argument = 0;
  unsigned dimension = 0;
  int64_t size = 0;
  std::vector<PackedTripCountStep> steps = {};
};
struct PackedCostTerm {
  double count = 0;
  std::vector<PackedCostFactor> factors;
};

/// The inputs of the run-time cost model for an alternative (docs/package-format.md).
struct PackedWork {
  std::vector<PackedCostTerm> flops; ///< per tile
  double flopsPerCycle = 1, flopsPerCycleAlone = 1, bytesPerCycle = 1;
  unsigned resident = 1;
};

/// One compiled form of a kernel instance.
struct PackedInstance {
  size_t kernel = 0;
  std::vector<Value> parameters;
  std::string target;
  std::string variant;
  std::string symbol;
  std::vector<PackedFact> facts;
  std::vector<std::string> dtypes; ///< of each kernel argument
  int64_t scratchBytes = 0;
  std::vector<std::string> asserts;
  std::vector<std::string> prints;
  std::vector<PackedCostTerm> flops, bytes; ///< estimates for a launch; empty: unknown
  std::vector<PackedCostTerm> tiles;        ///< of a persistent kernel's loop; empty: unknown
  std::string section;                      ///< of the code
  std::optional<PackedLaunch> launch;       ///< of a GPU instance
  std::vector<PackedRemark> remarks;        ///< of a GPU instance; in a section of their own
  std::optional<PackedWork> work;           ///< of one of several alternatives, if it can be estimated
  bool isDeterministic = true;              ///< equal calls give equal bits
  bool isSlow = false; ///< runs, but not at full speed: not in the manifest, only for comparison with alternatives
};

/// An op's bytecode: the whole plan, and the slice that computes shapes.
struct PackedPlan {
  std::string op;
  std::string plan;
  std::string shapePlan;
  /// The bytecode for calls on GPUs. Each is empty if it equals `plan` or `shapePlan`.
  std::string gpuPlan = {};
  std::string gpuShapePlan = {};
};

struct PackedSource {
  std::string name; ///< without folders
  std::string text;
};

/// Code in the format that the runtime loads: a section.
struct PackedObject {
  std::string section;
  std::string kind; ///< "host-object", "cubin" or "ptx"
  std::string bytes;
};

struct PackageContents {
  const Program *program = nullptr;
  std::vector<PackedInstance> instances;
  std::vector<PackedObject> objects;
  std::vector<PackedPlan> plans;
  std::vector<PackedSource> sources;
  std::string tileBytecode; ///< MLIR bytecode of all instances, to retarget
  std::map<std::string, std::string>
      tuning;          ///< rows of the tuning table without their choice, as canonical JSON, and their choice
  std::string options; ///< the part of the command line that determines the contents
};

/// Returns the file's bytes. Equal contents give equal bytes.
llvm::Expected<std::string> writePackage(const PackageContents &contents);

} // namespace kpkg::compiler
