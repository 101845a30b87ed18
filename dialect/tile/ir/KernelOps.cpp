// Implements text forms, builders and verifiers of kernels, the grid and the persistent loop.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/ir/ThreadOps.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace kpkg::tile;

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name, TypeRange arguments) {
  OpBuilder::InsertionGuard guard(builder);
  state.addAttribute(getSymNameAttrName(state.name), builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(builder.getFunctionType(arguments, {})));
  Block *entry = builder.createBlock(state.addRegion());
  entry->addArguments(arguments, SmallVector<Location>(arguments.size(), state.location));
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> arguments, ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag,
                      std::string &) { return builder.getFunctionType(arguments, results); };
  return function_interface_impl::parseFunctionOp(parser, result, /*allowVariadic=*/false,
                                                  getFunctionTypeAttrName(result.name), buildType,
                                                  getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void KernelOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
                                           getArgAttrsAttrName(), getResAttrsAttrName());
}

bool KernelOp::isPersistent() {
  return getBody().walk([](ForTilesOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

LogicalResult KernelOp::verify() {
  if (!getResultTypes().empty())
    return emitOpError("cannot return values");
  if (getBody().empty())
    return emitOpError("must have a body");
  for (auto [index, type] : llvm::enumerate(getArgumentTypes()))
    if (!isa<ViewType>(type) && !isElementType(type))
      return emitOpError() << "argument " << index << " must be a view or a scalar, not " << type;
  return success();
}

/// Returns whether an op makes a view of memory that a lowering finds: a part of another one, or memory of the block.
/// Where a target is chosen, its dialect views that memory.
static bool makesView(Operation *op, bool hasTarget) {
  StringRef targetDialect = StringRef(kTargetAttribute).split('.').first;
  return isa<DropOp, SliceOp, ScratchOp, SharedOfRankOp>(op) ||
         (hasTarget && op->getName().getDialectNamespace() == targetDialect);
}

/// Verifies that views come only from arguments and ops that make them, so that a lowering always finds the memory of a
/// view.
LogicalResult KernelOp::verifyRegions() {
  if (!getBody().hasOneBlock())
    return emitOpError("must have one block; control flow inside is `scf`");
  if (failed(verifyLevel(*this)))
    return failure();
  bool hasLayouts = (*this)->hasAttr(kTargetAttribute);
  WalkResult result = getBody().walk([&](Operation *op) {
    if (!makesView(op, hasLayouts) && llvm::any_of(op->getResultTypes(), llvm::IsaPred<ViewType>)) {
      op->emitOpError("cannot make a view; only kernel arguments, `tile.drop`, `tile.slice` and `tile.scratch` do");
      return WalkResult::interrupt();
    }
    auto hasEncoding = [](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor && tensor.getEncoding();
    };
    if (!hasLayouts && llvm::any_of(op->getResultTypes(), hasEncoding)) {
      op->emitOpError() << "has a layout in a kernel without a '" << kTargetAttribute << "' attribute";
      return WalkResult::interrupt();
    }
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (llvm::any_of(block.getArgumentTypes(), llvm::IsaPred<ViewType>)) {
          op->emitOpError("cannot pass a view as an argument of its region");
          return WalkResult::interrupt();
        }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

void ForTilesOp::build(OpBuilder &builder, OperationState &state, ValueRange counts) {
  OpBuilder::InsertionGuard guard(builder);
  state.addOperands(counts);
  Region *body = state.addRegion();
  Block *block = builder.createBlock(body);
  for (Value count : counts)
    block->addArgument(builder.getIndexType(), count.getLoc());
  ensureTerminator(*body, builder, state.location);
}

ParseResult ForTilesOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> coordinates;
  SmallVector<OpAsmParser::UnresolvedOperand> counts;
  Type index = parser.getBuilder().getIndexType();
  if (parser.parseArgumentList(coordinates, OpAsmParser::Delimiter::Paren) || parser.parseKeyword("to") ||
      parser.parseOperandList(counts, OpAsmParser::Delimiter::Paren) ||
      parser.resolveOperands(counts, index, result.operands) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  for (OpAsmParser::Argument &coordinate : coordinates)
    coordinate.type = index;
  Region *body = result.addRegion();
  if (parser.parseRegion(*body, coordinates))
    return failure();
  ensureTerminator(*body, parser.getBuilder(), result.location);
  return success();
}

void ForTilesOp::print(OpAsmPrinter &printer) {
  printer << " (";
  llvm::interleaveComma(getCoordinates(), printer,
                        [&](BlockArgument argument) { printer.printRegionArgument(argument, {}, true); });
  printer << ") to (" << getCounts() << ")";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/false);
}

SmallVector<Region *> ForTilesOp::getLoopRegions() { return {&getBody()}; }

LogicalResult ForTilesOp::verifyRegions() {
  if (getCounts().empty())
    return emitOpError("needs at least one count");
  if (getBody().getArgumentTypes() != TypeRange(getCounts().getTypes()))
    return emitOpError() << "has " << getCounts().size()
                         << " counts, so its body takes as many arguments of type index";
  if (!cast<YieldOp>(getBody().front().getTerminator()).getValues().empty())
    return emitOpError("yields no values");
  if ((*this)->getParentOfType<ForTilesOp>())
    return emitOpError("cannot be inside another `tile.for_tiles`");
  return success();
}

LogicalResult PrintOp::verify() {
  if (size_t holes = getFormat().count("{}"); holes != getValues().size())
    return emitOpError() << "format has " << holes << " `{}` for " << getValues().size() << " values";
  return success();
}
