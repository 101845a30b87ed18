// Declares the results of a build that a package contains.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Program.h"
#include "runtime/manifest/Records.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kpkg::compiler {

/// Tells kernel authors how a pass of the GPU compiler changed a place of the source, or why it did not.
struct PackedRemark {
  std::string place; ///< "rows.k:12", or empty
  std::string pass;  ///< its flag, "kgpu-ring-loads"
  bool isApplied = false;
  std::string optimisation; ///< in words that need no knowledge of passes
  std::string text;         ///< how it was applied, or why not

  bool operator==(const PackedRemark &) const = default;
};

/// One compiled form of a kernel. `kernel` is its number in the program, until the manifest is made.
struct PackedInstance : manifest::Instance {
  std::vector<Value> parameters;
  std::vector<PackedRemark> remarks; ///< of a GPU instance; in a section of their own
  bool isSlow = false;               ///< runs, but not at full speed; for comparison with alternatives
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

} // namespace kpkg::compiler
