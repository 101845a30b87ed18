// Creates HIR nodes and operands.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Frame.h"

namespace kpkg::compiler {

Elaborator::Elaborator(Checker &checker, BodyKind kind, hir::Function &function)
    : checker(checker), types(checker.types), diags(checker.diags), kind(kind), function(function) {}

hir::Node *Elaborator::emit(Kind nodeKind, const Type *type, SourceRange range, std::vector<Node *> operands,
                            std::vector<int64_t> ints) {
  Node &node = function.nodes.emplace_back();
  node.kind = nodeKind;
  node.type = type;
  node.range = range;
  node.operands = std::move(operands);
  node.ints = std::move(ints);
  block->nodes.push_back(&node);
  if (kind == BodyKind::Op)
    valueRanges.record(&node);
  return &node;
}

hir::Node *Elaborator::emitConstant(Value value, const Type *type, SourceRange range) {
  Node &node = function.nodes.emplace_back();
  node.kind = Kind::Constant;
  node.type = type;
  node.range = range;
  node.value = std::move(value);
  block->nodes.push_back(&node);
  if (kind == BodyKind::Op)
    valueRanges.record(&node);
  return &node;
}

hir::Local *Elaborator::newLocal(std::string name, const Type *type) {
  hir::Local &local = function.locals.emplace_back();
  local.name = std::move(name);
  local.type = type->isTensor() ? types.tensor : type;
  local.id = static_cast<unsigned>(function.locals.size() - 1);
  return &local;
}

void Elaborator::setLocal(hir::Local *local, Node *value, SourceRange range) {
  emit(Kind::Set, types.none, range, {value})->local = local;
  nameValue(range, value);
  if (kind == BodyKind::Op)
    valueRanges.assign(local, value);
}

hir::Node *Elaborator::getLocal(hir::Local *local, SourceRange range) {
  Node &node = function.nodes.emplace_back();
  node.kind = Kind::Get;
  node.type = local->type;
  node.range = range;
  node.local = local;
  block->nodes.push_back(&node);
  if (kind == BodyKind::Op)
    valueRanges.record(&node);
  return &node;
}

std::unique_ptr<hir::Block> Elaborator::inBlock(const std::function<void()> &body) {
  auto inner = std::make_unique<hir::Block>();
  hir::Block *outer = block;
  block = inner.get();
  body();
  block = outer;
  return inner;
}

/// Checks code after an error in its condition or bounds, only to find further errors.
void Elaborator::apart(const std::function<void()> &body) { unplaced.push_back(inBlock(body)); }

Operand Elaborator::error(SourceRange range) {
  Operand operand;
  operand.type = types.error;
  operand.range = range;
  return operand;
}

Operand Elaborator::none(SourceRange range) { return constant(Value(), range); }

const Type *Elaborator::typeOfValue(const Value &value) {
  if (value.isNone())
    return types.none;
  if (value.isBool())
    return types.boolean();
  if (value.isInt())
    return types.integer();
  if (value.isFloat())
    return types.scalar(defaultFloat());
  if (value.isString())
    return types.string;
  if (value.isDType())
    return types.dtype;
  if (value.isFunction())
    return types.function;
  if (value.isStructName())
    return types.structName;
  if (value.isStruct()) {
    const StructValue &known = value.asStruct();
    std::vector<Value> parameters;
    std::vector<const Type *> members;
    for (size_t i = 0; i < known.members.size(); ++i) {
      if (i < known.structure->parameterCount())
        parameters.push_back(known.members[i].value_or(Value()));
      members.push_back(known.members[i] ? typeOfValue(*known.members[i]) : types.error);
    }
    return types.structure(known.structure, std::move(parameters), std::move(members));
  }
  if (value.asSequence().isList)
    return types.list;
  std::vector<const Type *> items;
  for (const Value &item : value.asSequence().items)
    items.push_back(typeOfValue(item));
  return types.tuple(std::move(items));
}

Operand Elaborator::constant(Value value, SourceRange range) {
  if (value.isStruct()) {
    std::vector<Operand> members;
    for (const std::optional<Value> &member : value.asStruct().members)
      members.push_back(member ? constant(*member, range) : error(range));
    return structOf(*value.asStruct().structure, std::move(members), range);
  }
  Operand operand;
  operand.type = typeOfValue(value);
  operand.constant = std::move(value);
  operand.range = range;
  return operand;
}

Operand Elaborator::runTime(Node *node) {
  Operand operand;
  operand.type = node->type;
  operand.node = node;
  operand.range = node->range;
  return operand;
}

/// Returns whether a node depends on the numbers that its operands mean, and not only on their bits.
static bool computes(hir::Kind kind) {
  using hir::Kind;
  if (kind == Kind::Select || kind == Kind::Cast || kind == Kind::Bitcast)
    return false;
  switch (kind) {
#define HIR_ELEMENTWISE(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    return true;
#define HIR(Name) case Kind::Name:
#define HIR_ELEMENTWISE(Name)
#include "compiler/check/HirKinds.def"
    return false;
  }
  return false;
}

Operand Elaborator::result(Kind nodeKind, const Type *type, SourceRange range, std::vector<Node *> operands,
                           std::vector<int64_t> ints) {
  for (Node *operand : operands) {
    if (!operand)
      return error(range);
    if (computes(nodeKind) && operand->type->isNumeric() && isExponent(operand->type->element))
      return notSupported(range, fmt::format("arithmetic on {}", valueNameOf(operand->type->element)),
                          "convert to a wider float with `.cast[...]()` first");
  }
  return runTime(emit(nodeKind, type, range, std::move(operands), std::move(ints)));
}

Operand Elaborator::tuple(std::vector<Operand> items, SourceRange range) {
  std::vector<const Type *> itemTypes;
  std::vector<Value> values;
  for (const Operand &item : items) {
    if (item.isError())
      return error(range);
    itemTypes.push_back(item.type);
    if (item.constant)
      values.push_back(*item.constant);
  }
  if (values.size() == items.size())
    return constant(Value::tuple(std::move(values)), range);
  Operand operand;
  operand.type = types.tuple(std::move(itemTypes));
  operand.items = std::move(items);
  operand.range = range;
  return operand;
}

std::string Elaborator::describe(const Operand &operand) {
  if (operand.constant && !operand.constant->isNone())
    return operand.constant->isFloat() ? "Float" : operand.type->str();
  return operand.type->str();
}

} // namespace kpkg::compiler
