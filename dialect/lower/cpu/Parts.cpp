// Emits parts of tiles, and tiles that are joined from parts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/KernelEmitter.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace kpkg::lower::cpu {

static ArrayRef<int64_t> shapeOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getShape(); }

/// Emits a vector of a tile that another op computes, lane by lane: each lane's element of the operand is at
/// `source(position of the lane)`. Lanes past the tile's end read its last element.
Value KernelEmitter::emitByLanes(Value tile, const Position &position, llvm::function_ref<Position(Position)> source) {
  Value operand = tile.getDefiningOp()->getOperand(0);
  Value result, limit = indexConstant(shapeOf(tile)[position.vector] - 1);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Position one = position;
    one.vector = -1;
    one.index[position.vector] = smin(add(position.index[position.vector], indexConstant(lane)), limit);
    Value element = emit(operand, source(one));
    if (!result)
      result = constant(builder.getZeroAttr(VectorType::get({lanes}, element.getType())));
    result = hoisted({element, result}, [&]() -> Value {
      return vector::InsertOp::create(builder, loc, element, result, ArrayRef<int64_t>{lane});
    });
  }
  return result;
}

Value KernelEmitter::emitExtract(tile::ExtractOp op, const Position &position) {
  int dim = position.vector;
  if (dim >= 0 && op.getSteps()[dim] != 1)
    return emitByLanes(op.getResult(), position, [&](Position one) { return operandPosition(op, op.getValue(), one); });
  llvm::SaveAndRestore aligned(alignedChunks, alignedChunks && (dim < 0 || op.getOffsets()[dim] % lanes == 0));
  return emit(op.getValue(), operandPosition(op, op.getValue(), position));
}

/// Returns where the uniform tail of an extracted tile begins, or null.
Value KernelEmitter::extractedExtent(tile::ExtractOp op, const Position &position, int dim) {
  if (op.getSteps()[dim] != 1)
    return Value();
  Value end = extentOf(op.getValue(), operandPosition(op, op.getValue(), position), dim);
  if (!end)
    return Value();
  end = smax(sub(end, indexConstant(op.getOffsets()[dim])), indexConstant(0));
  return smin(end, indexConstant(shapeOf(op.getResult())[dim]));
}

/// Writes the parts to one buffer: by vectors where the end of a row has room for whole vectors, else element by
/// element.
LogicalResult KernelEmitter::emitJoin(tile::JoinOp op) {
  ArrayRef<int64_t> shape = shapeOf(op.getResult());
  int axis = int(op.getAxis());
  Buffer whole = allocate(op.getType());
  int64_t begin = 0;
  for (Value part : op.getParts()) {
    ArrayRef<int64_t> extents = shapeOf(part);
    Buffer target = whole;
    target.pointer = elementPointer(whole.pointer, whole.element, indexConstant(begin * whole.stride[axis]));
    int along = int(extents.size()) - 1;
    while (along >= 0 && extents[along] == 1)
      --along;
    int64_t rowEnd = llvm::alignTo(shape[axis], lanes), partEnd = begin + llvm::alignTo(extents[axis], lanes);
    bool hasRoom = along < 0 || (whole.stride[along] == 1 && (along != axis || partEnd <= rowEnd));
    begin += extents[axis];
    if (hasRoom) { // Elements behind the part belong to later parts, or to no part.
      if (mlir::failed(materialise(part, target)))
        return failure();
      continue;
    }
    // Computes by vectors and copies element by element.
    if (coneCost(part) > 0 && mlir::failed(bufferOf(part)))
      return failure();
    if (mlir::failed(materialisePlanned(part, nullptr, nullptr)))
      return failure();
    openScope(nullptr);
    forEachElement(extents, -1, [&](Position position) { writeBuffer(target, position, emit(part, position)); });
    closeScope();
  }
  buffers[op.getResult()] = whole;
  return failure(failed);
}

} // namespace kpkg::lower::cpu
