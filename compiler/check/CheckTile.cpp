// Checks the creation and reshaping of tiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Arguments.h"
#include "compiler/comptime/Fold.h"

namespace kpkg::compiler {

std::optional<std::vector<int64_t>> Elaborator::extents(const std::vector<const ast::Expr *> &exprs,
                                                        SourceRange range) {
  std::vector<int64_t> shape;
  int64_t product = 1;
  auto add = [&](const Value &value, SourceRange at) {
    if (!value.isInt()) {
      diags.report(diag::TypeMismatch, at, "an extent", kindName(value), "Int");
      return false;
    }
    if (value.asInt() <= 0) {
      diags.report(diag::BadExtent, at, value.asInt());
      return false;
    }
    if (value.asInt() > maxTileElements || (product *= value.asInt()) > maxTileElements) {
      diags.report(diag::TileTooLarge, range, maxTileElements);
      return false;
    }
    shape.push_back(value.asInt());
    return true;
  };
  for (const ast::Expr *expr : exprs) {
    auto value = comptime(*expr);
    if (!value)
      return std::nullopt;
    if (value->isSequence()) {
      for (const Value &item : value->asSequence().items)
        if (!add(item, expr->range))
          return std::nullopt;
    } else if (!add(*value, expr->range)) {
      return std::nullopt;
    }
  }
  if (shape.empty()) {
    diags.report(diag::BadExtent, range, 0);
    return std::nullopt;
  }
  return shape;
}

const Type *Elaborator::namedTile(CallSite &site) {
  if (!hasBrackets(site, "T"))
    return nullptr;
  Arguments brackets(*this, site, *site.comptimeArguments);
  const ast::Expr *dtype = brackets.take("T");
  Arguments arguments(*this, site);
  std::vector<const ast::Expr *> dims = arguments.rest();
  if (!brackets.finish() || !arguments.finish())
    return nullptr;
  auto element = elementDType(*dtype, "the element type of a tile");
  auto shape = extents(dims, site.range());
  return element && shape ? types.tile(*element, *shape) : nullptr;
}

Operand Elaborator::callZeros(CallSite &site) {
  const Type *tile = namedTile(site);
  if (!tile)
    return error(site.range());
  Operand zero = constant(tile->element == DType::Bool ? Value(false) : Value(int64_t(0)), site.range());
  return runTime(numberAs(zero, tile->element, tile->shape));
}

Operand Elaborator::callFull(CallSite &site) {
  if (!hasBrackets(site, "T"))
    return error(site.range());
  Arguments brackets(*this, site, *site.comptimeArguments);
  const ast::Expr *dtype = brackets.take("T");
  Arguments arguments(*this, site);
  const ast::Expr *valueExpr = arguments.take("value");
  std::vector<const ast::Expr *> dims = arguments.rest();
  if (!brackets.finish() || !arguments.finish())
    return error(site.range());
  auto element = elementDType(*dtype, "the element type of a tile");
  Operand value = check(*valueExpr);
  auto shape = extents(dims, site.range());
  if (!element || !shape)
    return error(site.range());
  Node *scalar = convert(value, types.scalar(*element), "the value");
  return scalar ? runTime(broadcastTo(scalar, *shape)) : error(site.range());
}

Operand Elaborator::callIota(CallSite &site) {
  if (Operand allowed = onlyIn(BodyKind::Kernel, site); allowed.isError())
    return allowed;
  if (!hasBrackets(site, "n"))
    return error(site.range());
  Arguments brackets(*this, site, *site.comptimeArguments);
  const ast::Expr *size = brackets.take("n");
  Arguments arguments(*this, site);
  if (!brackets.finish() || !arguments.finish())
    return error(site.range());
  auto shape = extents({size}, site.range());
  if (!shape || shape->size() != 1)
    return error(site.range());
  return result(Kind::Iota, types.tile(DType::Int, *shape), site.range(), {});
}

Operand Elaborator::callScalar(CallSite &site) {
  if (Operand allowed = onlyIn(BodyKind::Kernel, site); allowed.isError())
    return allowed;
  Arguments arguments(*this, site);
  const ast::Expr *expr = arguments.take("tile");
  if (!arguments.finish())
    return error(site.range());
  Operand value = check(*expr);
  if (value.isError() || value.type->isScalar())
    return value;
  if (!value.type->isTile() || value.type->size() != 1) {
    diags.report(diag::TypeMismatch, expr->range, "the argument of `scalar`", describe(value), "a tile of one element");
    return error(site.range());
  }
  return result(Kind::ScalarOf, types.scalar(value.type->element), site.range(), {value.node});
}

Operand Elaborator::tileReshape(CallSite &site) {
  Arguments arguments(*this, site);
  std::vector<const ast::Expr *> dims = arguments.rest();
  if (!arguments.finish())
    return error(site.range());
  if (!site.base.type->isTile()) {
    diags.report(diag::UnknownAttribute, site.nameRange, describe(site.base), site.name);
    return error(site.range());
  }
  auto shape = extents(dims, site.range());
  if (!shape)
    return error(site.range());
  const Type *type = types.tile(site.base.type->element, *shape);
  if (type->size() != site.base.type->size()) {
    diags.report(diag::ReshapeSize, site.range(), site.base.type->str(), type->str());
    return error(site.range());
  }
  return type == site.base.type ? site.base : result(Kind::Reshape, type, site.range(), {site.base.node});
}

Operand Elaborator::tilePermute(CallSite &site) {
  Arguments arguments(*this, site);
  std::vector<const ast::Expr *> dims = arguments.rest();
  if (!arguments.finish())
    return error(site.range());
  std::vector<int64_t> permutation;
  int64_t rank = static_cast<int64_t>(site.base.type->shape.size());
  uint64_t seen = 0;
  for (const ast::Expr *expr : dims) {
    auto dim = comptimeInt(*expr);
    if (!dim)
      return error(site.range());
    int64_t at = *dim < 0 ? *dim + rank : *dim;
    if (at >= 0 && at < rank && !(seen >> at & 1)) {
      seen |= uint64_t(1) << at;
      permutation.push_back(at);
    }
  }
  if (!site.base.type->isTile() || static_cast<int64_t>(permutation.size()) != rank) {
    diags.report(diag::BadPermutation, site.range(), rank);
    return error(site.range());
  }
  std::vector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(site.base.type->shape[dim]);
  return result(Kind::Permute, types.tile(site.base.type->element, std::move(shape)), site.range(), {site.base.node},
                permutation);
}

Operand Elaborator::tileExpand(CallSite &site) {
  Arguments arguments(*this, site);
  std::vector<const ast::Expr *> dims = arguments.rest();
  if (!arguments.finish())
    return error(site.range());
  auto shape = extents(dims, site.range());
  if (!shape)
    return error(site.range());
  const Type *type = types.tile(site.base.type->element, *shape);
  auto met = broadcastShapes(site.base.type, type, "expand", site.range());
  if (!met)
    return error(site.range());
  if (*met != *shape) {
    diags.report(diag::ShapesDiffer, site.range(), "expand", site.base.type->str(), type->str());
    return error(site.range());
  }
  return runTime(broadcastTo(materialise(site.base), *shape));
}

} // namespace kpkg::compiler
