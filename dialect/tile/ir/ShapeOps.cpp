// Implements verifiers and builders of ops that create or reshape tiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/ir/TileDialect.h"

using namespace mlir;
using namespace kpkg::tile;

static RankedTensorType tileOf(Value value) { return cast<RankedTensorType>(value.getType()); }

LogicalResult ScalarOp::verify() {
  if (int64_t elements = tileOf(getValue()).getNumElements(); elements != 1)
    return emitOpError() << "reads a tile of one element, not of " << elements;
  return success();
}

LogicalResult IotaOp::verify() {
  if (tileOf(getResult()).getRank() != 1)
    return emitOpError() << "gives a tile of rank 1, not " << getType();
  return success();
}

LogicalResult BroadcastOp::verify() {
  ArrayRef<int64_t> from = tileOf(getValue()).getShape(), to = tileOf(getResult()).getShape();
  if (from.size() != to.size())
    return emitOpError() << "keeps the rank, but goes from rank " << from.size() << " to " << to.size();
  for (auto [dim, source, target] : llvm::enumerate(from, to))
    if (source != target && source != 1)
      return emitOpError() << "cannot repeat extent " << source << " of dimension " << dim << " to " << target
                           << "; only extent 1 is repeated";
  return success();
}

LogicalResult ReshapeOp::verify() {
  int64_t from = tileOf(getValue()).getNumElements(), to = tileOf(getResult()).getNumElements();
  if (from != to)
    return emitOpError() << "keeps the elements, but goes from " << from << " to " << to;
  return success();
}

void PermuteOp::build(OpBuilder &builder, OperationState &state, Value value, ArrayRef<int64_t> permutation) {
  RankedTensorType type = tileOf(value);
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(type.getDimSize(dim));
  build(builder, state, type.clone(shape), value, permutation);
}

LogicalResult PermuteOp::verify() {
  RankedTensorType from = tileOf(getValue()), to = tileOf(getResult());
  ArrayRef<int64_t> permutation = getPermutation();
  SmallVector<bool> seen(from.getRank(), false);
  for (int64_t dim : permutation) {
    if (dim < 0 || dim >= from.getRank() || seen[dim])
      return emitOpError() << "[" << permutation << "] is not a permutation of the " << from.getRank() << " dimensions";
    seen[dim] = true;
  }
  if (permutation.size() != seen.size() || to.getRank() != from.getRank())
    return emitOpError() << "[" << permutation << "] is not a permutation of the " << from.getRank() << " dimensions";
  for (auto [index, dim] : llvm::enumerate(permutation))
    if (to.getDimSize(index) != from.getDimSize(dim))
      return emitOpError() << "dimension " << index << " of the result is dimension " << dim
                           << " of the operand, with extent " << from.getDimSize(dim) << ", not "
                           << to.getDimSize(index);
  return success();
}
