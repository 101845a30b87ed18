// Implements text forms and verifiers of plan.func, plan.return, plan.call and plan.launch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/plan/ir/Plan.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;

namespace kpkg::plan_ir {

//===--- func -----------------------------------------------------------------------------------------------------===//

void FuncOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type,
                   ArrayRef<DictionaryAttr> argAttrs) {
  state.addAttribute(SymbolTable::getSymbolAttrName(), builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addRegion();
  if (!argAttrs.empty())
    call_interface_impl::addArgAndResultAttrs(builder, state, argAttrs, /*resultAttrs=*/{},
                                              getArgAttrsAttrName(state.name), getResAttrsAttrName(state.name));
}

ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &result) {
  auto build = [](Builder &builder, ArrayRef<Type> arguments, ArrayRef<Type> results,
                  function_interface_impl::VariadicFlag,
                  std::string &) { return builder.getFunctionType(arguments, results); };
  return function_interface_impl::parseFunctionOp(parser, result, /*allowVariadic=*/false,
                                                  getFunctionTypeAttrName(result.name), build,
                                                  getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void FuncOp::print(OpAsmPrinter &p) {
  function_interface_impl::printFunctionOp(p, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
                                           getArgAttrsAttrName(), getResAttrsAttrName());
}

StringRef FuncOp::getArgName(unsigned i) {
  auto name = getArgAttrOfType<StringAttr>(i, argNameAttr);
  return name ? name.getValue() : StringRef();
}

bool FuncOp::isArgMut(unsigned i) { return static_cast<bool>(getArgAttr(i, argMutAttr)); }

static bool isPlanValue(Type type) {
  return isa<TensorType, ListType, TensorListType, DTypeType, StringType>(type) || type.isInteger(64) ||
         type.isInteger(1) || type.isF64();
}

LogicalResult FuncOp::verify() {
  if (isExternal())
    return emitOpError() << "needs a body";
  for (auto [i, type] : llvm::enumerate(getArgumentTypes())) {
    if (!isPlanValue(type))
      return emitOpError() << "argument " << i << " has type " << type << ", which no plan value has";
    if (getArgName(i).empty())
      return emitOpError() << "argument " << i << " has no `" << argNameAttr << "`";
    if (isArgMut(i) && !isa<TensorType, TensorListType>(type))
      return emitOpError() << "argument " << i << " is `" << argMutAttr << "` but no tensor";
  }
  for (auto [i, type] : llvm::enumerate(getResultTypes())) {
    if (!isPlanValue(type))
      return emitOpError() << "result " << i << " has type " << type << ", which no plan value has";
    if (getSchema() && !isa<TensorType>(type))
      return emitOpError() << "result " << i << " of an op with a schema must be a tensor, got " << type;
  }
  return success();
}

LogicalResult ReturnOp::verify() {
  auto function = (*this)->getParentOfType<FuncOp>();
  if (TypeRange(getValues()) != TypeRange(function.getResultTypes()))
    return emitOpError() << "returns " << getValues().getTypes() << " but the function's results are "
                         << function.getResultTypes();
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<FuncOp>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError() << getCalleeAttr() << " is no plan.func";
  if (TypeRange(getArgs()) != TypeRange(callee.getArgumentTypes()) ||
      TypeRange(getResults()) != TypeRange(callee.getResultTypes()))
    return emitOpError() << "does not fit " << getCalleeAttr() << ", which has type " << callee.getFunctionType();
  return success();
}

//===--- launch ---------------------------------------------------------------------------------------------------===//

// launch := string `[` (name (`=` | `at_least`) operand `:` type),* `]` `(` ([`mut`] operand `:` type),* `)` [`grid`
// `(` operand,* `)`]
ParseResult LaunchOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr kernel;
  SmallVector<Attribute> names;
  SmallVector<bool> atLeast, isMut;
  SmallVector<OpAsmParser::UnresolvedOperand> params, args, grid;
  SmallVector<Type> paramTypes, argTypes;

  auto parseParam = [&]() -> ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name))
      return failure();
    names.push_back(builder.getStringAttr(name));
    atLeast.push_back(succeeded(parser.parseOptionalKeyword("at_least")));
    if (!atLeast.back() && parser.parseEqual())
      return failure();
    return failure(parser.parseOperand(params.emplace_back()) || parser.parseColonType(paramTypes.emplace_back()));
  };
  auto parseArg = [&]() -> ParseResult {
    isMut.push_back(succeeded(parser.parseOptionalKeyword("mut")));
    return failure(parser.parseOperand(args.emplace_back()) || parser.parseColonType(argTypes.emplace_back()));
  };
  using Delimiter = OpAsmParser::Delimiter;
  if (parser.parseAttribute(kernel) || parser.parseCommaSeparatedList(Delimiter::OptionalSquare, parseParam) ||
      parser.parseCommaSeparatedList(Delimiter::Paren, parseArg))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("grid")) && parser.parseOperandList(grid, Delimiter::Paren))
    return failure();
  if (parser.parseOptionalAttrDict(result.attributes))
    return failure();

  auto &properties = result.getOrAddProperties<Properties>();
  properties.kernel = kernel;
  properties.param_names = builder.getArrayAttr(names);
  properties.param_at_least = builder.getDenseBoolArrayAttr(atLeast);
  properties.arg_mut = builder.getDenseBoolArrayAttr(isMut);
  properties.operandSegmentSizes = {static_cast<int32_t>(params.size()), static_cast<int32_t>(args.size()),
                                    static_cast<int32_t>(grid.size())};
  SMLoc loc = parser.getNameLoc();
  return failure(parser.resolveOperands(params, paramTypes, loc, result.operands) ||
                 parser.resolveOperands(args, argTypes, loc, result.operands) ||
                 parser.resolveOperands(grid, builder.getI64Type(), result.operands));
}

void LaunchOp::print(OpAsmPrinter &p) {
  p << ' ' << getKernelAttr();
  if (!getParams().empty()) {
    p << " [";
    llvm::interleaveComma(llvm::enumerate(getParams()), p, [&](auto entry) {
      p.printKeywordOrString(cast<StringAttr>(getParamNames()[entry.index()]).getValue());
      p << (getParamAtLeast()[entry.index()] ? " at_least " : " = ") << entry.value() << " : "
        << entry.value().getType();
    });
    p << ']';
  }
  p << " (";
  llvm::interleaveComma(llvm::enumerate(getArgs()), p, [&](auto entry) {
    p << (getArgMut()[entry.index()] ? "mut " : "") << entry.value() << " : " << entry.value().getType();
  });
  p << ')';
  if (!getGrid().empty())
    p << " grid (" << getGrid() << ')';
  p.printOptionalAttrDict((*this)->getAttrs(),
                          {"kernel", "param_names", "param_at_least", "arg_mut", "operandSegmentSizes"});
}

LogicalResult LaunchOp::verify() {
  if (getParamNames().size() != getParams().size() || getParamAtLeast().size() != getParams().size())
    return emitOpError() << "has " << getParams().size() << " parameters but " << getParamNames().size()
                         << " names and " << getParamAtLeast().size() << " `at_least` flags";
  for (auto [param, atLeast, name] : llvm::zip(getParams(), getParamAtLeast(), getParamNames().getValue()))
    if (atLeast && !param.getType().isInteger(64))
      return emitOpError() << "parameter " << name << " is `at_least` a value of type " << param.getType()
                           << ", expected i64";
  if (getArgMut().size() != getArgs().size())
    return emitOpError() << "has " << getArgs().size() << " arguments but " << getArgMut().size() << " `mut` flags";
  for (auto [i, arg, isMut] : llvm::enumerate(getArgs(), getArgMut()))
    if (isMut && !isa<TensorType>(arg.getType()))
      return emitOpError() << "argument " << i << " is `mut` but has type " << arg.getType();
  if (getGrid().size() > 3)
    return emitOpError() << "has a grid of " << getGrid().size() << " extents, at most 3 are possible";
  return success();
}

} // namespace kpkg::plan_ir
