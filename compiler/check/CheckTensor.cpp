// Checks host tensors: queries and views.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Arguments.h"
#include "compiler/diag/NearestName.h"

namespace kpkg::compiler {

hir::Node *Elaborator::tensorNode(const Operand &operand, std::string_view what) {
  return convert(operand, types.tensor, what);
}

Operand Elaborator::tensorAttribute(const Operand &tensor, const ast::AttributeExpr &expr) {
  const std::string &name = expr.attribute.text;
  if (name == "shape")
    return result(Kind::Shape, types.list, expr.range, {tensor.node});
  if (name == "stride")
    return result(Kind::Strides, types.list, expr.range, {tensor.node});
  if (name == "dtype")
    return result(Kind::DTypeOf, types.dtype, expr.range, {tensor.node});
  if (name == "rank") {
    if (tensor.type->isTensor() && tensor.type->rank >= 0)
      return constant(Value(int64_t(tensor.type->rank)), expr.range);
    return result(Kind::Rank, types.integer(), expr.range, {tensor.node});
  }
  if (name == "T") {
    // Exchanges the last two dimensions: the transpose of a matrix.
    Node *dims[2];
    for (int64_t i = 0; i < 2; ++i)
      dims[i] = emitConstant(Value(i - 2), types.integer(), expr.range);
    return result(Kind::Transpose, tensor.type->isTensor() ? tensor.type : types.tensor, expr.range,
                  {tensor.node, dims[0], dims[1]});
  }
  reportUnknownAttribute(diags, describe(tensor), name, expr.attribute.range, {"shape", "stride", "dtype", "rank"});
  return error(expr.range);
}

Operand Elaborator::tensorQuery(Kind nodeKind, const Operand &tensor, const ast::IndexExpr &expr) {
  Node *dim = intNode(check(*expr.arguments[0].value), "a dimension");
  return result(nodeKind, types.integer(), expr.range, {tensor.node, dim});
}

Operand Elaborator::indexTensor(const Operand &tensor, const ast::IndexExpr &expr) {
  std::vector<int64_t> dims;
  std::vector<Node *> indices;
  Operand view = tensor;
  int64_t count = static_cast<int64_t>(expr.arguments.size());
  int rank = tensor.type->isTensor() ? tensor.type->rank : -1;
  if (rank >= 0 && count > rank) {
    diags.report(diag::RankMismatch, expr.range, "the index", count, static_cast<int64_t>(rank));
    return error(expr.range);
  }
  for (int64_t i = 0; i < count; ++i) {
    const ast::Expr &argument = *expr.arguments[i].value;
    auto *slice = argument.as<ast::SliceExpr>();
    if (!slice) {
      Node *index = intNode(check(argument), "an index");
      if (!index)
        return error(expr.range);
      dims.push_back(i);
      indices.push_back(index);
      continue;
    }
    if (!slice->start && !slice->stop && !slice->step)
      continue;
    Operand stepOperand = slice->step ? check(*slice->step) : constant(Value(int64_t(1)), argument.range);
    Node *step = intNode(stepOperand, "the step of a slice");
    bool isKnown = stepOperand.constant && stepOperand.constant->isInt();
    if (step && !isKnown && !(slice->start && slice->stop))
      return notSupported(argument.range, "an open slice whose step is known at run time only",
                          "write both bounds, or a constant step");
    bool isBackwards = isKnown && stepOperand.constant->asInt() < 0;
    auto bound = [&](const ast::ExprPtr &part, bool isFirst) {
      int64_t open = isFirst == isBackwards ? INT64_MAX : isBackwards ? INT64_MIN : 0;
      return part ? intNode(check(*part), "a bound of a slice")
                  : emitConstant(Value(open), types.integer(), argument.range);
    };
    Node *dim = emitConstant(Value(i), types.integer(), argument.range);
    Node *start = bound(slice->start, true), *stop = bound(slice->stop, false);
    view = result(Kind::SliceTensor, tensor.type->isTensor() ? tensor.type : types.tensor, argument.range,
                  {view.node, dim, start, stop, step});
    if (view.isError())
      return view;
  }
  if (dims.empty())
    return view;
  std::vector<Node *> operands = {view.node};
  operands.insert(operands.end(), indices.begin(), indices.end());
  const Type *type = rank >= 0 ? types.hostTensor(rank - static_cast<int>(dims.size())) : types.tensor;
  return result(Kind::IndexAway, type, expr.range, std::move(operands), std::move(dims));
}

/// Checks a shape given as Ints or as one list.
hir::Node *Elaborator::shapeArgument(const std::vector<const ast::Expr *> &exprs, std::string_view what,
                                     SourceRange range) {
  if (exprs.size() == 1) {
    Operand only = check(*exprs[0]);
    if (only.isError())
      return nullptr;
    if (only.type->kind == TypeKind::List)
      return listNode(only, what);
    if (only.constant && only.constant->isSequence())
      return materialise(constant(Value::list(only.constant->asSequence().items), range));
    Node *extent = intNode(only, what);
    return extent ? emit(Kind::MakeList, types.list, range, {extent}) : nullptr;
  }
  std::vector<Node *> extents;
  for (const ast::Expr *expr : exprs) {
    Node *extent = intNode(check(*expr), what);
    if (!extent)
      return nullptr;
    extents.push_back(extent);
  }
  return emit(Kind::MakeList, types.list, range, std::move(extents));
}

Operand Elaborator::withShape(Kind kind, CallSite &site) {
  Arguments arguments(*this, site);
  std::vector<const ast::Expr *> exprs = arguments.rest();
  if (!arguments.finish())
    return error(site.range());
  Node *shape = shapeArgument(exprs, "an extent", site.range());
  if (!shape)
    return error(site.range());
  bool isKnown = shape->kind == Kind::MakeList;
  return result(kind, types.hostTensor(isKnown ? static_cast<int>(shape->operands.size()) : -1), site.range(),
                {site.base.node, shape});
}

Operand Elaborator::tensorReshape(CallSite &site) { return withShape(Kind::ReshapeTensor, site); }
Operand Elaborator::tensorExpand(CallSite &site) { return withShape(Kind::Expand, site); }

Operand Elaborator::tensorPermute(CallSite &site) {
  Arguments arguments(*this, site);
  std::vector<const ast::Expr *> exprs = arguments.rest();
  if (!arguments.finish())
    return error(site.range());
  Node *order = shapeArgument(exprs, "a dimension", site.range());
  const Type *type = site.base.type->isTensor() ? site.base.type : types.tensor;
  return result(Kind::PermuteDims, type, site.range(), {site.base.node, order});
}

Operand Elaborator::tensorTranspose(CallSite &site) {
  Arguments arguments(*this, site);
  const ast::Expr *exprs[2] = {arguments.take("dim0"), arguments.take("dim1")};
  if (!arguments.finish())
    return error(site.range());
  Node *first = intNode(check(*exprs[0]), "`dim0`");
  Node *second = intNode(check(*exprs[1]), "`dim1`");
  return result(Kind::Transpose, site.base.type->isTensor() ? site.base.type : types.tensor, site.range(),
                {site.base.node, first, second});
}

Operand Elaborator::dimensionMethod(Kind nodeKind, CallSite &site, int rank) {
  Arguments arguments(*this, site);
  const ast::Expr *expr = arguments.take("dim");
  if (!arguments.finish())
    return error(site.range());
  return result(nodeKind, types.hostTensor(rank), site.range(), {site.base.node, intNode(check(*expr), "`dim`")});
}

Operand Elaborator::tensorFold(CallSite &site) { return dimensionMethod(Kind::Fold, site, 3); }

Operand Elaborator::tensorUnsqueeze(CallSite &site) {
  int rank = site.base.type->isTensor() ? site.base.type->rank : -1;
  return dimensionMethod(Kind::Unsqueeze, site, rank < 0 ? -1 : rank + 1);
}

Operand Elaborator::tensorSqueeze(CallSite &site) {
  int rank = site.base.type->isTensor() ? site.base.type->rank : -1;
  return dimensionMethod(Kind::Squeeze, site, rank < 0 ? -1 : rank - 1);
}

Operand Elaborator::tensorUnfold(CallSite &site) {
  Arguments arguments(*this, site);
  const ast::Expr *exprs[3] = {arguments.take("dim"), arguments.take("size"), arguments.take("step")};
  if (!arguments.finish())
    return error(site.range());
  Node *dim = intNode(check(*exprs[0]), "`dim`");
  Node *size = intNode(check(*exprs[1]), "`size`");
  Node *step = intNode(check(*exprs[2]), "`step`");
  int rank = site.base.type->isTensor() ? site.base.type->rank : -1;
  return result(Kind::Unfold, types.hostTensor(rank < 0 ? -1 : rank + 1), site.range(),
                {site.base.node, dim, size, step});
}

Operand Elaborator::tensorNumel(CallSite &site) {
  Arguments arguments(*this, site);
  return arguments.finish() ? result(Kind::Numel, types.integer(), site.range(), {site.base.node})
                            : error(site.range());
}

Operand Elaborator::tensorContiguous(CallSite &site) {
  Arguments arguments(*this, site);
  const Type *type = site.base.type->isTensor() ? site.base.type : types.tensor;
  return arguments.finish() ? result(Kind::Contiguous, type, site.range(), {site.base.node}) : error(site.range());
}

Operand Elaborator::tensorIsContiguous(CallSite &site) {
  Arguments arguments(*this, site);
  return arguments.finish() ? result(Kind::IsContiguous, types.boolean(), site.range(), {site.base.node})
                            : error(site.range());
}

Operand Elaborator::callProcessors(CallSite &site) {
  if (Operand allowed = onlyIn(BodyKind::Op, site); allowed.isError())
    return allowed;
  Arguments arguments(*this, site);
  if (!arguments.finish())
    return error(site.range());
  return result(Kind::Processors, types.integer(), site.range(), {});
}

} // namespace kpkg::compiler
