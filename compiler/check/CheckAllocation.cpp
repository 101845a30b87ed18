// Checks allocation, filling and conversion of host tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Arguments.h"

namespace kpkg::compiler {

/// Returns whether `dtype` is of tensors. Reports it otherwise.
static bool isOfTensors(DiagnosticEngine &diags, const Operand &dtype, SourceRange range) {
  if (!dtype.constant || !dtype.constant->isDType() || !isPacked(dtype.constant->asDType()))
    return true;
  diags.report(diag::PackedElement, range, valueNameOf(dtype.constant->asDType()), "the dtype of a tensor");
  return false;
}

Operand Elaborator::newTensor(CallSite &site, const std::vector<const ast::Expr *> &extents, const ast::Expr *dtypeExpr,
                              Operand &dtype) {
  if (!dtypeExpr) {
    diags.report(diag::MissingArgument, site.range(), site.name, "dtype");
    return error(site.range());
  }
  Node *shape = shapeArgument(extents, "an extent", site.range());
  dtype = check(*dtypeExpr);
  if (!isOfTensors(diags, dtype, dtypeExpr->range))
    return error(site.range());
  Node *element = convert(dtype, types.dtype, "`dtype`");
  bool isKnown = shape && shape->kind == Kind::MakeList;
  return result(Kind::Empty, types.hostTensor(isKnown ? static_cast<int>(shape->operands.size()) : -1), site.range(),
                {shape, element});
}

Operand Elaborator::newTensorLike(CallSite &site, const ast::Expr &like, const ast::Expr *dtypeExpr, Operand &dtype) {
  Operand other = check(like);
  Node *node = tensorNode(other, "the tensor");
  if (!node)
    return error(site.range());
  const Type *type = other.type->isTensor() ? other.type : types.tensor;
  if (!dtypeExpr)
    return result(Kind::EmptyLike, type, site.range(), {node});
  dtype = check(*dtypeExpr);
  if (!isOfTensors(diags, dtype, dtypeExpr->range))
    return error(site.range());
  Node *shape = emit(Kind::Shape, types.list, site.range(), {node});
  return result(Kind::Empty, type, site.range(), {shape, convert(dtype, types.dtype, "`dtype`")});
}

Operand Elaborator::callEmpty(CallSite &site) {
  if (Operand allowed = onlyIn(BodyKind::Op, site); allowed.isError())
    return allowed;
  Arguments arguments(*this, site);
  const ast::Expr *dtypeExpr = arguments.named("dtype");
  std::vector<const ast::Expr *> extents = arguments.rest();
  Operand dtype;
  return arguments.finish() ? newTensor(site, extents, dtypeExpr, dtype) : error(site.range());
}

Operand Elaborator::callEmptyLike(CallSite &site) {
  if (Operand allowed = onlyIn(BodyKind::Op, site); allowed.isError())
    return allowed;
  Arguments arguments(*this, site);
  const ast::Expr *like = arguments.take("like");
  const ast::Expr *dtypeExpr = arguments.named("dtype");
  Operand dtype;
  return arguments.finish() ? newTensorLike(site, *like, dtypeExpr, dtype) : error(site.range());
}

/// Calls a function of the prelude, which launches kernels of the prelude.
Operand Elaborator::callPrelude(const std::string &name, std::vector<Operand> arguments, SourceRange range) {
  Meaning meaning = checker.prelude->own(name, range);
  return inlineCall(*meaning.value.asFunction(), {}, std::move(arguments), range);
}

/// Checks the value that fills a tensor.
Operand Elaborator::fillValue(const ast::Expr &expr) {
  Operand value = check(expr);
  if (value.isError() || value.type->isScalar())
    return value;
  diags.report(diag::TypeMismatch, expr.range, "`value`", describe(value), "a number");
  return error(expr.range);
}

/// Writes `value` to all elements of a new tensor. `dtype` has no type if only the tensor knows it.
Operand Elaborator::filled(const Operand &tensor, Operand value, const Operand &dtype, SourceRange range) {
  if (tensor.isError() || value.isError())
    return error(range);
  bool isOfFloat = isFloat(value.type->element);
  if (dtype.constant) {
    DType element = dtype.constant->asDType();
    if (value.constant && !fitsConstant(*value.constant, element)) {
      diags.report(diag::ConstantDoesNotFit, value.range, value.constant->str(), valueNameOf(element));
      return error(range);
    }
    if (isOfFloat && !isFloat(element)) {
      diags.report(diag::TypeMismatch, value.range, fmt::format("`value` of {}", valueNameOf(element)), describe(value),
                   "Int");
      return error(range);
    }
  }
  if (!isOfFloat)
    value = castTo(value, DType::Int, value.range);
  Operand done = callPrelude(isOfFloat ? "fill_with_float" : "fill_with_int", {tensor, value}, range);
  return done.isError() ? done : tensor;
}

Operand Elaborator::callHostZeros(CallSite &site) {
  Arguments arguments(*this, site);
  const ast::Expr *dtypeExpr = arguments.named("dtype");
  std::vector<const ast::Expr *> extents = arguments.rest();
  if (!arguments.finish())
    return error(site.range());
  Operand dtype;
  Operand tensor = newTensor(site, extents, dtypeExpr, dtype);
  return filled(tensor, constant(Value(false), site.range()), dtype, site.range());
}

Operand Elaborator::callHostFull(CallSite &site) {
  Arguments arguments(*this, site);
  const ast::Expr *value = arguments.take("value");
  const ast::Expr *dtypeExpr = arguments.named("dtype");
  std::vector<const ast::Expr *> extents = arguments.rest();
  if (!arguments.finish())
    return error(site.range());
  Operand number = fillValue(*value), dtype;
  if (number.isError())
    return number;
  Operand tensor = newTensor(site, extents, dtypeExpr, dtype);
  return filled(tensor, number, dtype, site.range());
}

Operand Elaborator::callZerosLike(CallSite &site) {
  if (Operand allowed = onlyIn(BodyKind::Op, site); allowed.isError())
    return allowed;
  Arguments arguments(*this, site);
  const ast::Expr *like = arguments.take("like");
  const ast::Expr *dtypeExpr = arguments.named("dtype");
  if (!arguments.finish())
    return error(site.range());
  Operand dtype;
  Operand tensor = newTensorLike(site, *like, dtypeExpr, dtype);
  return filled(tensor, constant(Value(false), site.range()), dtype, site.range());
}

Operand Elaborator::callFullLike(CallSite &site) {
  if (Operand allowed = onlyIn(BodyKind::Op, site); allowed.isError())
    return allowed;
  Arguments arguments(*this, site);
  const ast::Expr *like = arguments.take("like");
  const ast::Expr *value = arguments.take("value");
  const ast::Expr *dtypeExpr = arguments.named("dtype");
  if (!arguments.finish())
    return error(site.range());
  Operand number = fillValue(*value), dtype;
  Operand tensor = newTensorLike(site, *like, dtypeExpr, dtype);
  return filled(tensor, number, dtype, site.range());
}

Operand Elaborator::tensorTo(CallSite &site) {
  Arguments arguments(*this, site);
  const ast::Expr *expr = arguments.take("dtype");
  if (!arguments.finish())
    return error(site.range());
  Operand dtype = check(*expr);
  Node *element = convert(dtype, types.dtype, "`dtype`");
  if (!element)
    return error(site.range());
  ValueRanges::State before = valueRanges.save();
  Operand converted = callPrelude("as_tensor_of", {site.base, dtype}, site.range());
  valueRanges.restore(std::move(before)); // what it returns is known without its returns
  if (converted.isError())
    return converted;
  Node *found = emit(Kind::DTypeOf, types.dtype, site.range(), {converted.node});
  valueRanges.assume(emit(Kind::DTypeEqual, types.boolean(), site.range(), {found, element}), true);
  if (site.base.type->isTensor())
    converted.type = site.base.type; // of the same rank
  return converted;
}

} // namespace kpkg::compiler
