// Looks up the names of a function body, and what is known of them while compiling.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Elaborator.h"

namespace kpkg::compiler {

const Binding *BodyScope::find(const std::string &name) const {
  for (auto names = blocks.rbegin(); names != blocks.rend(); ++names)
    if (auto found = names->find(name); found != names->end())
      return &found->second;
  return nullptr;
}

void BodyScope::addNames(std::vector<std::string> &names) const {
  for (const auto &block : blocks)
    for (const auto &[name, binding] : block)
      names.push_back(name);
  module.addNames(names);
}

/// Returns what is known of a struct's value while compiling.
static Value knownMembers(const StructEntity &structure, std::vector<std::optional<Value>> members) {
  return Value::structure({&structure, std::move(members)});
}

static std::optional<Value> comptimePart(const Operand &operand) {
  if (!operand.isStruct())
    return operand.constant;
  std::vector<std::optional<Value>> members;
  for (const Operand &member : operand.items)
    members.push_back(comptimePart(member));
  return knownMembers(*operand.type->structure, std::move(members));
}

static std::optional<Value> comptimePart(const Binding &binding) {
  if (binding.kind == Binding::Alias)
    return comptimePart(binding.operand);
  if (binding.kind != Binding::Struct)
    return std::nullopt;
  std::vector<std::optional<Value>> members;
  for (const Binding &member : binding.items)
    members.push_back(comptimePart(member));
  return knownMembers(*binding.structure, std::move(members));
}

Meaning BodyScope::lookup(const std::string &name, SourceRange range) const {
  const Binding *binding = find(name);
  if (!binding)
    return module.lookup(name, range);
  if (binding->kind == Binding::Alias && binding->operand.isError())
    return {Meaning::Reported, {}};
  std::optional<Value> value = comptimePart(*binding);
  return value ? Meaning{Meaning::Known, std::move(*value)} : Meaning{Meaning::RunTime, {}};
}

/// Returns the type of a name; null for a tuple or a struct of variables.
static const Type *typeOf(const Binding &binding) {
  if (binding.kind == Binding::Variable)
    return binding.local->type;
  return binding.kind == Binding::Alias ? binding.operand.type : nullptr;
}

std::string pathText(const ast::Expr &expr) {
  if (auto *name = expr.as<ast::NameExpr>())
    return name->name;
  auto *attribute = expr.as<ast::AttributeExpr>();
  return attribute ? pathText(*attribute->base) + "." + attribute->attribute.text : "this";
}

std::optional<Value> typeAttribute(const Type &tile, std::string_view name) {
  if (name == "dtype")
    return Value(tile.element);
  if (name == "rank")
    return Value(static_cast<int64_t>(tile.shape.size()));
  if (name != "shape")
    return std::nullopt;
  std::vector<Value> shape;
  for (int64_t extent : tile.shape)
    shape.emplace_back(extent);
  return Value::tuple(std::move(shape));
}

/// Returns an attribute of a value of this type, which may be null.
static Meaning attributeOf(const Type *type, std::string_view name) {
  auto value = type && type->isTile() ? typeAttribute(*type, name) : std::nullopt;
  return value ? Meaning{Meaning::Known, std::move(*value)} : Meaning{};
}

Meaning BodyScope::lookupMember(const std::string &base, const std::string &name, SourceRange range) const {
  if (const Binding *binding = find(base))
    return attributeOf(typeOf(*binding), name);
  if (find(base + "." + name)) // of a struct among the parameters of a kernel
    return lookup(base + "." + name, range);
  return module.lookupMember(base, name, range);
}

Meaning BodyScope::lookupAttribute(const ast::Expr &base, const std::string &name) const {
  std::string path = pathText(base) + "." + name;
  if (find(path))
    return lookup(path, base.range);
  return attributeOf(typeAt(base), name);
}

/// Returns the type of the value that `expr` names: a variable, or a field of one. Null for other expressions.
const Type *BodyScope::typeAt(const ast::Expr &expr) const {
  auto *attribute = expr.as<ast::AttributeExpr>();
  std::vector<const std::string *> names;
  const ast::Expr *root = &expr;
  for (; attribute; attribute = root->as<ast::AttributeExpr>()) {
    names.push_back(&attribute->attribute.text);
    root = attribute->base.get();
  }
  auto *name = root->as<ast::NameExpr>();
  const Binding *binding = name ? find(name->name) : nullptr;
  while (binding && binding->kind == Binding::Struct && !names.empty()) {
    size_t number = binding->structure->find(*names.back());
    names.pop_back();
    binding = number < binding->items.size() ? &binding->items[number] : nullptr;
  }
  const Type *type = binding ? typeOf(*binding) : nullptr;
  for (; type && type->isStruct() && !names.empty(); names.pop_back()) {
    size_t number = type->structure->find(*names.back());
    type = number < type->items.size() ? type->items[number] : nullptr;
  }
  return names.empty() ? type : nullptr;
}

} // namespace kpkg::compiler
