// Implements text forms and verifiers of the ops of kernels at thread level.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/ir/ThreadOps.h"
#include "dialect/tile/ir/KernelAttributes.h"

using namespace mlir;
using namespace kpkg::tile;

static ParseResult parseAtomicKind(OpAsmParser &parser, AtomicKindAttr &kind) {
  StringRef name;
  SMLoc place = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  std::optional<AtomicKind> known = symbolizeAtomicKind(name);
  if (!known)
    return parser.emitError(place) << "there is no atomic update '" << name << "'";
  kind = AtomicKindAttr::get(parser.getContext(), *known);
  return success();
}

static void printAtomicKind(OpAsmPrinter &printer, Operation *, AtomicKindAttr kind) {
  printer << stringifyAtomicKind(kind.getValue());
}

#include "dialect/tile/ir/ThreadEnums.cpp.inc"
#define GET_OP_CLASSES
#include "dialect/tile/ir/ThreadOps.cpp.inc"

void kpkg::tile::setThreads(KernelOp kernel, ArrayRef<int64_t> extents, int64_t cluster) {
  Builder builder(kernel.getContext());
  kernel->setAttr(threads, builder.getDenseI64ArrayAttr(extents));
  if (cluster > 1)
    kernel->setAttr(clusterBlocks, builder.getI64IntegerAttr(cluster));
}

bool kpkg::tile::isOfThreads(KernelOp kernel) { return kernel->hasAttr(threads); }

int64_t kpkg::tile::threadCount(KernelOp kernel) {
  return llvm::product_of(kernel->getAttrOfType<DenseI64ArrayAttr>(threads).asArrayRef());
}

int64_t kpkg::tile::clusterSize(KernelOp kernel) {
  auto blocks = kernel->getAttrOfType<IntegerAttr>(clusterBlocks);
  return blocks ? blocks.getInt() : 1;
}

LogicalResult kpkg::tile::verifyLevel(KernelOp kernel) {
  if (isOfThreads(kernel)) {
    auto extents = kernel->getAttrOfType<DenseI64ArrayAttr>(threads);
    if (!extents || extents.size() != 3 || llvm::any_of(extents.asArrayRef(), [](int64_t n) { return n <= 0; }))
      return kernel.emitOpError() << "needs three positive extents in '" << threads << "'";
  }
  WalkResult result = kernel.getBody().walk([&](Operation *op) {
    if (isThreadOp(op) && !isOfThreads(kernel)) {
      op->emitOpError() << "is in a kernel without '" << threads << "'";
      return WalkResult::interrupt();
    }
    if (isOfThreads(kernel) && llvm::any_of(op->getResultTypes(), llvm::IsaPred<TensorType>)) {
      op->emitOpError("makes a tile in a kernel at thread level");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult VoteOp::verify() {
  if (getResult().getType().isInteger(32) != (getKind() == VoteKind::Ballot))
    return emitOpError() << "returns " << getResult().getType();
  return success();
}

LogicalResult AtomicElementOp::verify() {
  ViewType view = getView().getType();
  if (view.getRank() != 0 || !view.getIsMut())
    return emitOpError() << "updates an element of a `mut` view of rank 0, not of " << view;
  if ((getKind() == AtomicKind::CompareExchange) != bool(getExpected()))
    return emitOpError() << "has `expected` if and only if it is a compare_exchange";
  for (Value other : {getValue(), getExpected(), getOld()})
    if (other && other.getType() != view.getElementType())
      return emitOpError() << "moves " << other.getType() << " but the view holds " << view.getElementType();
  return success();
}

LogicalResult CopyAsyncOp::verify() {
  ViewType source = getSource().getType(), target = getTarget().getType();
  if (source.getElementType() != target.getElementType())
    return emitOpError() << "copies " << source.getElementType() << " to " << target.getElementType();
  if (int64_t(getFrom().size()) != source.getRank() || int64_t(getTo().size()) != target.getRank() ||
      getFrom().empty() || getTo().empty())
    return emitOpError() << "has " << getFrom().size() << " and " << getTo().size() << " coordinates for views of rank "
                         << source.getRank() << " and " << target.getRank();
  if (!target.getIsMut())
    return emitOpError() << "writes to a view that is not `mut`: " << target;
  int64_t bytes = int64_t(getCount()) * source.getElementBytes();
  if (bytes != 4 && bytes != 8 && bytes != 16)
    return emitOpError() << "copies " << bytes << " bytes; it needs 4, 8 or 16";
  return success();
}

ParseResult ThreadMmaOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> a, b, c;
  Type element;
  if (parser.parseOperandList(a) || parser.parseKeyword("by") || parser.parseOperandList(b) ||
      parser.parseKeyword("plus") || parser.parseOperandList(c) || parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(element))
    return failure();
  Type f32 = parser.getBuilder().getF32Type();
  if (parser.resolveOperands(a, element, result.operands) || parser.resolveOperands(b, element, result.operands) ||
      parser.resolveOperands(c, f32, result.operands))
    return failure();
  result.getOrAddProperties<Properties>().operandSegmentSizes = {int32_t(a.size()), int32_t(b.size()),
                                                                 int32_t(c.size())};
  result.addTypes(SmallVector<Type>(4, f32));
  return success();
}

void ThreadMmaOp::print(OpAsmPrinter &printer) {
  printer << " " << getA() << " by " << getB() << " plus " << getC();
  printer.printOptionalAttrDict((*this)->getAttrs(), {"operandSegmentSizes"});
  printer << " : " << getA().front().getType();
}

LogicalResult ThreadMmaOp::verify() {
  if (getA().empty())
    return emitOpError("has no elements");
  Type element = getA().front().getType();
  if (!element.isF32() && !element.isF16() && !element.isBF16())
    return emitOpError() << "multiplies f16, bf16 or f32, not " << element;
  auto isOther = [&](Type type) { return type != element; };
  if (llvm::any_of(getA().getTypes(), isOther) || llvm::any_of(getB().getTypes(), isOther))
    return emitOpError() << "multiplies elements of several types";
  size_t wanted = element.isF32() ? 4 : 8;
  if (getA().size() != wanted || getB().size() != wanted / 2 || getC().size() != 4 || getSums().size() != 4)
    return emitOpError() << "has " << getA().size() << ", " << getB().size() << " and " << getC().size()
                         << " elements, expected " << wanted << ", " << wanted / 2 << " and 4";
  return success();
}
