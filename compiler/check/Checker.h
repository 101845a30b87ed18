// The state of checking a program: modules, types, the comptime evaluator, checked functions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Module.h"
#include "compiler/check/Program.h"
#include "compiler/check/Type.h"
#include "compiler/comptime/Evaluate.h"

namespace kpkg::compiler {

/// What the annotation of a parameter asks for.
struct TypeSpec {
  enum Kind {
    Any,       ///< no annotation
    AnyTile,   ///< `Tile`
    AnyScalar, ///< `Scalar`
    AnyTensor, ///< `Tensor`: a view in a kernel, a host tensor in an op
    Exact,     ///< `exact`
    Wrong,     ///< reported
  };
  Kind kind = Any;
  const Type *exact = nullptr;
  std::string str() const;
};

/// Of one kernel, alternatives included.
constexpr size_t maxInstances = 4096;

/// A kernel as launches see it.
struct KernelInfo {
  const FunctionEntity *function = nullptr;
  /// For each parameter, the value when it is the same in all instances.
  std::vector<std::optional<Value>> onlyValue;
};

/// An op as calls see it.
struct OpInfo {
  const FunctionEntity *function = nullptr;
  std::vector<const Type *> argumentTypes;
  std::vector<const Type *> resultTypes;
  bool isWrong = false; ///< its declaration was reported
  bool isChecked = false;
};

/// What an op is registered as.
enum class OpUse : uint8_t { Public, Reference, Backward };

/// Checks one program; lives inside Program.
class Checker {
public:
  Checker(Program &program, const ProgramOptions &options, SourceManager &sources, DiagnosticEngine &diags);

  /// Loads a root module with what it imports.
  void loadRoot(const std::string &path);
  void loadRoot(const SourceFile &file);
  /// Makes the records of kernels and ops from the decorators of all modules.
  void declare();
  void check(const Program::InstanceFilter &keep);

  /// The type that an annotation names, in the scope of `environment`. Reports and returns Wrong.
  TypeSpec resolveType(const ast::Expr &expr, const Environment &environment, bool isMut = false);

  /// The text of `-D name=text`; null without one.
  const std::string *defined(const std::string &name) const;
  const KernelInfo &kernelInfo(size_t index) const { return kernels[index]; }
  /// An op launches that kernel.
  void noteLaunch(size_t index) { program.kernelRecords[index].isLaunched = true; }
  /// A launch of that kernel may leave out one of its tensors.
  void noteOptional(size_t index, size_t argument) {
    program.kernelRecords[index].arguments[argument].isOptional = true;
  }
  /// A launch of that kernel leaves tuned parameters open.
  void noteChoice(size_t index) { program.kernelRecords[index].isLeftToChoice = true; }
  /// On a path through an op, that launch of kernel `index` asks for a dtype that no instance has.
  void noteIdle(const ast::LaunchStmt &stmt, size_t index, const std::string &why) {
    idleLaunches.try_emplace(&stmt, index, why);
  }
  /// On a path through an op, that launch finds an instance.
  void noteUse(const ast::LaunchStmt &stmt) { usedLaunches.insert(&stmt); }
  /// The body of op `caller` calls op `callee`.
  void noteOpCall(const std::string &caller, size_t callee, SourceRange range) {
    opCalls[opByName.at(caller)].emplace_back(callee, range);
  }
  const OpInfo &opInfo(size_t index) const { return opInfos[index]; }

  Program &program;
  const ProgramOptions options;
  SourceManager &sources;
  DiagnosticEngine &diags;
  TypeTable types;
  Evaluator evaluator;
  const ModuleScope *prelude = nullptr;

private:
  friend class Program;
  ModuleScope *loadFile(const SourceFile &file, bool isRoot = false);
  void checkDefines();
  ModuleScope *import(const ast::ImportStmt &stmt, const ModuleScope &from);
  void declareNames(ModuleScope &module, const ast::Block &block);
  void declareImport(ModuleScope &module, const ast::ImportStmt &stmt);
  void addEntry(ModuleScope &module, const ast::Identifier &name, ModuleScope::Entry entry);

  /// Fills in `kernelNames`.
  void nameKernels();
  void declareFunction(FunctionEntity &function);
  void declareKernel(FunctionEntity &function);
  void declareOp(FunctionEntity &function, const ast::Decorator &decorator, OpUse use);
  /// Reads `@register.torch` of an op whose arguments are known. False after a report.
  bool declareTorch(const FunctionEntity &function, const ast::Decorator &decorator, OpRecord &record);
  /// Reads the type of results. False, with an error reported, where an op cannot have it.
  bool declareResults(const FunctionEntity &function, OpInfo &info, OpRecord &record);
  /// Reports more than `most` arguments or results.
  bool isWithin(const FunctionEntity &function, size_t count, const char *what, size_t most);
  /// Fills in `instance.schedule`; `values` has the comptime parameters. False after an error.
  bool evaluateSchedule(const FunctionEntity &function, const Environment &values, KernelInstance &instance);
  /// The value of a condition of `@tune`; nothing after a report.
  std::optional<bool> condition(const ast::Argument &argument, const Environment &scope);
  bool evaluateVariants(const FunctionEntity &function, const Environment &values, KernelInstance &instance);
  bool specialisations(const FunctionEntity &function, const std::vector<KernelParameter> &parameters,
                       std::vector<std::vector<Value>> &instances);
  /// The values of parameter `number` in instances with the values `before` of those before it: from `list` or, where
  /// that is null, from the default. Nothing after an error.
  std::optional<std::vector<Value>> listedValues(const FunctionEntity &function, const KernelParameter &parameter,
                                                 size_t number, const ast::Argument *list,
                                                 const std::vector<Value> &before);
  /// Says of each parameter whether a `@tune` of the kernel lists it. False after an error.
  bool markTuned(const FunctionEntity &function, std::vector<KernelParameter> &parameters);
  /// Replaces each instance, in which tuned parameters are None, by its alternatives in the order in which they are
  /// written. False after an error.
  bool expandAlternatives(const FunctionEntity &function, const std::vector<KernelParameter> &parameters,
                          std::vector<std::vector<Value>> &instances);
  bool addAlternatives(const FunctionEntity &function, const std::vector<KernelParameter> &parameters,
                       const ast::Decorator &decorator, size_t next, const std::vector<Value> &values,
                       std::vector<std::vector<Value>> &alternatives);
  bool haveOwnNames(const std::vector<Value> &functions, SourceRange range);
  void linkReferences();
  /// Reports ops that call themselves.
  void findRecursiveOps();
  void linkBackwards();
  void linkBackward(size_t backwardIndex, size_t opIndex, const ast::Decorator &decorator);

  std::map<std::string, std::unique_ptr<ModuleScope>> modules; // by what identityOf() says of their path
  std::vector<ModuleScope *> loadOrder;
  std::map<const FunctionEntity *, std::string> kernelNames; // in the package
  std::set<std::string> kernelSymbols;                       // what symbols of instances begin with
  std::vector<KernelInfo> kernels;
  std::vector<OpInfo> opInfos;
  std::map<std::string, size_t> opByName;
  std::vector<std::pair<size_t, std::string>> references;                         // op index of the reference, op name
  std::vector<std::tuple<size_t, std::string, const ast::Decorator *>> backwards; // op index of the backward, op name
  std::vector<std::vector<std::unique_ptr<hir::Function>>> kernelBodies;
  std::vector<std::unique_ptr<hir::Function>> opBodies;
  std::map<size_t, std::vector<std::pair<size_t, SourceRange>>> opCalls; // by op: the ops that it calls, and where
  std::vector<std::vector<bool>> kernelChecked;
  std::map<const ast::LaunchStmt *, std::pair<size_t, std::string>> idleLaunches; // the kernel, and why
  std::set<const ast::LaunchStmt *> usedLaunches;
};

} // namespace kpkg::compiler
