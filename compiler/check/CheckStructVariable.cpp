// Checks variables that hold structs, with a variable for each field, and structs that functions return.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Frame.h"

namespace kpkg::compiler {

/// Creates a variable for each field that one can hold. Others, such as memory, keep their value.
std::optional<Binding> Elaborator::newStructVariable(const ast::Identifier &name, const Operand &value) {
  const StructEntity &structure = *value.type->structure;
  Binding binding;
  binding.kind = Binding::Struct;
  binding.structure = &structure;
  BodyScope names = scopeOf(structure, value.items);
  for (size_t i = 0; i < value.items.size(); ++i) {
    const Operand &item = value.items[i];
    bool isHeld = i >= structure.parameterCount() && item.type->kind != TypeKind::View &&
                  item.type->kind != TypeKind::Window && item.type->kind != TypeKind::Function &&
                  (kind == BodyKind::Op || item.type->isNumeric() || hasItems(item) || item.isStruct());
    if (!isHeld) {
      Binding &kept = binding.items.emplace_back();
      kept.operand = item;
      continue;
    }
    TypeSpec spec = fieldSpec(structure.syntax->fields[i - structure.parameterCount()], names);
    bool isExact = spec.kind == TypeSpec::Exact && spec.exact->kind != TypeKind::Tuple;
    auto variable = newVariable({name.text + "." + structure.member(i).text, name.range}, item,
                                isExact ? onHost(spec.exact) : nullptr);
    if (!variable)
      return std::nullopt;
    binding.items.push_back(std::move(*variable));
  }
  return binding;
}

/// Returns the field of a struct of variables that `target` names: `w.stride`. Null if it names something else, or
/// after an error, which sets `isWrong`.
const Binding *Elaborator::variableField(const ast::AttributeExpr &target, bool &isWrong) {
  auto *name = target.base->as<ast::NameExpr>();
  const Binding *base = name ? scope->find(name->name) : variableItem(*target.base, isWrong);
  if (!base || base->kind != Binding::Struct)
    return nullptr;
  if (checker.observer) // an assignment reads nothing, so that no check of an expression tells it
    observe(target.base->range, valueOf(*base, target.base->range));
  const StructEntity &structure = *base->structure;
  size_t number = structure.find(target.attribute.text);
  isWrong = true;
  if (number >= base->items.size()) {
    reportUnknownMember(valueOf(*base, target.base->range), target.attribute.text, target.attribute.range);
    return nullptr;
  }
  const Binding &field = base->items[number];
  if (field.kind != Binding::Alias) {
    isWrong = false;
    return &field;
  }
  diags
      .report(diag::NotAssignable, target.range, "`" + pathText(target) + "`",
              number < structure.parameterCount()
                  ? "it is a comptime parameter"
                  : "it stands for " + field.operand.type->str() + ", which a variable cannot hold")
      .note(diag::DeclaredHere, structure.member(number).range, structure.member(number).text);
  return nullptr;
}

void Elaborator::assignStruct(const Binding &variable, const std::string &name, const Operand &value,
                              SourceRange range) {
  const StructEntity &structure = *variable.structure;
  bool fits = value.isStruct() && value.type->structure == &structure;
  for (size_t i = 0; i < variable.items.size() && fits; ++i) {
    const Binding &item = variable.items[i];
    const Operand &given = value.items[i];
    bool isSame = item.kind != Binding::Alias ||
                  (given.constant ? item.operand.constant == given.constant : given.node == item.operand.node);
    if (isSame)
      continue;
    fits = i >= structure.parameterCount(); // other parameters are another type
    if (fits) {
      diags.report(diag::NotAssignable, range, "`" + name + "." + structure.member(i).text + "`",
                   "it stands for " + given.type->str() + ", which a variable cannot hold");
      return;
    }
  }
  if (!fits) {
    diags.report(diag::TypeMismatch, value.range, "`" + name + "`", describe(value),
                 valueOf(variable, range).type->str());
    return;
  }
  for (size_t i = 0; i < variable.items.size(); ++i)
    if (variable.items[i].kind != Binding::Alias)
      assign(variable.items[i], name + "." + structure.member(i).text, value.items[i], range);
}

/// Returns a struct from one of several places, by a variable for each of its fields.
void Elaborator::returnStruct(const Operand &value, SourceRange range) {
  if (!frame->sawReturn && block == frame->body) {
    frame->direct = value;
    return;
  }
  const Operand first = frame->structShape.value_or(value);
  if (first.type->structure != value.type->structure || first.type->parameters != value.type->parameters) {
    diags.report(diag::TypeMismatch, value.range, "the result", describe(value), describe(first));
    return;
  }
  std::vector<Operand> leaves;
  leavesOf(value, leaves);
  std::vector<const Type *> wanted;
  for (const Operand &leaf : leaves)
    wanted.push_back(leaf.isNone() ? types.optionalTensor : nullptr);
  frame->structShape = first;
  returnByVariables(leaves, wanted, range);
}

} // namespace kpkg::compiler
