// What compiling one instance left, and which alternatives a target does without.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/codegen/host/HostCode.h"
#include "compiler/driver/Compile.h"
#include "compiler/driver/VariantNotes.h"
#include "compiler/irgen/Generate.h"
#include "compiler/pack/Package.h"
#include "llvm/ADT/ArrayRef.h"
#include <optional>

namespace kpkg::compiler {

/// What one instance became.
struct JobResult {
  std::vector<PackedInstance> instances;
  std::vector<std::optional<HostObject>> objects; ///< one per CPU target; nothing where it failed
  std::vector<PackedObject> gpuObjects;
  std::vector<VariantNote> notes;
  std::string toolFailure;   ///< why the build cannot go on; or empty
  std::string whyNoEstimate; ///< of an alternative whose time the cost model cannot estimate
  /// Targets for which there is no code, and why.
  std::vector<std::pair<std::string, std::string>> failures;
};

/// "gemm_tiles[T=float32, BM=64]"
std::string title(const Program &program, InstanceRef ref);

bool hasAlternatives(const KernelRecord &kernel);

/// For each of `refs` whether it is the last of its alternatives in the source, or the only one: where no other one
/// serves.
std::vector<bool> lastAlternatives(const Program &program, llvm::ArrayRef<InstanceRef> refs);

/// For each of `refs` whether there is another alternative.
std::vector<bool> haveOthers(const Program &program, llvm::ArrayRef<InstanceRef> refs);

/// For each of `refs` whether on GPUs it also gets the variants for arguments about which little is known: as
/// `@tune(general=)` says, else the last alternative. They are slow whatever the tiles, and those of large tiles take
/// long to compile only to spill.
std::vector<bool> generalAlternatives(const Program &program, llvm::ArrayRef<InstanceRef> refs);

/// Whether on GPUs it gets the variants for contiguous, aligned arguments: unless `@tune(vectors=)` says that other
/// instances have those.
bool hasVectors(const Program &program, InstanceRef ref);

/// Takes out of `results`, one for each of `refs`, alternatives that are slow on a target where another one is not, and
/// excuses those that a target cannot do while it can do another; each with a note. A KernelRefused when a target has
/// no alternative left, or a GPU none for any arguments.
llvm::Error dropAlternatives(const Program &program, const SourceManager &sources, llvm::ArrayRef<InstanceRef> refs,
                             llvm::MutableArrayRef<JobResult> results);

} // namespace kpkg::compiler
