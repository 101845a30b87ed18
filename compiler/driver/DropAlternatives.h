// Drops the alternatives that a target does not need, from the results of compiling instances.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/codegen/host/HostCode.h"
#include "compiler/driver/CompileOptions.h"
#include "compiler/driver/VariantNotes.h"
#include "compiler/irgen/Generate.h"
#include "compiler/pack/Package.h"
#include "llvm/ADT/ArrayRef.h"
#include <optional>

namespace kpkg::compiler {

/// A target without code.
struct Failure {
  std::string target;
  std::string why;   ///< the reasons of all variants and launches
  std::string brief; ///< one reason, for a note
};

/// The result of compiling one instance.
struct JobResult {
  std::vector<PackedInstance> instances;
  std::vector<std::optional<HostObject>> objects; ///< one per CPU target; nothing after a failure
  std::vector<PackedObject> gpuObjects;
  std::vector<PackedObject> tpuObjects;
  std::string whyNotOnTpu; ///< the construct that the target tpu does not take, or empty
  std::vector<VariantNote> notes;
  std::string toolFailure;   ///< why the build cannot continue, or empty
  std::string whyNoEstimate; ///< of an alternative that the cost model cannot estimate
  std::vector<Failure> failures;
};

bool hasAlternatives(const KernelRecord &kernel);

/// Returns for each of `refs` whether no other alternative can replace it. It is then the last of its alternatives in
/// the source, or the only one.
std::vector<bool> lastAlternatives(const Program &program, llvm::ArrayRef<InstanceRef> refs);

/// Returns for each of `refs` whether there is another alternative.
std::vector<bool> haveOthers(const Program &program, llvm::ArrayRef<InstanceRef> refs);

/// Returns for each of `refs` whether on GPUs it also gets the general variants: by `@tune(general=)`, else for the
/// last alternative.
///
/// These variants are slow with any tiles. With large tiles they take long to compile, and only spill.
std::vector<bool> generalAlternatives(const Program &program, llvm::ArrayRef<InstanceRef> refs);

/// Returns for each of `refs` whether an alternative has the general variants. If none has, launches were proven to
/// find others.
std::vector<bool> haveGeneralAlternatives(const Program &program, llvm::ArrayRef<InstanceRef> refs);

/// Returns whether on GPUs it gets the variants for contiguous, aligned arguments: unless `@tune(vectors=)` assigns
/// these to other instances.
bool hasVectors(const Program &program, InstanceRef ref);

/// Drops alternatives from `results`, one for each of `refs`, that are slow on a target where another one is not. It
/// also forgives alternatives that a target cannot run while it can run another. Each gets a note.
///
/// Returns KernelRefused if a target has no alternative left, or a GPU has none for general arguments.
llvm::Error dropAlternatives(const Program &program, const SourceManager &sources, llvm::ArrayRef<InstanceRef> refs,
                             llvm::MutableArrayRef<JobResult> results);

} // namespace kpkg::compiler
