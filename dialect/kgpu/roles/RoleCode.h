// The steps that give each role its code: channels of computed tiles, delayed products, and what a role does not need.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/roles/ChannelRing.h"

namespace kpkg::kgpu {

/// A tile that the producer warpgroup publishes.
struct PublishedTile {
  const Channel *channel;
  llvm::ArrayRef<ChannelRing> rings = {};     ///< one for each part
  CvtLayoutOp mark;                           ///< stands for the tile in `consumers`
  CvtLayoutOp computed = {};                  ///< stands for the tile in `producers`
  llvm::SmallVector<WgmmaOp, 1> readers = {}; ///< products that read the tile as their left operand
};

/// Makes every reader of the tile read an op of its own, which stands for the tile until the roles are separate.
CvtLayoutOp markTile(mlir::IRRewriter &rewriter, mlir::Value tile);
/// Moves the tile's computation up, to right after its last operand.
void hoistComputation(CvtLayoutOp mark);
/// Publishes the tile where `producers` computes it, and reads its slots where `consumers` needs it. Reports an error
/// if one of them does not happen in every iteration.
mlir::LogicalResult publish(mlir::IRRewriter &rewriter, PublishedTile &tile, mlir::Block &producers);
mlir::LogicalResult consume(mlir::IRRewriter &rewriter, PublishedTile &tile, mlir::Block &consumers);

/// A tile that the consumers exchange, as one of its products reads it.
struct ExchangedRead {
  const ChannelRing *ring;
  PublishAllOp publication;
  AwaitOp await = {};   ///< before `product`
  WgmmaOp product = {}; ///< the product of the transposed tile, followed by its wait
  bool isDelayed = false;
};

/// Delays the product by one iteration.
void delayProduct(mlir::IRRewriter &rewriter, const ExchangedRead &read);

/// Keeps the code of a role that leads to the effects of `isKept`, and drops the rest.
/// Of a ring whose slots this code reads, awaits and releases stay. `rings` gives the ring of each buffer of slots.
/// Does not keep ops that clear slots of `cleared`, and adds the rings of the role to it.
void stripRole(mlir::IRRewriter &rewriter, mlir::Region &role, const llvm::DenseMap<mlir::Value, mlir::Value> &rings,
               llvm::DenseSet<mlir::Value> &cleared, llvm::function_ref<bool(mlir::Operation *)> isKept);

} // namespace kpkg::kgpu
