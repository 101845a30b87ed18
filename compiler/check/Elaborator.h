// Checks the body of one kernel instance or one op, with inline functions expanded, and builds its HIR.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Checker.h"
#include "compiler/check/Operand.h"
#include "compiler/check/ValueRanges.h"

#include <set>

namespace kpkg::compiler {

enum class BodyKind : uint8_t { Kernel, Op };

/// Whether control flow continues after a statement.
enum class Flow : uint8_t {
  Normal, ///< it continues
  Maybe,  ///< some paths left the block; the flags of the exits record which
  Exits,  ///< every path left the block
  Stops,  ///< every path raised an error
};

/// Names of a function body: block scopes over a module.
class BodyScope : public Environment {
public:
  explicit BodyScope(const Environment &module) : module(module) { blocks.emplace_back(); }
  Meaning lookup(const std::string &name, SourceRange range) const override;
  Meaning lookupMember(const std::string &base, const std::string &name, SourceRange range) const override;
  Meaning lookupAttribute(const ast::Expr &base, const std::string &name) const override;
  void addNames(std::vector<std::string> &names) const override;
  const Binding *find(const std::string &name) const;
  const Type *typeAt(const ast::Expr &expr) const;
  bool isDeclaredHere(const std::string &name) const { return blocks.back().count(name); }
  void declare(const std::string &name, Binding binding) { blocks.back()[name] = std::move(binding); }
  /// Declares a name for the whole function.
  void declareOutside(const std::string &name, Binding binding) { blocks.front()[name] = std::move(binding); }
  void open() { blocks.emplace_back(); }
  void close() { blocks.pop_back(); }

private:
  const Environment &module;
  std::vector<std::map<std::string, Binding>> blocks;
};

/// Returns an attribute of tiles that their type alone decides.
std::optional<Value> typeAttribute(const Type &tile, std::string_view name);
/// Returns `w.inner` as text; of other expressions something that no name is.
std::string pathText(const ast::Expr &expr);

/// A call, split into its parts: `base.name[comptimeArguments](arguments)`.
struct CallSite {
  const ast::CallExpr *call = nullptr;
  std::string name;
  SourceRange nameRange;
  const std::vector<ast::Argument> *comptimeArguments = nullptr; ///< null without brackets
  const std::vector<ast::Argument> *arguments = nullptr;
  Operand base; ///< of a method call
  SourceRange range() const { return call->range; }
};

/// Limit of elements in one tile. No target holds more on chip.
inline constexpr int64_t maxTileElements = 1 << 20;

class Elaborator {
public:
  Elaborator(Checker &checker, BodyKind kind, hir::Function &function);

  /// Returns false after an error. `op` is null for kernels.
  bool elaborate(const FunctionEntity &entity, const std::vector<Value> &comptimeArguments, const OpInfo *op = nullptr);

private:
  friend class Arguments;
  struct ExitFlag;
  struct Loop;
  struct Frame;
  struct LaunchParameters;
  struct Range;
  using Node = hir::Node;
  using Kind = hir::Kind;
  using Handler = Operand (Elaborator::*)(CallSite &);

  // Emit.cpp: nodes and operands
  Node *emit(Kind kind, const Type *type, SourceRange range, std::vector<Node *> operands = {},
             std::vector<int64_t> ints = {});
  Node *emitConstant(Value value, const Type *type, SourceRange range);
  hir::Local *newLocal(std::string name, const Type *type);
  void setLocal(hir::Local *local, Node *value, SourceRange range);
  Node *getLocal(hir::Local *local, SourceRange range);
  std::unique_ptr<hir::Block> inBlock(const std::function<void()> &body);
  void apart(const std::function<void()> &body);
  Operand error(SourceRange range);
  Operand constant(Value value, SourceRange range);
  Operand runTime(Node *node);
  Operand result(Kind kind, const Type *type, SourceRange range, std::vector<Node *> operands,
                 std::vector<int64_t> ints = {});
  Operand tuple(std::vector<Operand> items, SourceRange range);
  Operand none(SourceRange range);
  const Type *typeOfValue(const Value &value);
  std::string describe(const Operand &operand);

  // CheckExpr.cpp
  Operand check(const ast::Expr &expr);
  Operand checkByKind(const ast::Expr &expr);
  /// Tells the observer of the check, if there is one, what stands at `range`.
  void observe(SourceRange range, const Operand &operand);
  /// Records that a variable receives a value, if there is an observer.
  void nameValue(SourceRange name, Node *value);
  Operand checkName(const ast::NameExpr &expr);
  Operand checkAttribute(const ast::AttributeExpr &expr);
  Operand checkIndex(const ast::IndexExpr &expr);
  Operand checkList(const ast::ListExpr &expr);
  Operand checkConditional(const ast::ConditionalExpr &expr);
  Operand checkLogical(const ast::LogicalExpr &expr);
  std::optional<Value> comptime(const ast::Expr &expr);
  std::optional<int64_t> comptimeInt(const ast::Expr &expr);
  std::optional<DType> comptimeDType(const ast::Expr &expr);
  /// The same for elements of `what`, which cannot be of dtypes that exist only packed.
  std::optional<DType> elementDType(const ast::Expr &expr, std::string_view what);

  // CheckOperator.cpp
  Operand checkUnary(const ast::UnaryExpr &expr);
  Operand checkCompare(const ast::CompareExpr &expr);
  Operand binary(ast::BinaryOp op, const Operand &lhs, const Operand &rhs, SourceRange range);
  Operand comparison(ast::CompareOp op, const Operand &lhs, const Operand &rhs, SourceRange range);
  Operand binaryOfTuples(ast::BinaryOp op, const Operand &lhs, const Operand &rhs, SourceRange range);
  Operand joinLists(const Operand &lhs, const Operand &rhs, SourceRange range);
  Operand compareNone(bool isNone, const Operand &operand, SourceRange range);
  Operand noneInKernel(const std::string &name, SourceRange range);
  Operand power(const Operand &base, const Operand &exponent, SourceRange range);
  Operand divisionOfInts(const Operand &lhs, const Operand &rhs, SourceRange range);

  // Convert.cpp
  DType defaultFloat() const { return kind == BodyKind::Kernel ? DType::Float32 : DType::Float64; }
  /// Returns the type on the host. Host floats all have 64 bits; launches narrow them to the kernel's argument type.
  const Type *onHost(const Type *type) {
    return kind == BodyKind::Op && type->isScalar() && isFloat(type->element) ? types.scalar(DType::Float64) : type;
  }
  /// Returns the common element type of two numbers; nothing, after a report, if a cast is needed.
  std::optional<DType> common(const Operand &lhs, const Operand &rhs, std::string_view what, SourceRange range);
  std::optional<std::vector<int64_t>> broadcastShapes(const Type *lhs, const Type *rhs, std::string_view what,
                                                      SourceRange range);
  /// Returns a number as a node of element type `element` with its own shape. Constants adapt and Int widens. The
  /// caller has checked that nothing narrows.
  Node *numberAs(const Operand &operand, DType element);
  /// Returns a number as a node of element type `element` and shape `shape` (empty: scalar).
  Node *numberAs(const Operand &operand, DType element, const std::vector<int64_t> &shape);
  Node *broadcastTo(Node *node, const std::vector<int64_t> &shape);
  /// Reports that `what` does not support these operands. For tensors in an op, it names the alternative.
  void reportNoNumbers(const Operand &lhs, const Operand &rhs, std::string_view what, SourceRange range);
  /// Converts both numbers to their common type and shape, for elementwise operators. Returns false after an error.
  bool unify(const Operand &lhs, const Operand &rhs, std::string_view what, SourceRange range, Node *&a, Node *&b);
  /// Returns any operand as a node of its own type. Constants get the type of `var x = ...`.
  Node *materialise(const Operand &operand);
  /// Converts the operand to `type` without narrowing. Returns null after reporting an error about `what`.
  Node *convert(const Operand &operand, const Type *type, std::string_view what);
  bool fitsConstant(const Value &value, DType element);
  Node *condition(const Operand &operand, SourceRange range);
  static bool isOneElement(const Operand &operand);
  static bool isEmptyList(const Operand &operand);
  void reportNoCondition(const Operand &operand, SourceRange range);
  Node *intNode(const Operand &operand, std::string_view what);
  Node *listNode(const Operand &operand, std::string_view what);

  // CheckCall.cpp
  Operand checkCall(const ast::CallExpr &expr);
  /// `self` is the value of a method's first parameter.
  Operand callFunction(const FunctionEntity &function, CallSite &site, const Operand *self = nullptr);
  Operand callOp(const FunctionEntity &function, CallSite &site);
  Operand inlineCall(const FunctionEntity &function, const std::vector<Value> &comptimeArguments,
                     std::vector<Operand> arguments, SourceRange range);
  /// Binds the given arguments to `names`, by name or in order; null for absent arguments. Returns nothing after
  /// reporting an unknown, extra or repeated argument. `except` has another use.
  std::optional<std::vector<const ast::Expr *>> bindByName(const ast::Identifier &callee,
                                                           const std::vector<ast::Argument> &given,
                                                           const std::vector<std::string_view> &names,
                                                           const ast::Argument *except = nullptr);
  /// `operands` are the arguments, whose types may give comptime parameters.
  bool bindComptime(const FunctionEntity &function, const std::vector<ast::Argument> *given,
                    const std::vector<Operand> &operands, std::vector<Value> &values, SourceRange range);
  /// Binds the parameters from number `first` on.
  bool bindArguments(const FunctionEntity &function, const std::vector<ast::Argument> &given, size_t first,
                     std::vector<const ast::Expr *> &bound, SourceRange range);
  std::optional<Operand> passArgument(const ast::Parameter &parameter, const Operand &operand, const TypeSpec &spec);
  Operand checkMethod(CallSite &site);
  Operand onlyIn(BodyKind wanted, const CallSite &site);
  /// Returns whether the call has arguments in brackets. If it has none, reports `argument` as missing.
  bool hasBrackets(const CallSite &site, std::string_view argument);
  Operand notSupported(SourceRange range, std::string_view what, std::string_view instead);
  void reportUnknownName(const std::string &name, SourceRange range);

  // CheckStruct.cpp
  /// Returns a struct's value from its members: comptime parameters, then fields.
  Operand structOf(const StructEntity &structure, std::vector<Operand> members, SourceRange range);
  Operand construct(const StructEntity &structure, CallSite &site);
  std::optional<std::vector<Operand>> comptimeMembers(const StructEntity &structure, CallSite &site);
  std::optional<Operand> comptimeMember(const StructEntity &structure, size_t number, const std::string &kind,
                                        const ast::Expr &expr);
  /// Returns the comptime parameters of a value of a struct as names of its module.
  BodyScope scopeOf(const StructEntity &structure, const std::vector<Operand> &members);
  /// Returns the requirement of a field. On the host tensors have no dtype and rank.
  TypeSpec fieldSpec(const ast::Parameter &field, const Environment &names);
  Operand memberOf(const Operand &base, const ast::AttributeExpr &expr);
  /// Calls the method of a struct, or the function in a field. Nothing if there is none.
  std::optional<Operand> callMember(CallSite &site);
  void reportUnknownMember(const Operand &base, const std::string &name, SourceRange range);
  bool isOfStruct(const Operand &operand, const TypeSpec &spec) const;
  static bool isWritable(const Operand &operand);
  /// Returns the fields of a struct, those of structs in it among them.
  static void leavesOf(const Operand &value, std::vector<Operand> &leaves);
  /// Returns a struct like `shape` with other fields, taken from `leaves` in order from number `next` on.
  Operand withLeaves(const Operand &shape, const std::vector<Operand> &leaves, size_t &next);
  Operand kernelArgument(const Type *type, const ast::Parameter &parameter, const std::string &name);
  /// Returns the comptime parameter `name` of a function that the type of an argument gives: `N` of `w: Window[N]`.
  static std::optional<Operand> inferred(const FunctionEntity &function, const std::string &name,
                                         const std::vector<Operand> &arguments);
  std::optional<Binding> newStructVariable(const ast::Identifier &name, const Operand &value);
  const Binding *variableField(const ast::AttributeExpr &target, bool &isWrong);
  void assignStruct(const Binding &variable, const std::string &name, const Operand &value, SourceRange range);
  void returnStruct(const Operand &value, SourceRange range);

  // CheckElementwise.cpp, CheckTile.cpp, CheckParts.cpp, CheckReduce.cpp, CheckMemory.cpp,
  // CheckScratch.cpp, CheckTensor.cpp, CheckList.cpp: built-in functions and methods
#define BUILTIN(name, handler) Operand handler(CallSite &site);
#define HOST(name, handler) Operand handler(CallSite &site);
#define METHOD(base, name, handler) Operand handler(CallSite &site);
#include "compiler/check/Builtins.def"
  Operand floatFunction(Kind nodeKind, CallSite &site);
  Operand castTo(const Operand &value, DType element, SourceRange range);
  Operand reduction(Kind nodeKind, CallSite &site);
  Operand byFunction(Kind nodeKind, CallSite &site);
  const FunctionEntity *combiningFunction(const ast::Expr &expr);
  std::optional<std::vector<Node *>> tilesOfOneShape(const std::vector<const ast::Expr *> &exprs);
  bool initialValues(const ast::Expr &expr, const std::vector<Node *> &tiles, std::vector<Node *> &operands);
  /// Fills the region of a Combine or Scan node with the combination of two values. Returns false after an error.
  bool combination(Node &node, const FunctionEntity &entity, const std::vector<Node *> &tiles, SourceRange range);
  /// Reads `precision` of a product of these elements. Returns nothing after an error.
  std::optional<bool> isTf32(const ast::Expr &precision, DType element);
  std::optional<int64_t> axisOf(const ast::Expr &expr, const Type *tile);
  /// Returns the type that `[T](extents...)` names; null after an error.
  const Type *namedTile(CallSite &site);
  std::optional<std::vector<int64_t>> extents(const std::vector<const ast::Expr *> &exprs, SourceRange range);
  /// The elements of one dimension that an index of a tile selects.
  struct Selection {
    int64_t offset = 0, step = 1, size = 0;
    bool isDropped = false; ///< An integer index removes the dimension.
  };
  Operand indexTile(const Operand &tile, const ast::IndexExpr &expr);
  std::optional<Selection> selection(const ast::Expr &index, int64_t extent);
  std::optional<std::vector<Selection>> selections(const Operand &tile, const ast::IndexExpr &expr);
  Node *extract(Node *tile, const std::vector<Selection> &dims, SourceRange range);
  Node *extractAlong(Node *tile, int64_t axis, Selection along, SourceRange range);
  /// Checks the arguments `(v, axis)` or `(v, count, axis)` of a function of a tile. Null after a report.
  Node *tileWithAxis(CallSite &site, std::string_view count, int64_t &number, int64_t &axis);
  /// Checks `(a, b, ..., axis=)`. Returns tiles of one element type and rank, none after a report.
  std::vector<Node *> tilesToJoin(CallSite &site, const ast::Expr *&axis);
  Operand join(CallSite &site, std::vector<Node *> parts, int64_t axis);
  /// A place in a view: the part that slices take, and the dimensions with an index.
  struct ViewPlace {
    Operand part;
    std::vector<int64_t> dims;
    std::vector<Node *> indices;
  };
  /// Returns nothing after an error.
  std::optional<ViewPlace> placeOf(const Operand &view, const ast::IndexExpr &expr);
  Operand indexView(const Operand &view, const ast::IndexExpr &expr);
  void assignOfThread(const Operand &view, const ViewPlace &place, const Operand &value, SourceRange range);
  void assignElement(const Operand &view, const ast::IndexExpr &index, const Operand &value);
  // CheckThread.cpp: kernels at thread level
  bool isOfThreads() const { return function.threads.exists(); }
  /// Reports a function of threads in a kernel of tiles, or in an op.
  Operand onlyOfThreads(const CallSite &site);
  Operand onlyOfWarps(const CallSite &site);
  /// Reports a function or method of tiles in a kernel at thread level.
  Operand belongsToTiles(SourceRange range, std::string_view name);
  Operand threadCoordinate(const ast::AttributeExpr &expr);
  bool takesNothing(CallSite &site);
  Operand barrierOf(CallSite &site, int64_t scope);
  Node *laneValue(const ast::Expr &expr);
  Operand shuffle(CallSite &site, int64_t shuffleKind, const char *what);
  Operand vote(CallSite &site, int64_t voteKind, DType answer);
  const Type *elementPlace(const ast::Expr &expr, std::vector<Node *> &operands);
  Operand indexTensor(const Operand &tensor, const ast::IndexExpr &expr);
  Operand indexList(const Operand &list, const ast::IndexExpr &expr);
  /// Returns the node of an extent, which of scratch memory is a constant.
  Node *extentOf(const Operand &view, int64_t dim, SourceRange range);
  Operand wholeOf(const Operand &scratch, SourceRange range);
  Operand blockOf(CallSite &site, bool isTile);
  Operand writeWindow(Kind nodeKind, CallSite &site);
  Operand writeValue(Kind nodeKind, const Operand &base, const Operand &value, std::string_view name,
                     SourceRange range);
  Operand writeIndexed(Kind nodeKind, CallSite &site);
  static bool isUpdatable(Kind nodeKind, DType element);
  Operand notUpdatable(CallSite &site, DType element);
  /// The arguments of an access to elements at tiles of indices. Null where absent.
  struct IndexedArguments {
    std::vector<const ast::Expr *> indices;
    const ast::Expr *value = nullptr, *expected = nullptr, *mask = nullptr, *fill = nullptr;
  };
  Operand elementValue(const ast::Expr &expr, DType wanted, std::string_view what);
  /// Checks a Gather, a Scatter or an atomic update. Without a value it is a Gather.
  Operand indexed(Kind nodeKind, CallSite &site, const IndexedArguments &given);
  Operand viewQuery(Kind nodeKind, const Operand &view, const ast::IndexExpr &expr);
  Operand tensorQuery(Kind nodeKind, const Operand &tensor, const ast::IndexExpr &expr);
  Operand tensorAttribute(const Operand &tensor, const ast::AttributeExpr &expr);
  bool isGridSize(const ast::Expr &expr) const;
  Operand gridCoordinate(const ast::AttributeExpr &expr, Kind nodeKind);
  Node *tensorNode(const Operand &operand, std::string_view what);
  /// Checks a method that takes a shape, as extents or as a list, and returns a tensor of that shape.
  Operand withShape(Kind kind, CallSite &site);
  Node *shapeArgument(const std::vector<const ast::Expr *> &exprs, std::string_view what, SourceRange range);
  Operand dimensionMethod(Kind nodeKind, CallSite &site, int rank);
  /// Allocates a dense tensor of these extents. `dtype`, which is required, becomes the checked dtype.
  Operand newTensor(CallSite &site, const std::vector<const ast::Expr *> &extents, const ast::Expr *dtypeExpr,
                    Operand &dtype);
  /// The same with the shape of another tensor, and with its dtype if none is given.
  Operand newTensorLike(CallSite &site, const ast::Expr &like, const ast::Expr *dtypeExpr, Operand &dtype);
  Operand callPrelude(const std::string &name, std::vector<Operand> arguments, SourceRange range);
  Operand fillValue(const ast::Expr &expr);
  Operand filled(const Operand &tensor, Operand value, const Operand &dtype, SourceRange range);

  // CheckStatement.cpp, CheckIf.cpp, CheckLoop.cpp, CheckLaunch.cpp
  Flow checkBlock(const ast::Block &block);
  Flow checkFrom(const ast::Block &block, size_t first);
  Flow checkStatement(const ast::Stmt &stmt);
  void checkComptimeConst(const ast::ComptimeConstStmt &stmt);
  void checkComptimeAssert(const ast::ComptimeAssertStmt &stmt);
  Flow checkReturn(const ast::ReturnStmt &stmt);
  void returnValue(const Operand &value, SourceRange range);
  bool meetsResultSpec(const Operand &value) const;
  void returnDirectly(std::vector<Operand> items, const std::vector<const Type *> &wanted, SourceRange range);
  void returnByVariables(const std::vector<Operand> &items, const std::vector<const Type *> &wanted, SourceRange range);
  Flow checkRaise(const ast::RaiseStmt &stmt);
  /// Checks an `if` and the statements after it. They move into a branch if the other branch never continues.
  Flow checkIf(const ast::IfStmt &stmt, size_t branch, const ast::Block &block, size_t next, bool &tookRest);
  Flow checkComptimeIf(const ast::IfStmt &stmt);
  Flow checkFor(const ast::ForStmt &stmt);
  Flow checkComptimeFor(const ast::ForStmt &stmt);
  Flow checkForRange(const ast::ForStmt &stmt, const ast::CallExpr &call);
  std::optional<Range> checkRange(const ast::ForStmt &stmt, const ast::CallExpr &call);
  std::optional<std::vector<Node *>> tileCounts(const ast::ForStmt &stmt, const ast::CallExpr &call);
  Flow checkForTiles(const ast::ForStmt &stmt, const ast::CallExpr &call);
  Flow checkWhile(const ast::WhileStmt &stmt);
  Flow loopAsWhile(Loop &loop, const std::function<Node *()> &condition, const std::function<Flow()> &body,
                   SourceRange range);
  Flow checkLoopExit(SourceRange range, bool isBreak);
  void checkLaunch(const ast::LaunchStmt &stmt);
  bool launchParameters(const ast::LaunchStmt &stmt, const FunctionEntity &entity, LaunchParameters &parameters);
  bool launchArguments(const ast::LaunchStmt &stmt, const FunctionEntity &entity, const ast::Argument *grid,
                       const LaunchParameters &parameters, std::vector<Node *> &operands, hir::LaunchInfo &launch);
  bool launchArgument(const Operand &operand, SourceRange range, const FunctionEntity &entity, size_t number,
                      const LaunchParameters &parameters, std::vector<Node *> &operands, hir::LaunchInfo &launch);
  bool launchStructs(const ast::LaunchStmt &stmt, const FunctionEntity &entity, const ast::Argument *grid,
                     LaunchParameters &parameters);
  std::vector<const ast::Expr *> boundOfLaunch(const ast::LaunchStmt &stmt, const FunctionEntity &entity,
                                               const ast::Argument *grid);
  static Operand memberOfLaunch(const StructParameter &parameter, const std::vector<Operand> &structs);
  bool haveWantedParameters(const FunctionEntity &entity, const LaunchParameters &parameters);
  bool launchGrid(const ast::LaunchStmt &stmt, const FunctionEntity &entity, const ast::Expr *grid,
                  std::vector<Node *> &operands, hir::LaunchInfo &launch);
  void proveInstance(const ast::LaunchStmt &stmt, const FunctionEntity &entity, const LaunchParameters &parameters);
  bool requestedValues(const ast::LaunchStmt &stmt, const FunctionEntity &entity, const LaunchParameters &parameters,
                       size_t number, std::vector<Value> &values);
  bool requestedDTypes(const ast::LaunchStmt &stmt, const FunctionEntity &entity, Node *node, size_t number,
                       std::vector<Value> &values);
  bool requestedInts(const FunctionEntity &entity, SourceRange range, Node *node, size_t number, bool atLeast,
                     std::vector<Value> &values);
  void requireDType(Node *found, Node *expected, const std::string &argument, SourceRange range);
  Node *requiredDType(const KernelArgument &wanted, const KernelRecord &kernel, const LaunchParameters &parameters,
                      SourceRange range);
  void requireFit(const Operand &operand, Node *tensor, const KernelArgument &wanted, const KernelRecord &kernel,
                  const LaunchParameters &parameters, SourceRange range);

  // CheckVariable.cpp
  void declareTarget(const ast::Identifier &name, Operand operand);
  void declare(const ast::Identifier &name, Binding binding);
  /// Returns the items of a tuple, or of a sequence that is known while compiling.
  std::vector<Operand> itemsOf(const Operand &value);
  bool hasItems(const Operand &value) const;
  std::optional<Binding> newVariable(const ast::Identifier &name, const Operand &value, const Type *annotated);
  void declareVariable(const ast::Identifier &name, const Operand &value, const Type *annotated);
  void checkVar(const ast::VarStmt &stmt);
  Operand valueOf(const Binding &variable, SourceRange range);
  std::optional<size_t> itemNumber(const ast::IndexExpr &expr, size_t count);
  const Binding *variableItem(const ast::Expr &target, bool &isWrong);
  bool isOfOtherTile(const ast::NameExpr &name);
  std::optional<std::vector<Operand>> assignedItems(const Operand &value, size_t count);
  void assign(const Binding &variable, const std::string &name, const Operand &value, SourceRange range);
  void assignIndex(const ast::IndexExpr &index, const Operand &value, SourceRange range);
  void assignName(const ast::NameExpr &name, const Operand &value, SourceRange range);
  void checkAssign(const ast::Expr &target, const Operand &value, SourceRange range);
  void checkAugmented(const ast::AugmentedStmt &stmt);

  // Exits.cpp: early returns, breaks and continues as flags
  ExitFlag newFlag();
  void exitHere(ExitFlag &flag);
  hir::Local *need(ExitFlag &flag);
  Flow guarded(const std::function<Flow()> &rest, SourceRange range);

  Checker &checker;
  TypeTable &types;
  DiagnosticEngine &diags;
  const BodyKind kind;
  hir::Function &function;
  hir::Block *block = nullptr;
  std::vector<std::unique_ptr<hir::Block>> unplaced; ///< blocks outside the tree, to which flags of exits refer
  Frame *frame = nullptr;
  BodyScope *scope = nullptr;
  ValueRanges valueRanges;
  unsigned depth = 0;
  unsigned statementCount = 0; ///< statements of an op, counted as often as they are repeated
  unsigned tileDepth = 0;
  unsigned combineDepth = 0;
  std::string opName; ///< for messages of run-time checks
};

} // namespace kpkg::compiler
