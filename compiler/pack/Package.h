// Puts what a build made into one .kpkg file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Program.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace kpkg::compiler {

/// A fact that an instance relies on: the stride of dimension `unit` of view argument `argument` is 1.
struct PackedFact {
  unsigned argument = 0;
  int64_t unit = 0;
};

/// One factor of a cost formula: "blocks", or "dim", "tiles", "clip" of a dimension of an argument (docs/package-format.md).
struct PackedCostFactor {
  std::string kind;
  unsigned argument = 0;
  unsigned dimension = 0;
  int64_t size = 0;
};
struct PackedCostTerm {
  double count = 0;
  std::vector<PackedCostFactor> factors;
};

/// One compiled form of a kernel instance.
struct PackedInstance {
  size_t kernel = 0;
  size_t instance = 0;
  std::string target;
  std::string variant;
  std::string symbol;
  std::vector<PackedFact> facts;
  std::vector<std::string> dtypes; ///< of each kernel argument
  int64_t scratchBytes = 0;
  std::vector<std::string> asserts;
  std::vector<std::string> prints;
  std::vector<PackedCostTerm> flops, bytes; ///< estimates for a launch; empty: unknown
};

/// An op's bytecode: the whole plan, and the slice that decides shapes.
struct PackedPlan {
  std::string op;
  std::string plan;
  std::string shapePlan;
};

struct PackedSource {
  std::string name; ///< without folders
  std::string text;
};

/// Machine code of one target, as the runtime loads it.
struct PackedObject {
  std::string target;
  std::string bytes;
};

struct PackageContents {
  const Program *program = nullptr;
  std::vector<PackedInstance> instances;
  std::vector<PackedObject> objects;
  std::vector<PackedPlan> plans;
  std::vector<PackedSource> sources;
  std::string tileBytecode; ///< MLIR bytecode of all instances, to retarget
  std::string options;      ///< what of the command line decides the contents
};

/// The file's bytes: the same contents give the same bytes.
llvm::Expected<std::string> writePackage(const PackageContents &contents);

} // namespace kpkg::compiler
