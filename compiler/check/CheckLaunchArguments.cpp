// Checks the arguments of launches: tensors, numbers, and structs of them, whose fields are arguments of their own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Launch.h"

namespace kpkg::compiler {

/// Emits a run-time check that two dtypes are equal, unless that is proven.
void Elaborator::requireDType(Node *found, Node *expected, const std::string &argument, SourceRange range) {
  if (valueRanges.sameValue(found, expected))
    return;
  Node *same = emit(Kind::DTypeEqual, types.boolean(), range, {found, expected});
  Node *differs = emit(Kind::Not, types.boolean(), range, {same});
  Node *test = emit(Kind::If, types.none, range, {differs});
  test->regions.push_back(inBlock([&] {
    emit(Kind::Raise, types.none, range, {found, expected})->text = "`" + argument + "` has dtype {}, expected {}";
  }));
  test->regions.push_back(std::make_unique<hir::Block>());
}

bool Elaborator::launchArguments(const ast::LaunchStmt &stmt, const FunctionEntity &entity, const ast::Argument *grid,
                                 const LaunchParameters &parameters, std::vector<Node *> &operands,
                                 hir::LaunchInfo &launch) {
  const KernelRecord &kernel = checker.program.kernels()[entity.index];
  std::vector<const ast::Expr *> bound = boundOfLaunch(stmt, entity, grid);
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (!parameters.isGiven[i]) // any instance will do; CPU and GPU may have other values
      continue;
    operands.push_back(parameters.nodes[i]);
    launch.parameterNames.push_back(kernel.parameters[i].name);
    launch.parameterAtLeast.push_back(parameters.atLeast[i]);
  }
  bool failed = false;
  size_t number = 0; // of the argument among those of the kernel's code
  for (size_t i = 0; i < bound.size(); ++i) {
    Operand operand = parameters.structs[i].type ? parameters.structs[i] : check(*bound[i]);
    if (operand.isError())
      return false;
    std::vector<Operand> leaves;
    leavesOf(operand, leaves);
    if (!parameters.structs[i].type && operand.isStruct()) {
      diags.report(diag::TypeMismatch, operand.range, "argument `" + kernel.arguments[number].name + "`",
                   describe(operand), kernel.arguments[number].isView ? "Tensor" : "a number");
      return false;
    }
    for (const Operand &leaf : leaves)
      failed |= !launchArgument(leaf, bound[i]->range, entity, number++, parameters, operands, launch);
  }
  return !failed;
}

/// Passes one tensor or number to argument `number` of the kernel's code. Returns false after an error.
bool Elaborator::launchArgument(const Operand &operand, SourceRange range, const FunctionEntity &entity, size_t number,
                                const LaunchParameters &parameters, std::vector<Node *> &operands,
                                hir::LaunchInfo &launch) {
  const KernelRecord &kernel = checker.program.kernels()[entity.index];
  const KernelArgument &wanted = kernel.arguments[number];
  launch.argumentMut.push_back(wanted.isMut);
  if (!wanted.isView) {
    auto element = dtypeOfValueName(wanted.dtype);
    const Type *type = wanted.dtype == "bool"         ? types.boolean()
                       : element && isFloat(*element) ? types.scalar(DType::Float64)
                                                      : types.integer();
    if (!element) // Scalar[T]: any number
      type =
          operand.type->isScalar() && isFloat(operand.type->element) ? types.scalar(DType::Float64) : types.integer();
    operands.push_back(convert(operand, type, "argument `" + wanted.name + "`"));
    return operands.back() != nullptr;
  }
  if (operand.isNone() && wanted.isMut && !wanted.mayBeNone) {
    diags.report(diag::NoneForTensor, operand.range, wanted.name, entity.name())
        .note(diag::DeclaredHere, entity.syntax->signatureRange, entity.name());
    return false;
  }
  Node *tensor = convert(operand, types.optionalTensor, "argument `" + wanted.name + "`");
  if (!tensor)
    return false;
  operands.push_back(tensor);
  if (operand.isNone() || operand.type->isOptionalTensor())
    checker.noteOptional(entity.index, number);
  requireFit(operand, tensor, wanted, kernel, parameters, range);
  return true;
}

/// Returns the arguments of a launch whose names launchStructs() has checked.
std::vector<const ast::Expr *> Elaborator::boundOfLaunch(const ast::LaunchStmt &stmt, const FunctionEntity &entity,
                                                         const ast::Argument *grid) {
  std::vector<std::string_view> names;
  for (const ast::Parameter &parameter : entity.syntax->parameters)
    names.push_back(parameter.name.text);
  return bindByName({entity.name(), entity.syntax->signatureRange}, stmt.arguments, names, grid)
      .value_or(std::vector<const ast::Expr *>());
}

/// Checks the arguments that are structs, on whose types comptime parameters of the kernel depend.
bool Elaborator::launchStructs(const ast::LaunchStmt &stmt, const FunctionEntity &entity, const ast::Argument *grid,
                               LaunchParameters &parameters) {
  const auto &declared = entity.syntax->parameters;
  uint32_t errorsBefore = diags.errorCount();
  std::vector<const ast::Expr *> bound = boundOfLaunch(stmt, entity, grid);
  if (diags.errorCount() != errorsBefore)
    return false;
  parameters.structs.resize(declared.size());
  for (size_t i = 0; i < declared.size(); ++i) {
    if (!bound[i]) {
      diags.report(diag::MissingArgument, stmt.range, entity.name(), declared[i].name.text)
          .note(diag::DeclaredHere, entity.syntax->signatureRange, entity.name());
      return false;
    }
    const StructEntity *structure = Checker::structNamedBy(*declared[i].type, *entity.module);
    if (!structure)
      continue;
    Operand operand = check(*bound[i]);
    if (operand.isError())
      return false;
    if (!operand.isStruct() || operand.type->structure != structure) {
      diags
          .report(diag::TypeMismatch, operand.range, "argument `" + declared[i].name.text + "`", describe(operand),
                  structure->name())
          .note(diag::DeclaredHere, declared[i].range, declared[i].name.text);
      return false;
    }
    parameters.structs[i] = std::move(operand);
  }
  return true;
}

/// Returns the comptime parameter that the struct of a launch has.
Operand Elaborator::memberOfLaunch(const StructParameter &parameter, const std::vector<Operand> &structs) {
  const Operand *member = &structs[parameter.argument];
  for (size_t number : parameter.members)
    member = &member->items[number];
  return *member;
}

/// Checks that structs have the comptime parameters that the kernel's brackets name: `Window[SIZE]`, `Window[3]`.
bool Elaborator::haveWantedParameters(const FunctionEntity &entity, const LaunchParameters &parameters) {
  const KernelRecord &kernel = checker.program.kernels()[entity.index];
  for (size_t i = 0; i < parameters.structs.size(); ++i) {
    const Operand &operand = parameters.structs[i];
    auto *index = operand.type ? entity.syntax->parameters[i].type->as<ast::IndexExpr>() : nullptr;
    if (!index)
      continue;
    BodyScope known(*entity.module);
    for (size_t p = 0; p < kernel.parameters.size(); ++p)
      if (parameters.values[p].constant) {
        Binding binding;
        binding.operand = parameters.values[p];
        known.declare(kernel.parameters[p].name, std::move(binding));
      }
    const StructEntity &structure = *operand.type->structure;
    for (size_t a = 0; a < index->arguments.size(); ++a) {
      const ast::Argument &argument = index->arguments[a];
      const Operand &member = operand.items[argument.name ? structure.find(argument.name.text) : a];
      auto *name = argument.value->as<ast::NameExpr>();
      size_t p = 0;
      while (p < kernel.parameters.size() && (!name || kernel.parameters[p].name != name->name))
        ++p;
      bool isSame = p < kernel.parameters.size() && parameters.nodes[p] && member.node &&
                    valueRanges.sameValue(parameters.nodes[p], member.node);
      std::optional<Value> wanted;
      if (!isSame && member.constant)
        wanted = p < kernel.parameters.size() ? parameters.values[p].constant
                                              : checker.evaluator.evaluate(*argument.value, known);
      if (isSame || (wanted && member.constant == wanted))
        continue;
      diags
          .report(diag::TypeMismatch, operand.range, "argument `" + entity.syntax->parameters[i].name.text + "`",
                  describe(operand),
                  wanted ? fmt::format("{}={}", argument.name ? argument.name.text : structure.member(a).text,
                                       wanted->str())
                         : "a struct whose comptime parameters are those of the launch")
          .note(diag::DeclaredHere, entity.syntax->parameters[i].range, entity.syntax->parameters[i].name.text);
      return false;
    }
  }
  return true;
}

/// Returns the dtype that the launch requires of an argument; null if the runtime checks it with the chosen instance. A
/// dtype that is computed from run-time dtypes is known for those of the instances alone, and others have a fallback.
Elaborator::Node *Elaborator::requiredDType(const KernelArgument &wanted, const KernelRecord &kernel,
                                            const LaunchParameters &parameters, SourceRange range) {
  Node *named = nullptr;
  for (size_t p = 0; p < kernel.parameters.size(); ++p) {
    if (wanted.isComputedDType && kernel.parameters[p].kind == "dtype" && !parameters.values[p].constant)
      return nullptr;
    if (kernel.parameters[p].name == wanted.dtype)
      named = parameters.nodes[p];
  }
  auto fixed = dtypeOfValueName(wanted.dtype);
  return !named && fixed ? emitConstant(Value(*fixed), types.dtype, range) : named;
}

/// Emits run-time checks of a tensor's rank and dtype, unless they are proven. An absent tensor is accepted.
void Elaborator::requireFit(const Operand &operand, Node *tensor, const KernelArgument &wanted,
                            const KernelRecord &kernel, const LaunchParameters &parameters, SourceRange range) {
  if (operand.isNone())
    return;
  auto checks = [&] {
    bool rankKnown = operand.type->isTensor() && operand.type->rank >= 0;
    if (rankKnown && operand.type->rank != wanted.rank)
      diags.report(diag::RankMismatch, range, "argument `" + wanted.name + "`",
                   static_cast<int64_t>(operand.type->rank), static_cast<int64_t>(wanted.rank));
    if (!rankKnown) {
      Node *rank = emit(Kind::Rank, types.integer(), range, {tensor});
      Node *expected = emitConstant(Value(int64_t(wanted.rank)), types.integer(), range);
      Node *test = emit(Kind::If, types.none, range, {emit(Kind::NotEqual, types.boolean(), range, {rank, expected})});
      test->regions.push_back(inBlock([&] {
        emit(Kind::Raise, types.none, range, {rank})->text =
            "`" + wanted.name + "` has rank {}, expected " + std::to_string(wanted.rank);
      }));
      test->regions.push_back(std::make_unique<hir::Block>());
    }
    if (Node *expected = requiredDType(wanted, kernel, parameters, range))
      requireDType(emit(Kind::DTypeOf, types.dtype, range, {tensor}), expected, wanted.name, range);
  };
  if (!operand.type->isOptionalTensor())
    return checks();
  Node *absent = emit(Kind::IsNone, types.boolean(), range, {tensor});
  Node *test = emit(Kind::If, types.none, range, {emit(Kind::Not, types.boolean(), range, {absent})});
  test->regions.push_back(inBlock(checks));
  test->regions.push_back(std::make_unique<hir::Block>());
}

} // namespace kpkg::compiler
