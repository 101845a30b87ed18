// All modules of one build, checked: its kernels with their instances, its ops with their schemas.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Hir.h"
#include "compiler/comptime/Value.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kpkg::compiler {

class DiagnosticEngine;
class SourceFile;
class SourceManager;
class Checker;

/// A comptime parameter of a kernel, as the manifest lists it. `kind` is "dtype", "int", "bool", "string" or
/// "function".
struct KernelParameter {
  std::string name;
  std::string kind;
  /// Listed in `@tune`: instances that differ only in such parameters give equal results.
  bool isTuned = false;
};

/// An argument of a kernel. `dtype` is a dtype's name, or the parameter that it equals ("T"), or empty where it is
/// computed from several.
struct KernelArgument {
  std::string name;
  bool isView = false;
  int rank = 0;
  std::string dtype;
  bool isMut = false;
  /// Some launch passes an `Optional[Tensor]`; known once the ops are checked.
  bool isOptional = false;
};

/// One compiled combination of parameter values, in the order of the parameters.
struct KernelInstance {
  std::vector<Value> parameters;
  /// Unique in the program and usable as an ELF symbol.
  std::string symbol;
  /// What `@schedule` asks for: "warps", "occupancy", "cluster", "stages", "dynamic" (1), "peel", "roles".
  std::map<std::string, int64_t> schedule;
  /// What `@tune(general=)` says: whether this one serves arguments of which nothing is known. Nothing where it is not
  /// given.
  std::optional<bool> isGeneral;
  /// What `@tune(vectors=)` says: whether this one has variants for contiguous, aligned arguments. Nothing where it is
  /// not given: it has.
  std::optional<bool> hasVectors;
};

struct KernelRecord {
  /// In the package: `ownName`, behind the name of its module ("blocks.copy_tiles") where another module has a kernel
  /// that is called the same.
  std::string name;
  /// In the source.
  std::string ownName;
  /// The file of its module.
  std::string path;
  std::string doc;
  SourceRange range;
  std::vector<KernelParameter> parameters;
  std::vector<KernelArgument> arguments;
  std::vector<KernelInstance> instances;
  bool isPersistent = false;
  /// Declared in a module that others import, not in one that the build names.
  bool isImported = false;
  /// Some op launches it; known once the ops are checked.
  bool isLaunched = false;
  /// Some launch leaves the value of a tuned parameter to kpkg.
  bool isLeftToChoice = false;
};

/// An argument of an op. `type` is the PyTorch schema type: Tensor, Tensor?, int, float, bool, int[], ScalarType, str.
struct OpArgument {
  std::string name;
  std::string type;
  bool isMut = false;
  bool hasDefault = false;
  Value defaultValue;
};

/// Where an argument of a backward op comes from.
struct BackwardArgument {
  enum Kind : uint8_t {
    Gradient,      ///< of the op's result `index`
    Result,        ///< the op's result `index`
    Argument,      ///< the op's argument `index`
    Needs,         ///< Bool: whether the gradient of the op's argument `index`, a tensor, is asked for
    Deterministic, ///< Bool: whether gradients must be equal from run to run; `index` is 0
  };
  Kind kind = Gradient;
  size_t index = 0;
};

/// An op's gradient: another op, whose results are the gradients of the op's tensor arguments in order.
struct Backward {
  std::string op;
  std::vector<BackwardArgument> arguments;
};

/// How PyTorch treats an op, from `@register.torch`. An empty text says nothing.
struct TorchRules {
  /// What torch.autocast does with tensors: "lower", "float32", "promote", "first" or "keep", perhaps with the names of
  /// those that it is for behind it.
  std::string autocastCpu, autocastCuda;
  /// "elementwise", "last", "along dim", "trailing normalized_shape", "product" or "linear".
  std::string dimensions;
  /// "default" or "int_to_float": how operands of several dtypes get one.
  std::string promotion;
  /// What runs where no kernel can, in the subset of Python that docs/language.md describes.
  std::string fallback;
};

struct OpRecord {
  /// "kpkg::softmax"; its reference is "kpkg::softmax_reference", its backward "kpkg::softmax_autograd".
  std::string name;
  std::string doc;
  SourceRange range;
  /// "softmax(Tensor input, int dim=-1) -> Tensor"
  std::string schema;
  std::vector<OpArgument> arguments;
  /// "Tensor" or "Tensor?" each.
  std::vector<std::string> results;
  /// The name of the op that is this one's definition, or empty.
  std::string reference;
  std::optional<Backward> backward;
  std::optional<TorchRules> torch;
  /// Not public: defined by `@register.reference`.
  bool isReference = false;
  /// Defined by `@register.backward`.
  bool isBackward = false;
};

/// A launch that on every path through an op asks for a dtype that no instance of the kernel has: calls that come to it
/// fall back.
struct IdleLaunch {
  SourceRange range;
  size_t kernel;
  /// "`T` is none of float32 here"
  std::string why;
};

struct ProgramOptions {
  /// Folders in which `import` looks after the importing file's own.
  std::vector<std::string> importPaths;
  /// `-D NAME=VALUE`: comptime constants of the root modules, overriding theirs.
  std::vector<std::pair<std::string, std::string>> defines;
  unsigned maxComptimeSteps = 1u << 22;
  /// What the kernels are compiled for, "cpu" or "gpu": comptime code asks with `target.has("gpu")`.
  std::string targetKind = "cpu";
};

/// A checked program. Make it with load(), then check(); ask `diags.hasErrors()` before generating.
class Program {
public:
  /// Reads the modules and what they import, and checks names and signatures. Errors go to `diags`.
  static std::unique_ptr<Program> load(const std::vector<std::string> &paths, const ProgramOptions &options,
                                       SourceManager &sources, DiagnosticEngine &diags);
  /// The same for sources that are in memory already (they belong to `sources`).
  static std::unique_ptr<Program> loadSources(const std::vector<const SourceFile *> &files,
                                              const ProgramOptions &options, SourceManager &sources,
                                              DiagnosticEngine &diags);
  ~Program();

  const std::vector<KernelRecord> &kernels() const { return kernelRecords; }
  const std::vector<OpRecord> &ops() const { return opRecords; }

  /// Those of the checked ops, in the order of the source.
  std::vector<IdleLaunch> idleLaunches() const;

  /// Checks every op and every instance for which `keep` is true (null: all). Each is checked once.
  using InstanceFilter = std::function<bool(const KernelRecord &, const KernelInstance &)>;
  void check(const InstanceFilter &keep = nullptr);

  /// The checked form of an instance or an op; null when it was not checked or has errors.
  const hir::Function *kernel(size_t kernelIndex, size_t instanceIndex) const;
  const hir::Function *op(size_t opIndex) const;

private:
  friend class Checker;
  Program();
  std::unique_ptr<Checker> checker;
  std::vector<KernelRecord> kernelRecords;
  std::vector<OpRecord> opRecords;
};

} // namespace kpkg::compiler
