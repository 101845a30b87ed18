// Declares the state of checking a program: modules, types, the comptime evaluator, checked functions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Context.h"
#include "compiler/check/Module.h"
#include "compiler/check/Tests.h"

#include <set>

namespace kpkg::compiler {

class BodyScope;

/// The requirement of a parameter's annotation.
struct TypeSpec {
  enum Kind {
    Any,       ///< no annotation
    AnyTile,   ///< `Tile`
    AnyScalar, ///< `Scalar`
    AnyTensor, ///< `Tensor`: a view in a kernel, a host tensor in an op
    Exact,     ///< `exact`
    Struct,    ///< a value of `structure`, with the comptime parameters that `bound` has
    Wrong,     ///< reported
  };
  Kind kind = Any;
  const Type *exact = nullptr;
  const StructEntity *structure = nullptr;
  std::vector<std::optional<Value>> bound = {};
  std::string str() const;
};

/// Limit of instances of one kernel, including alternatives.
constexpr size_t maxInstances = 4096;

/// A comptime parameter of a kernel that follows from the struct that a launch passes: `w.SIZE` of `w: Window`.
struct StructParameter {
  std::string name;
  size_t argument = 0;         ///< the number of the kernel's parameter
  std::vector<size_t> members; ///< the way through its members to the comptime parameter
  const StructEntity *structure = nullptr;

  const ast::ComptimeParameter &syntax() const { return structure->syntax->comptimeParameters[members.back()]; }
  /// The name of the struct's value: `w`.
  std::string owner() const { return name.substr(0, name.rfind('.')); }
};

/// A kernel as launches see it.
struct KernelInfo {
  const FunctionEntity *function = nullptr;
  /// For each parameter, its value if it is equal in all instances.
  std::vector<std::optional<Value>> onlyValue;
};

/// An op as calls see it.
struct OpInfo {
  const FunctionEntity *function = nullptr;
  std::vector<Value> parameters; ///< values of its comptime parameters, where one function is several ops
  std::vector<const Type *> argumentTypes;
  std::vector<const Type *> resultTypes;
  bool isWrong = false; ///< its declaration had a reported error
  bool isChecked = false;
};

/// Returns a text of an op with the values of its comptime parameters in place of `{NAME}`.
std::string withParameters(std::string text, const OpInfo &op);

/// The decorator with which an op is registered.
enum class OpUse : uint8_t { Public, Reference, Backward };

/// Checks one program; lives inside Program.
class Checker : public CheckContext {
public:
  Checker(Program &program, const ProgramOptions &options, SourceManager &sources, DiagnosticEngine &diags)
      : CheckContext(options, diags), program(program), sources(sources) {}

  /// Loads a program like Program::load(). An observer, which may be null, follows the check and outlives the program.
  static std::unique_ptr<Program> load(const std::vector<std::string> &paths, const ProgramOptions &options,
                                       SourceManager &sources, DiagnosticEngine &diags, Observer *observer);

  static const Checker &of(const Program &program) { return *program.checker; }

  /// Loads a root module and its imports.
  void loadRoot(const std::string &path);
  void loadRoot(const SourceFile &file);
  /// Creates the records of kernels and ops from the decorators of all modules.
  void declare();
  void check(const Program::InstanceFilter &keep);
  /// Checks the instances of a kernel that pass `keep`. Of the prelude's kernels only those that launches request.
  void checkInstances(size_t kernel, const Program::InstanceFilter &keep);
  void checkOps();
  bool isOfPrelude(size_t kernel) const;
  /// Returns the number of the prelude's kernel that fills shadows.
  size_t fillOfShadows() const;
  /// Gives all kernels but that one the arguments for their shadows.
  void addShadowArguments();

  /// Resolves an annotation in the scope of `environment`. Returns Wrong after an error.
  TypeSpec resolveType(const ast::Expr &expr, const Environment &environment, bool isMut = false);

  /// Returns the kind of a comptime parameter of a "kernel" or "struct", as KernelParameter has it. Returns nothing
  /// after an error.
  std::optional<std::string> parameterKind(const ast::ComptimeParameter &parameter, const Environment &module,
                                           std::string_view of);
  static bool isOfKind(const std::string &kind, const Value &value);
  /// Returns the comptime parameters of structs that a kernel's annotations leave open. They follow those of the
  /// kernel.
  const std::vector<StructParameter> &structParameters(const FunctionEntity &kernel);
  /// Returns the struct that an annotation names, with brackets or without; null for other types.
  static const StructEntity *structNamedBy(const ast::Expr &type, const Environment &environment);
  /// Returns the comptime parameters of a kernel with the values of one instance, over its module. Values that are None
  /// are not known yet.
  BodyScope instanceScope(const FunctionEntity &function, const std::vector<Value> &values);
  /// Returns the comptime parameters of a struct, whose other names are those of its module.
  BodyScope structScope(const StructEntity &structure, const std::vector<Value> &values);
  /// Returns the type of a kernel's parameter in an instance, whose comptime parameters are `instance`. Returns null
  /// after an error.
  const Type *kernelArgumentType(const ast::Parameter &parameter, const BodyScope &instance);
  /// An argument of a kernel as its code has it: a parameter, or a field of one that is a struct.
  struct FlatArgument {
    std::string name; ///< `w.stride`
    const Type *type;
    const ast::Expr *annotation;
    /// The comptime parameters that the annotation can name, and what their names begin with among the kernel's: `w.`.
    const std::vector<ast::ComptimeParameter> *scope;
    std::string prefix;
  };
  /// Appends the arguments that `argument` stands for.
  static void flatten(const FlatArgument &argument, std::vector<FlatArgument> &flat);

  const KernelInfo &kernelInfo(size_t index) const { return kernels[index]; }
  /// Records that an op launches that kernel.
  void noteLaunch(size_t index) { program.kernelRecords[index].isLaunched = true; }
  /// Records that a launch may request that instance of that kernel.
  void noteRequest(size_t kernel, size_t instance) { requestedInstances.emplace(kernel, instance); }
  /// Records that a launch of that kernel may omit one of its tensors.
  void noteOptional(size_t index, size_t argument) {
    program.kernelRecords[index].arguments[argument].isOptional = true;
  }
  /// Records that a launch of that kernel leaves tuned parameters open.
  void noteChoice(size_t index) { program.kernelRecords[index].isLeftToChoice = true; }
  /// Records that, on a path through an op, that launch of kernel `index` requests a dtype without an instance.
  void noteIdle(const ast::LaunchStmt &stmt, size_t index, const std::string &why) {
    idleLaunches.try_emplace(&stmt, index, why);
  }
  /// Records that, on a path through an op, that launch finds an instance.
  void noteUse(const ast::LaunchStmt &stmt) { usedLaunches.insert(&stmt); }
  /// Records that the body of op `caller` calls op `callee`.
  void noteOpCall(const std::string &caller, size_t callee, SourceRange range) {
    opCalls[opByName.at(caller)].emplace_back(callee, range);
  }
  const OpInfo &opInfo(size_t index) const { return opInfos[index]; }

  Program &program;
  SourceManager &sources;
  /// The tests of ops, complete after declare().
  std::vector<TestRecord> tests;

private:
  friend class Program;
  ModuleScope *loadFile(const SourceFile &file, bool isRoot = false);
  /// Returns the open file of that path, or the one on disk. Null if it cannot be read; `reason` then says why.
  const SourceFile *read(const std::string &path, std::string &reason);
  void checkDefines();
  ModuleScope *import(const ast::ImportStmt &stmt, const ModuleScope &from);
  void declareNames(ModuleScope &module, const ast::Block &block);
  void declareImport(ModuleScope &module, const ast::ImportStmt &stmt);
  void addEntry(ModuleScope &module, const ast::Identifier &name, ModuleScope::Entry entry);

  /// Fills in `kernelNames`.
  void nameKernels();
  const StructEntity &addStruct(ModuleScope &module, const ast::StructStmt &syntax);
  /// Checks the declaration of a struct. Returns false if it has itself as a field, directly or through others.
  bool declareStruct(const StructEntity &structure);
  void declareMethod(const StructEntity &structure, const ast::FunctionStmt &method);
  void declareFunction(FunctionEntity &function);
  void declareKernel(FunctionEntity &function);
  /// Reads the comptime parameters of a kernel. Returns false after an error.
  bool declareKernelParameters(const FunctionEntity &function, KernelRecord &record);
  const ast::ComptimeParameter &kernelParameter(const FunctionEntity &function, size_t number);
  /// Returns the names for the default of `number`, a comptime parameter of a struct.
  BodyScope defaultScope(const FunctionEntity &function, size_t number, const std::vector<Value> &before);
  /// Declares an argument by all instances: its rank must be the same, its element type may differ. Returns false after
  /// an error.
  bool declareKernelArgument(const FunctionEntity &function, const ast::Parameter &parameter,
                             const std::vector<std::vector<Value>> &instances, KernelRecord &record);
  /// Creates the instances, with their symbols and schedules. Returns false after an error.
  bool declareInstances(const FunctionEntity &function, std::vector<std::vector<Value>> instances,
                        KernelRecord &record);
  /// Declares the op of a function, or one op for each combination of its `@specialize`.
  void declareOps(FunctionEntity &function, const ast::Decorator &decorator, OpUse use);
  void declareOp(const FunctionEntity &function, const ast::Decorator &decorator, OpUse use,
                 std::vector<Value> parameters);
  /// Sets the name of an op, which its decorator gives. Returns false after an error.
  bool nameOp(const ast::Decorator &decorator, OpUse use, const std::string &name, SourceRange nameRange,
              OpRecord &record);
  /// Reads one argument of an op. Returns false after an error.
  bool declareOpArgument(const ast::Parameter &parameter, OpInfo &info, OpRecord &record);
  bool declareDefault(const OpInfo &info, const ast::Expr &expr, const Type *type, OpArgument &argument);
  /// Reads `@register.torch` of an op whose arguments are known. Returns false after reporting an error.
  bool declareTorch(const OpInfo &info, const ast::Decorator &decorator, OpRecord &record);
  /// Reads the result types. Returns false after reporting one that an op cannot have.
  bool declareResults(const FunctionEntity &function, OpInfo &info, OpRecord &record);
  /// Reports more than `most` arguments or results.
  bool isWithin(const FunctionEntity &function, size_t count, const char *what, size_t most);
  /// Fills in `instance.threads` from the arguments of `@kernel`. Returns false after an error.
  bool evaluateLevel(const FunctionEntity &function, const Environment &values, KernelInstance &instance);
  /// Fills in `instance.schedule`; `values` has the comptime parameters. Returns false after an error.
  bool evaluateSchedule(const FunctionEntity &function, const Environment &values, KernelInstance &instance);
  /// Returns the value of a condition of `@tune`; nothing after an error.
  std::optional<bool> condition(const ast::Argument &argument, const Environment &scope);
  bool evaluateVariants(const FunctionEntity &function, const Environment &values, KernelInstance &instance);
  bool specialisations(const FunctionEntity &function, const std::vector<KernelParameter> &parameters,
                       std::vector<std::vector<Value>> &instances);
  /// Returns the values of parameter `number` for instances with the values `before` of earlier parameters. They are
  /// from `list` or, if that is null, from the default. Returns nothing after an error.
  std::optional<std::vector<Value>> listedValues(const FunctionEntity &function, const KernelParameter &parameter,
                                                 size_t number, const ast::Argument *list,
                                                 const std::vector<Value> &before);
  /// Marks each parameter that a `@tune` of the kernel lists. Returns false after an error.
  bool markTuned(const FunctionEntity &function, std::vector<KernelParameter> &parameters);
  /// Replaces each instance, whose tuned parameters are None, by its alternatives in source order. Returns false after
  /// an error.
  bool expandAlternatives(const FunctionEntity &function, const std::vector<KernelParameter> &parameters,
                          std::vector<std::vector<Value>> &instances);
  bool addAlternatives(const FunctionEntity &function, const std::vector<KernelParameter> &parameters,
                       const ast::Decorator &decorator, size_t next, const std::vector<Value> &values,
                       std::vector<std::vector<Value>> &alternatives);
  bool haveOwnNames(const std::vector<Value> &functions, SourceRange range);
  void linkReferences();
  /// Fills in `tests`.
  void declareTests();
  const OpRecord *testedOp(const FunctionEntity &function, const ast::Decorator &decorator, TestRecord &test);
  /// Adds the case of the function with these comptime arguments. Returns false after an error.
  bool addCase(const FunctionEntity &function, const std::vector<KernelParameter> &parameters,
               const std::vector<Value> &values, const OpRecord &op, TestRecord &test);
  /// Reports ops that call themselves.
  void findRecursiveOps();
  void linkBackwards();
  void linkBackward(size_t backwardIndex, size_t opIndex, const ast::Decorator &decorator);
  struct SavedNames;
  std::optional<SavedNames> savedNames(const FunctionEntity &backward, const OpRecord &op,
                                       const ast::Decorator &decorator);
  bool bindBackward(const std::vector<ast::Parameter> &parameters, const OpRecord &backward, const OpRecord &op,
                    const SavedNames &saved, std::vector<BackwardArgument> &arguments);

  /// Returns the comptime parameters of a struct that brackets give, or else their defaults. Returns nothing after an
  /// error.
  std::optional<std::vector<std::optional<Value>>>
  structArguments(const StructEntity &structure, const ast::IndexExpr &index, const Environment &environment);
  void addStructParameters(const ast::Expr &type, const Environment &environment, const StructParameter &at,
                           std::vector<StructParameter> &found);
  /// Returns the type of a struct in a kernel, `name` being its name there. Returns null after an error.
  const Type *kernelStruct(const TypeSpec &spec, const std::string &name, const ast::Parameter &parameter,
                           const BodyScope &instance);

  std::map<const FunctionEntity *, std::vector<StructParameter>> structParametersOf;
  std::map<std::string, std::unique_ptr<ModuleScope>> modules; // by canonicalPath()
  std::vector<ModuleScope *> loadOrder;
  std::map<const FunctionEntity *, std::string> kernelNames; // their names in the package
  std::set<std::string> kernelSymbols;                       // the beginnings of instances' symbols
  std::vector<KernelInfo> kernels;
  std::vector<OpInfo> opInfos;
  std::map<std::string, size_t> opByName;
  std::vector<std::pair<const FunctionEntity *, const ast::Decorator *>> testFunctions;
  std::vector<std::pair<size_t, std::string>> references;                         // op index of the reference, op name
  std::vector<std::tuple<size_t, std::string, const ast::Decorator *>> backwards; // op index of the backward, op name
  std::vector<std::vector<std::unique_ptr<hir::Function>>> kernelBodies;
  std::vector<std::unique_ptr<hir::Function>> opBodies;
  std::map<size_t, std::vector<std::pair<size_t, SourceRange>>> opCalls; // by op: the ops that it calls, and where
  std::vector<std::vector<bool>> kernelChecked;
  std::set<std::pair<size_t, size_t>> requestedInstances;                         // kernel, instance
  std::map<const ast::LaunchStmt *, std::pair<size_t, std::string>> idleLaunches; // the kernel, and why
  std::set<const ast::LaunchStmt *> usedLaunches;
};

} // namespace kpkg::compiler
