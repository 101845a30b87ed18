// Declares all modules of one build after checking: kernels with their instances, and ops with their schemas.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Hir.h"
#include "compiler/comptime/Value.h"
#include "dialect/tile/schedule/Schedule.h"
#include "runtime/manifest/Records.h"

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
  /// Whether `@tune` lists it. Instances that differ only in tuned parameters give equal results.
  bool isTuned = false;
};

/// An argument of a kernel. `dtype` is a dtype's name, the parameter that it equals ("T"), or empty if it is computed
/// from several.
struct KernelArgument {
  std::string name;
  bool isView = false;
  int rank = 0;
  std::string dtype;
  /// Whether its dtype is computed, from a parameter for example: `Tensor[accumulator(T), 1]`.
  bool isComputedDType = false;
  bool isMut = false;
  /// Whether its type is `Optional`, or some launch passes an `Optional[Tensor]`. Known once the ops are checked.
  bool isOptional = false;
  /// Whether its type is `Optional`.
  bool mayBeNone = false;
};

/// One compiled combination of parameter values, in the order of the parameters.
struct KernelInstance {
  std::vector<Value> parameters;
  /// Unique in the program and usable as an ELF symbol.
  std::string symbol;
  /// The hints of `@schedule`.
  tile::Schedule schedule;
  /// The threads of a block, where the kernel is at thread level.
  ThreadBlock threads;
  /// The value of `@tune(general=)`: whether this instance supports arguments without known properties. Empty if it is
  /// not given.
  std::optional<bool> isGeneral;
  /// The value of `@tune(vectors=)`: whether this instance has variants for contiguous, aligned arguments. Empty if it
  /// is not given, which means true.
  std::optional<bool> hasVectors;
};

struct KernelRecord {
  /// The name in the package. It is `ownName`, prefixed with the module ("blocks.copy_tiles") if another module has a
  /// kernel of that name.
  std::string name;
  /// The name in the source.
  std::string ownName;
  /// The file of its module.
  std::string path;
  std::string doc;
  SourceRange range;
  std::vector<KernelParameter> parameters;
  std::vector<KernelArgument> arguments;
  std::vector<KernelInstance> instances;
  bool isPersistent = false;
  /// Whether it is declared in an imported module, not in one that the build names.
  bool isImported = false;
  /// Whether some op launches it. Known once the ops are checked.
  bool isLaunched = false;
  /// Whether some launch leaves a tuned parameter to kpkg.
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

/// An op's gradient, and PyTorch's treatment of an op, are those of the manifest.
using manifest::Backward;
using manifest::BackwardArgument;
using manifest::TorchRules;

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
  /// The name of the op's reference implementation, or empty.
  std::string reference;
  std::optional<Backward> backward;
  std::optional<TorchRules> torch;
  /// Not public: defined by `@register.reference`.
  bool isReference = false;
  /// Defined by `@register.backward`.
  bool isBackward = false;
};

/// A launch that on every path through an op requests a dtype without an instance, so that calls that reach it use the
/// fallback.
struct IdleLaunch {
  SourceRange range;
  size_t kernel;
  /// "`T` is none of float32 here"
  std::string why;
};

/// Names of shadows: whether elements were written, and the cells of accesses.
inline constexpr const char *writtenShadow = "written", *accessesShadow = "accesses";

struct ProgramOptions {
  /// Folders that `import` searches after the importing file's own.
  std::vector<std::string> importPaths;
  /// `-D NAME=VALUE`: comptime constants that override those of the root modules.
  std::vector<std::pair<std::string, std::string>> defines;
  unsigned maxComptimeSteps = 1u << 22;
  /// The kind of target, "cpu" or "gpu". Comptime code queries it with `target.has("gpu")`.
  std::string targetKind = "cpu";
  /// The shadows that each tensor argument of a kernel has: of `x` the int32 tensor `x.written`, for example. They
  /// follow all other arguments.
  std::vector<std::string> shadows;
};

/// A checked program. Create it with load(), then call check(). Query `diags.hasErrors()` before generating code.
class Program {
public:
  /// Reads the modules and their imports, and checks names and signatures. Errors go to `diags`.
  static std::unique_ptr<Program> load(const std::vector<std::string> &paths, const ProgramOptions &options,
                                       SourceManager &sources, DiagnosticEngine &diags);
  /// Loads sources that are in memory already (they belong to `sources`).
  static std::unique_ptr<Program> loadSources(const std::vector<const SourceFile *> &files,
                                              const ProgramOptions &options, SourceManager &sources,
                                              DiagnosticEngine &diags);
  ~Program();

  const std::vector<KernelRecord> &kernels() const { return kernelRecords; }
  const std::vector<OpRecord> &ops() const { return opRecords; }
  /// Returns the shadows of each tensor argument, as in the options.
  const std::vector<std::string> &shadows() const;
  /// Returns the kernel of the prelude that fills shadows. It has none itself.
  const KernelRecord &fillOfShadows() const;

  /// Returns the idle launches of the checked ops, in source order.
  std::vector<IdleLaunch> idleLaunches() const;

  /// Checks every op, and every instance for which `keep` returns true (null: all). Each is checked once.
  using InstanceFilter = std::function<bool(const KernelRecord &, const KernelInstance &)>;
  void check(const InstanceFilter &keep = nullptr);

  /// Returns the checked form of an instance or an op; null if it was not checked or has errors.
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
