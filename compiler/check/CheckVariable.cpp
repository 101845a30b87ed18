// Checks declarations of variables and assignments.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Frame.h"

namespace kpkg::compiler {

void Elaborator::declareTarget(const ast::Identifier &name, Operand operand) {
  observe(name.range, operand);
  nameValue(name.range, operand.node);
  Binding binding;
  binding.operand = std::move(operand);
  declare(name, std::move(binding));
}

void Elaborator::declare(const ast::Identifier &name, Binding binding) {
  if (scope->isDeclaredHere(name.text))
    diags.report(diag::Redefined, name.range, name.text)
        .note(diag::DeclaredHere, scope->find(name.text)->declared, name.text);
  binding.declared = name.range;
  binding.tileDepth = tileDepth;
  scope->declare(name.text, std::move(binding));
}

std::vector<Operand> Elaborator::itemsOf(const Operand &value) {
  std::vector<Operand> items = value.items;
  if (value.constant && value.constant->isSequence())
    for (const Value &item : value.constant->asSequence().items)
      items.push_back(constant(item, value.range));
  return items;
}

/// Returns whether a variable with this value has a variable for each item. An op's lists of Int are values instead.
bool Elaborator::hasItems(const Operand &value) const {
  return value.isTuple() || (value.constant && value.constant->isSequence() &&
                             (kind == BodyKind::Kernel || !value.constant->asSequence().isList));
}

/// Creates a variable with a first value. Returns nothing after an error.
std::optional<Binding> Elaborator::newVariable(const ast::Identifier &name, const Operand &value,
                                               const Type *annotated) {
  if (value.isStruct() && !annotated)
    return newStructVariable(name, value);
  Binding binding;
  if (hasItems(value) && !annotated) {
    binding.kind = Binding::Tuple;
    for (const Operand &item : itemsOf(value)) {
      std::optional<Binding> one = newVariable(name, item, nullptr);
      if (!one)
        return std::nullopt;
      binding.items.push_back(std::move(*one));
    }
    return binding;
  }
  if (!annotated && (value.type->kind == TypeKind::View || value.type->kind == TypeKind::Window)) {
    diags.report(diag::NotAssignable, name.range, "`" + name.text + "`",
                 "it stands for " + value.type->str() + ", which a variable cannot hold");
    return std::nullopt;
  }
  Node *node = annotated ? convert(value, annotated, "`" + name.text + "`") : materialise(value);
  if (!node)
    return std::nullopt;
  binding.kind = Binding::Variable;
  binding.local = newLocal(name.text, annotated && annotated->kind == TypeKind::Optional ? annotated : node->type);
  setLocal(binding.local, node, name.range);
  return binding;
}

void Elaborator::declareVariable(const ast::Identifier &name, const Operand &value, const Type *annotated) {
  if (value.isError())
    return declareTarget(name, value);
  if (value.type->isNone() && !annotated && kind == BodyKind::Kernel) {
    diags.report(diag::TypeMismatch, value.range, "this value", "None", "a value");
    return declareTarget(name, error(name.range));
  }
  bool isPlace = value.type->kind == TypeKind::View || value.type->kind == TypeKind::Window;
  if (frame->reassigned.count(name.text) &&
      !(isPlace && !annotated)) { // elements of a place are assigned, not the name
    std::optional<Binding> variable = newVariable(name, value, annotated);
    if (!variable)
      return declareTarget(name, error(name.range));
    Operand first = value;
    first.type = annotated ? annotated : value.type;
    first.constant.reset(); // later values differ
    observe(name.range, first);
    return declare(name, std::move(*variable));
  }
  if ((isPlace || hasItems(value) || value.isStruct()) && !annotated)
    return declareTarget(name, value);
  Node *node = annotated ? convert(value, annotated, "`" + name.text + "`") : materialise(value);
  declareTarget(name, node ? runTime(node) : error(name.range));
}

void Elaborator::checkVar(const ast::VarStmt &stmt) {
  const Type *annotated = nullptr;
  TypeSpec ofStruct;
  bool isWrong = false;
  if (stmt.type) {
    TypeSpec spec = checker.resolveType(*stmt.type, *scope);
    isWrong = spec.kind == TypeSpec::Wrong;
    if (spec.kind == TypeSpec::Exact)
      annotated = onHost(spec.exact);
    else if (spec.kind == TypeSpec::Struct)
      ofStruct = std::move(spec);
  }
  if (!stmt.value) {
    notSupported(stmt.range, "`var` without a value", "give it one: `var x: T = ...`");
    return declareTarget(stmt.names[0], error(stmt.range));
  }
  Operand value = check(*stmt.value);
  if (ofStruct.kind == TypeSpec::Struct && !value.isError() && !isOfStruct(value, ofStruct)) {
    diags.report(diag::TypeMismatch, value.range, "`" + stmt.names[0].text + "`", describe(value), ofStruct.str());
    isWrong = true;
  }
  if (stmt.names.size() == 1)
    return declareVariable(stmt.names[0], isWrong ? error(stmt.range) : value, annotated);
  std::vector<Operand> items = itemsOf(value);
  if (!value.isError() && items.size() != stmt.names.size()) {
    diags.report(diag::WrongCount, stmt.value->range, static_cast<int64_t>(items.size()),
                 static_cast<int64_t>(stmt.names.size()));
    value = error(stmt.range);
  }
  for (size_t i = 0; i < stmt.names.size(); ++i)
    declareVariable(stmt.names[i], value.isError() ? value : items[i], nullptr);
}

/// Reads a variable.
Operand Elaborator::valueOf(const Binding &variable, SourceRange range) {
  if (variable.kind == Binding::Variable)
    return runTime(getLocal(variable.local, range));
  if (variable.kind == Binding::Alias) {
    Operand operand = variable.operand;
    operand.range = range;
    return operand;
  }
  std::vector<Operand> items;
  for (const Binding &item : variable.items)
    items.push_back(valueOf(item, range));
  if (variable.kind == Binding::Struct)
    return structOf(*variable.structure, std::move(items), range);
  return tuple(std::move(items), range);
}

/// Returns which of `count` items an index means. Returns nothing after an error.
std::optional<size_t> Elaborator::itemNumber(const ast::IndexExpr &expr, size_t count) {
  if (expr.arguments.size() != 1 || expr.arguments[0].name) {
    diags.report(diag::RankMismatch, expr.range, "the index", static_cast<int64_t>(expr.arguments.size()), 1);
    return std::nullopt;
  }
  std::optional<int64_t> at = comptimeInt(*expr.arguments[0].value);
  if (!at)
    return std::nullopt;
  auto size = static_cast<int64_t>(count);
  int64_t index = *at < 0 ? *at + size : *at;
  if (index >= 0 && index < size)
    return static_cast<size_t>(index);
  diags.report(diag::ComptimeError, expr.range, fmt::format("index {} is outside of {} items", *at, size));
  return std::nullopt;
}

/// Returns the item of a tuple, or the field of a struct, of variables that `target` names: `acc[i]`, `w.stride`. Null
/// if it names something else, or after an error, which sets `isWrong`.
const Binding *Elaborator::variableItem(const ast::Expr &target, bool &isWrong) {
  if (auto *attribute = target.as<ast::AttributeExpr>())
    return variableField(*attribute, isWrong);
  auto *index = target.as<ast::IndexExpr>();
  if (!index)
    return nullptr;
  auto *name = index->base->as<ast::NameExpr>();
  const Binding *base = name ? scope->find(name->name) : variableItem(*index->base, isWrong);
  if (!base || base->kind != Binding::Tuple)
    return nullptr;
  std::optional<size_t> number = itemNumber(*index, base->items.size());
  isWrong |= !number;
  return number ? &base->items[*number] : nullptr;
}

/// Reads all values of a tuple before its first one is written: `a, b = b, a`.
std::optional<std::vector<Operand>> Elaborator::assignedItems(const Operand &value, size_t count) {
  if (value.isError())
    return std::nullopt;
  std::vector<Operand> items = itemsOf(value);
  if (items.size() != count) {
    diags.report(diag::WrongCount, value.range, static_cast<int64_t>(items.size()), static_cast<int64_t>(count));
    return std::nullopt;
  }
  return items;
}

/// Returns whether there is an `Optional` of the type.
static bool canHaveOptional(const Type &type) {
  return type.isTensor() || type.isScalar(DType::Float64) || type.kind == TypeKind::DType;
}

void Elaborator::assign(const Binding &variable, const std::string &name, const Operand &value, SourceRange range) {
  if (value.isError())
    return;
  if (variable.kind == Binding::Tuple) {
    if (std::optional<std::vector<Operand>> items = assignedItems(value, variable.items.size()))
      for (size_t i = 0; i < items->size(); ++i)
        assign(variable.items[i], name, (*items)[i], range);
    return;
  }
  if (variable.kind == Binding::Struct)
    return assignStruct(variable, name, value, range);
  const Type *type = variable.local->type;
  bool isNumber = type->isTile() && value.type->isNumeric() && (value.type->isScalar() || value.type == type);
  bool adapts = isNumber && (value.constant || value.type->element == type->element);
  auto mayBeNone = [&] {
    if (value.type->kind != TypeKind::Optional)
      return value.isNone();
    Node *test = emit(Kind::IsNone, types.boolean(), value.range, {value.node});
    return valueRanges.truth(test) != false;
  };
  if (kind == BodyKind::Op && canHaveOptional(*type) && mayBeNone()) {
    diags.report(diag::TypeMismatch, value.range, "`" + name + "`", describe(value), type->str())
        .note(diag::OptionalVariable, variable.declared, name, type->str());
    return;
  }
  Node *node = adapts ? numberAs(value, type->element, type->shape) : convert(value, type, "`" + name + "`");
  if (node)
    setLocal(variable.local, node, range);
}

void Elaborator::assignIndex(const ast::IndexExpr &index, const Operand &value, SourceRange range) {
  Operand base = check(*index.base);
  if (!base.isError() && base.type->kind == TypeKind::View)
    return assignElement(base, index, value);
  bool isList = !base.isError() && base.type->kind == TypeKind::List && index.arguments.size() == 1;
  if (isList && !value.isError()) {
    Node *at = intNode(check(*index.arguments[0].value), "the index");
    Node *item = intNode(value, "the item");
    Operand changed = result(Kind::ListSet, types.list, range, {materialise(base), at, item});
    return checkAssign(*index.base, changed, range);
  }
  if (!base.isError())
    diags.report(diag::NotAssignable, index.range, "an index",
                 base.isTuple() ? "only items of tuples that a `var` declares are assigned"
                 : base.type->kind == TypeKind::TensorList
                     ? "a list of tensors only grows, by `.append`; elements of its tensors are written by kernels"
                     : "only items of lists and tuples are assigned; elements of tensors are written by kernels");
}

void Elaborator::assignName(const ast::NameExpr &name, const Operand &value, SourceRange range) {
  const Binding *binding = scope->find(name.name);
  if (!binding) {
    Meaning meaning = scope->lookup(name.name, name.range);
    if (meaning.kind == Meaning::Unknown) {
      diags.report(diag::UndeclaredVariable, name.range, name.name).fix(name.range.atBegin(), "var ");
      // Declares it as poison, so that its uses are not reported.
      Binding poison;
      poison.operand = error(name.range);
      scope->declareOutside(name.name, std::move(poison));
      return;
    }
    diags.report(diag::NotAssignable, name.range, "`" + name.name + "`", "it is not a variable");
    return;
  }
  if (binding->kind == Binding::Alias) {
    const Type *type = binding->operand.type;
    bool isPlace = type->kind == TypeKind::View || type->kind == TypeKind::Window;
    if (!type->isError())
      diags
          .report(diag::NotAssignable, name.range, "`" + name.name + "`",
                  isPlace ? "it stands for " + type->str() + ", which a variable cannot hold"
                          : fmt::format("parameters and comptime names keep their values; assign a copy, `var {} = {}`",
                                        name.name == "copy" ? "other" : "copy", name.name))
          .note(diag::DeclaredHere, binding->declared, name.name);
    return;
  }
  if (!isOfOtherTile(name))
    assign(*binding, name.name, value, range);
}

/// Reports a variable from outside of the loop over tiles, which its iterations cannot share.
bool Elaborator::isOfOtherTile(const ast::NameExpr &name) {
  const Binding *binding = scope->find(name.name);
  if (!binding || binding->kind == Binding::Alias || binding->tileDepth >= tileDepth)
    return false;
  diags.report(diag::AssignedAcrossTiles, name.range, name.name).note(diag::DeclaredHere, binding->declared, name.name);
  return true;
}

static const ast::NameExpr *rootOf(const ast::Expr &target) {
  if (auto *attribute = target.as<ast::AttributeExpr>())
    return rootOf(*attribute->base);
  auto *index = target.as<ast::IndexExpr>();
  return index ? rootOf(*index->base) : target.as<ast::NameExpr>();
}

void Elaborator::checkAssign(const ast::Expr &target, const Operand &value, SourceRange range) {
  if (auto *tuple = target.as<ast::TupleExpr>()) {
    std::optional<std::vector<Operand>> items = assignedItems(value, tuple->elements.size());
    if (!items)
      return;
    for (Operand &item : *items)
      if (!item.isError() && !item.node && !hasItems(item)) {
        Node *node = materialise(item);
        item = node ? runTime(node) : error(item.range);
      }
    for (size_t i = 0; i < items->size(); ++i)
      checkAssign(*tuple->elements[i], (*items)[i], range);
    return;
  }
  bool isWrong = false;
  if (const Binding *item = variableItem(target, isWrong)) {
    const ast::NameExpr *name = rootOf(target);
    if (!isOfOtherTile(*name))
      assign(*item, target.is<ast::AttributeExpr>() ? pathText(target) : name->name, value, range);
    return;
  }
  if (isWrong)
    return;
  if (auto *index = target.as<ast::IndexExpr>())
    return assignIndex(*index, value, range);
  if (auto *name = target.as<ast::NameExpr>())
    return assignName(*name, value, range);
  auto *attribute = target.as<ast::AttributeExpr>();
  Operand base = attribute ? check(*attribute->base) : error(target.range);
  if (base.isError())
    return;
  if (!base.isStruct()) {
    diags.report(diag::NotAssignable, target.range, "an attribute", "only fields of structs are assigned");
    return;
  }
  const ast::NameExpr *name = rootOf(target);
  diags.report(diag::NotAssignable, target.range, name ? "`" + pathText(target) + "`" : "a field",
               name ? fmt::format("parameters and comptime names keep their values; assign a copy, `var {} = {}`",
                                  name->name == "copy" ? "other" : "copy", name->name)
                    : "it belongs to no variable");
}

void Elaborator::checkAugmented(const ast::AugmentedStmt &stmt) {
  if (!stmt.target->is<ast::NameExpr>() && !stmt.target->is<ast::IndexExpr>() &&
      !stmt.target->is<ast::AttributeExpr>()) {
    diags.report(diag::NotAssignable, stmt.target->range, "this", "only variables are assigned");
    return;
  }
  auto *name = stmt.target->as<ast::NameExpr>();
  bool isUndeclared =
      name && !scope->find(name->name) && scope->lookup(name->name, name->range).kind == Meaning::Unknown;
  Operand lhs = isUndeclared ? error(stmt.target->range) : check(*stmt.target); // checkAssign() reports it
  Operand rhs = check(*stmt.value);
  if (lhs.isError() && !isUndeclared)
    return; // The target would be reported again.
  Operand value = binary(stmt.op, lhs, rhs, stmt.opRange);
  value.range = stmt.range;
  checkAssign(*stmt.target, value, stmt.range);
}

} // namespace kpkg::compiler
