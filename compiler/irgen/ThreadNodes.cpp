// Generates the nodes that only kernels at thread level have, as ops of the tile dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/irgen/ThreadNodes.h"
#include "dialect/tile/ir/ThreadOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kpkg::compiler {

using hir::Kind;

mlir::Value elementOf(OpBuilder &builder, Location loc, mlir::Value view, ValueRange indices) {
  if (indices.empty())
    return view;
  auto dims = llvm::to_vector(llvm::seq<int64_t>(indices.size()));
  return tile::DropOp::create(builder, loc, view, dims, indices);
}

/// Returns the number of the thread along an axis, or in the block if the axis is negative.
static mlir::Value threadIndex(OpBuilder &builder, Location loc, int64_t axis, const ThreadBlock &threads) {
  mlir::Value thread = tile::ThreadIdOp::create(builder, loc, builder.getIndexType());
  if (axis < 0)
    return thread;
  auto number = [&](int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); };
  int64_t before = 1;
  for (int64_t other = 0; other < axis; ++other)
    before *= threads.extents[size_t(other)];
  int64_t extent = threads.extents[size_t(axis)];
  if (extent == 1)
    return number(0);
  if (before != 1)
    thread = arith::DivUIOp::create(builder, loc, thread, number(before));
  if (before * extent != threads.count())
    thread = arith::RemUIOp::create(builder, loc, thread, number(extent));
  return thread;
}

mlir::Value threadNode(OpBuilder &builder, Location loc, const hir::Node &node, ValueRange operands,
                       const ThreadBlock &threads) {
  switch (node.kind) {
  case Kind::ThreadIndex:
    return threadIndex(builder, loc, node.ints[0], threads);
  case Kind::ClusterRank:
    return tile::ClusterRankOp::create(builder, loc, builder.getIndexType());
  case Kind::SharedOfRank: {
    // A rank outside of the cluster is taken modulo its size.
    mlir::Value size = arith::ConstantIndexOp::create(builder, loc, threads.cluster);
    mlir::Value rank = arith::RemUIOp::create(builder, loc, operands[1], size);
    return tile::SharedOfRankOp::create(builder, loc, operands[0].getType(), operands[0], rank);
  }
  case Kind::SetElement:
    tile::StoreOp::create(builder, loc, operands.back(),
                          elementOf(builder, loc, operands.front(), operands.drop_front().drop_back()), ValueRange());
    return {};
  case Kind::Barrier:
    tile::BarrierOp::create(builder, loc, tile::ThreadScope(node.ints[0]));
    return {};
  case Kind::Shuffle: {
    mlir::Value by = arith::IndexCastOp::create(builder, loc, builder.getI32Type(), operands[1]);
    return tile::ShuffleOp::create(builder, loc, operands[0].getType(), tile::ShuffleKind(node.ints[0]), operands[0],
                                   by);
  }
  case Kind::Vote: {
    auto kind = tile::VoteKind(node.ints[0]);
    mlir::Type answer = kind == tile::VoteKind::Ballot ? builder.getI32Type() : builder.getI1Type();
    return tile::VoteOp::create(builder, loc, answer, kind, operands[0]);
  }
  case Kind::CopyAsync: {
    size_t rank = size_t(node.ints[1]);
    tile::CopyAsyncOp::create(builder, loc, uint64_t(node.ints[0]), operands[0], operands.slice(1, rank),
                              operands[1 + rank], operands.drop_front(2 + rank));
    return {};
  }
  case Kind::CopyCommit:
    tile::CopyCommitOp::create(builder, loc);
    return {};
  case Kind::CopyWait:
    tile::CopyWaitOp::create(builder, loc, uint64_t(node.ints[0]));
    return {};
  default:
    llvm_unreachable("a node that does not belong to a thread");
  }
}

mlir::Operation *threadMma(OpBuilder &builder, Location loc, ValueRange operands) {
  size_t right = (operands.size() - 4) / 3, left = 2 * right; // with 4 sums
  SmallVector<mlir::Type> sums(4, builder.getF32Type());
  return tile::ThreadMmaOp::create(builder, loc, sums, operands.take_front(left), operands.slice(left, right),
                                   operands.drop_front(left + right));
}

} // namespace kpkg::compiler
