// Checks elementwise functions and casts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Arguments.h"
#include "compiler/comptime/Fold.h"

#include <map>

namespace kpkg::compiler {

Operand Elaborator::floatFunction(Kind nodeKind, CallSite &site) {
  Arguments arguments(*this, site);
  const ast::Expr *expr = arguments.take("x");
  if (!arguments.finish())
    return error(site.range());
  Operand value = check(*expr);
  if (value.isError())
    return value;
  if (value.constant && isComptimeBuiltin(site.name)) {
    Folded folded = foldCall(site.name, {*value.constant});
    if (folded)
      return constant(*folded.value, site.range());
  }
  if (!value.type->isNumeric() || value.type->element == DType::Bool) {
    diags.report(diag::OperandUnfit, expr->range, site.name, describe(value));
    return error(site.range());
  }
  bool rounds = nodeKind == Kind::Floor || nodeKind == Kind::Ceil || nodeKind == Kind::Round;
  if (rounds && !isFloat(value.type->element))
    return value;
  DType element = isFloat(value.type->element) ? value.type->element : defaultFloat();
  if (isFloatForStorage(element))
    return notSupported(site.range(), "arithmetic on 8-bit floats",
                        "convert to a wider float with `.cast[...]()` first");
  Node *node = numberAs(value, element);
  return result(nodeKind, node->type, site.range(), {node});
}

Operand Elaborator::callFloatFunction(CallSite &site) {
  static const std::map<std::string, Kind> kinds = {{"exp", Kind::Exp},     {"exp2", Kind::Exp2},
                                                    {"log", Kind::Log},     {"log2", Kind::Log2},
                                                    {"sqrt", Kind::Sqrt},   {"rsqrt", Kind::Rsqrt},
                                                    {"sin", Kind::Sin},     {"cos", Kind::Cos},
                                                    {"tanh", Kind::Tanh},   {"erf", Kind::Erf},
                                                    {"floor", Kind::Floor}, {"ceil", Kind::Ceil},
                                                    {"round", Kind::Round}, {"reciprocal", Kind::Reciprocal}};
  return floatFunction(kinds.at(site.name), site);
}

Operand Elaborator::callIsNan(CallSite &site) {
  Arguments arguments(*this, site);
  const ast::Expr *expr = arguments.take("x");
  if (!arguments.finish())
    return error(site.range());
  Operand value = check(*expr);
  if (value.isError())
    return value;
  if (!value.type->isNumeric() || !isFloat(value.type->element)) {
    diags.report(diag::OperandUnfit, expr->range, site.name, describe(value));
    return error(site.range());
  }
  const Type *type = types.withElement(value.type, DType::Bool);
  return result(Kind::IsNan, type, site.range(), {materialise(value)});
}

Operand Elaborator::callPopcount(CallSite &site) {
  if (Operand allowed = onlyIn(BodyKind::Kernel, site); allowed.isError())
    return allowed;
  Arguments arguments(*this, site);
  const ast::Expr *expr = arguments.take("x");
  if (!arguments.finish())
    return error(site.range());
  Operand value = check(*expr);
  if (value.isError())
    return value;
  if (!value.type->isNumeric() || value.type->element == DType::Bool || isFloat(value.type->element)) {
    diags.report(diag::OperandUnfit, expr->range, site.name, describe(value));
    return error(site.range());
  }
  return result(Kind::Popcount, value.type, site.range(), {materialise(value)});
}

Operand Elaborator::callAbs(CallSite &site) {
  Arguments arguments(*this, site);
  const ast::Expr *expr = arguments.take("x");
  if (!arguments.finish())
    return error(site.range());
  Operand value = check(*expr);
  if (value.isError())
    return value;
  if (value.constant)
    if (Folded folded = foldCall("abs", {*value.constant}))
      return constant(*folded.value, site.range());
  if (!value.type->isNumeric() || value.type->element == DType::Bool) {
    diags.report(diag::OperandUnfit, expr->range, site.name, describe(value));
    return error(site.range());
  }
  return isUnsigned(value.type->element) ? value : result(Kind::Abs, value.type, site.range(), {materialise(value)});
}

Operand Elaborator::callExtreme(CallSite &site) {
  Arguments arguments(*this, site);
  std::vector<const ast::Expr *> exprs = arguments.rest();
  if (!arguments.finish())
    return error(site.range());
  if (exprs.size() < 2) {
    diags.report(diag::MissingArgument, site.range(), site.name, "b");
    return error(site.range());
  }
  Operand best = check(*exprs[0]);
  for (size_t i = 1; i < exprs.size(); ++i) {
    Operand next = check(*exprs[i]);
    if (best.constant && next.constant) {
      Folded folded = foldCall(site.name, {*best.constant, *next.constant});
      if (!folded)
        diags.report(diag::ComptimeError, site.range(), folded.error);
      best = folded ? constant(*folded.value, site.range()) : error(site.range());
      continue;
    }
    Node *a = nullptr, *b = nullptr;
    if (!unify(best, next, site.name, site.range(), a, b))
      return error(site.range());
    best = result(site.name == "max" ? Kind::Max : Kind::Min, a->type, site.range(), {a, b});
  }
  return best;
}

Operand Elaborator::callClamp(CallSite &site) {
  Arguments arguments(*this, site);
  const ast::Expr *exprs[3] = {arguments.take("x"), arguments.take("low"), arguments.take("high")};
  if (!arguments.finish())
    return error(site.range());
  Operand value = check(*exprs[0]);
  for (int i = 1; i < 3; ++i) {
    Node *a = nullptr, *b = nullptr;
    if (!unify(value, check(*exprs[i]), site.name, site.range(), a, b))
      return error(site.range());
    value = result(i == 1 ? Kind::Max : Kind::Min, a->type, site.range(), {a, b});
  }
  return value;
}

Operand Elaborator::callFma(CallSite &site) {
  Arguments arguments(*this, site);
  const ast::Expr *exprs[3] = {arguments.take("a"), arguments.take("b"), arguments.take("c")};
  if (!arguments.finish())
    return error(site.range());
  Operand a = check(*exprs[0]), b = check(*exprs[1]), c = check(*exprs[2]);
  Node *x = nullptr, *y = nullptr, *z = nullptr;
  if (!unify(a, b, site.name, site.range(), x, y) || c.isError())
    return error(site.range());
  Node *product = x;
  if (!unify(runTime(product), c, site.name, site.range(), x, z))
    return error(site.range());
  y = broadcastTo(y, x->type->shape);
  if (!isFloat(x->type->element) || x->type->element != y->type->element || bitsOf(x->type->element) == 8) {
    diags.report(diag::OperandUnfit, site.range(), site.name, describe(runTime(x)));
    return error(site.range());
  }
  return result(Kind::Fma, x->type, site.range(), {x, y, z});
}

Operand Elaborator::callSelect(CallSite &site) {
  Arguments arguments(*this, site);
  const ast::Expr *exprs[3] = {arguments.take("condition"), arguments.take("a"), arguments.take("b")};
  if (!arguments.finish())
    return error(site.range());
  Operand test = check(*exprs[0]), a = check(*exprs[1]), b = check(*exprs[2]);
  if (test.isError() || a.isError() || b.isError())
    return error(site.range());
  if (!test.type->isNumeric() || test.type->element != DType::Bool) {
    diags.report(diag::ConditionNotBool, exprs[0]->range, describe(test));
    return error(site.range());
  }
  Node *x = nullptr, *y = nullptr;
  if (!unify(a, b, site.name, site.range(), x, y))
    return error(site.range());
  auto shape = broadcastShapes(test.type, x->type, site.name, site.range());
  if (!shape)
    return error(site.range());
  Node *chosen = numberAs(test, DType::Bool, test.type->isTile() || !shape->empty() ? *shape : std::vector<int64_t>{});
  x = broadcastTo(x, *shape);
  y = broadcastTo(y, *shape);
  return result(Kind::Select, x->type, site.range(), {chosen, x, y});
}

Operand Elaborator::castTo(const Operand &value, DType element, SourceRange range) {
  if (value.isError())
    return value;
  if (isPacked(element)) {
    diags.report(diag::PackedElement, range, valueNameOf(element), "the result of a cast");
    return error(range);
  }
  if (value.constant) {
    const Value &known = *value.constant;
    if (known.isFloat() && isInteger(element)) {
      Folded folded = foldCall("Int", {known});
      if (!folded) {
        diags.report(diag::ComptimeError, range, folded.error);
        return error(range);
      }
      return runTime(emitConstant(*folded.value, types.scalar(element), range));
    }
    return runTime(numberAs(value, element));
  }
  if (value.type->element == element)
    return value;
  return result(Kind::Cast, types.withElement(value.type, element), range, {value.node});
}

Operand Elaborator::tileCast(CallSite &site) {
  if (!hasBrackets(site, "T"))
    return error(site.range());
  Arguments brackets(*this, site, *site.comptimeArguments);
  const ast::Expr *expr = brackets.take("T");
  Arguments arguments(*this, site);
  const ast::Expr *round = arguments.named("round"), *saturate = arguments.named("saturate");
  if (!brackets.finish() || !arguments.finish())
    return error(site.range());
  if (round)
    return notSupported(round->range, "`round=`", "leave it out: casts round to nearest even");
  auto element = comptimeDType(*expr);
  auto saturates = saturate ? comptime(*saturate) : std::optional(Value(false));
  if (!element || !saturates)
    return error(site.range());
  if (!saturates->isBool()) {
    diags.report(diag::TypeMismatch, saturate->range, "`saturate`", saturates->str(), "True or False");
    return error(site.range());
  }
  Operand value = site.base;
  if (saturates->asBool()) {
    std::optional<double> largest = largestNarrowFloat(*element);
    if (!largest || !isFloat(value.type->element))
      return notSupported(saturate->range, "`saturate=` of this cast",
                          "it is for casts from floats to float16 and 8-bit floats; clamp the value first");
    auto limit = [&](Kind kind, double bound) {
      Node *sides[2];
      if (unify(value, constant(Value(bound), site.range()), "cast", site.range(), sides[0], sides[1]))
        value = result(kind, sides[0]->type, site.range(), {sides[0], sides[1]});
    };
    limit(Kind::Min, *largest);
    limit(Kind::Max, -*largest);
  }
  return castTo(value, *element, site.range());
}

Operand Elaborator::tileBitcast(CallSite &site) {
  if (!hasBrackets(site, "T"))
    return error(site.range());
  Arguments brackets(*this, site, *site.comptimeArguments);
  const ast::Expr *expr = brackets.take("T");
  if (!brackets.finish())
    return error(site.range());
  auto element = elementDType(*expr, "the result of a bitcast");
  if (!element)
    return error(site.range());
  Node *node = materialise(site.base);
  bool fits = bitsOf(*element) == bitsOf(node->type->element) && *element != DType::Bool &&
              node->type->element != DType::Bool && kind == BodyKind::Kernel;
  if (!fits) {
    diags.report(diag::OperandUnfit, site.range(), fmt::format("bitcast[{}]", valueNameOf(*element)),
                 describe(site.base));
    return error(site.range());
  }
  return result(Kind::Bitcast, types.withElement(node->type, *element), site.range(), {node});
}

Operand Elaborator::callScalarType(CallSite &site) {
  Arguments arguments(*this, site);
  const ast::Expr *expr = arguments.take("x");
  if (!arguments.finish())
    return error(site.range());
  Operand value = check(*expr);
  if (value.isError())
    return value;
  if (!value.type->isScalar()) {
    DiagnosticBuilder report = diags.report(diag::OperandUnfit, expr->range, site.name, describe(value));
    if (isOneElement(value))
      report.note(diag::ScalarReads, expr->range);
    return error(site.range());
  }
  return castTo(value, *dtypeOfTypeName(site.name), site.range());
}

} // namespace kpkg::compiler
