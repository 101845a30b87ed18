// Partitions the ops of a kernel among roles of warps: a graph of ops with costs, cut into roles by channels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/analysis/CopiedOperands.h"

namespace kpkg::kgpu {

enum class Role { ProducerWarp, Producers, Consumers };

/// What an op costs each time it runs.
struct OpCost {
  int64_t copiedBytes = 0;  ///< that the TMA writes to shared memory
  int64_t tensorCycles = 0; ///< of all tensor cores of a multiprocessor
  int64_t fp32Cycles = 0;   ///< of its FP32 units
  int64_t sfuCycles = 0;    ///< of its special function units
  int64_t registers = 0;    ///< of 32 bits, for accumulators

  bool computes() const { return tensorCycles + fp32Cycles + sfuCycles != 0; }
  OpCost &operator+=(const OpCost &other);
};
OpCost costOf(mlir::Operation *op);

/// The kind of a channel decides how its slots are filled and emptied.
enum class ChannelKind {
  Copy,      ///< the producer warp copies operands by tensor maps
  Exchanged, ///< consumer warpgroups compute parts of a tile, and read all of it
  Published, ///< the producer warpgroup computes an operand of the consumers' products
  Value,     ///< the producer warpgroup computes a tile that consumers load to registers
};

/// An edge of the graph between two roles: tiles pass through the slots of a ring buffer.
struct Channel {
  ChannelKind kind;
  llvm::SmallVector<SharedType, 2> slotTypes = {}; ///< of one slot: a buffer for each tile that passes at once
  llvm::SmallVector<unsigned> streams = {};        ///< of a copy: the streams that share the ring
  unsigned depth = 0;                              ///< of a copy: loops around it
  mlir::Value tile = {};                           ///< of other kinds: the tile
  llvm::SmallVector<tile::DotOp, 1> readers = {};  ///< of other kinds: products with the tile as their left operand

  // What planChannels() chooses.
  int64_t slots = 0;
  int64_t parts = 1; ///< a tile in two parts has two rings: products of one part run while the other is computed
  int64_t delay = 0; ///< iterations from the tile's computation to the product

  int64_t bytes() const; ///< of one slot
};

struct RolePartition {
  std::vector<StreamedDot> products;
  std::vector<Stream> streams;
  std::vector<Channel> channels; ///< copies first, then as their tiles are needed
  /// Stores that stay with the consumers although a producer warpgroup exists: they depend on the consumers' products.
  llvm::DenseSet<mlir::Operation *> consumerStores;
  std::array<OpCost, 3> work; ///< of each role, in an iteration with products

  llvm::SmallVector<Channel *> channelsOf(ChannelKind kind);
};

/// Returns whether the op stores a tile to memory.
bool isStore(mlir::Operation *op);

/// Partitions a kernel with layouts whose launch has `consumers`. Reports an error if its products cannot be divided.
///
/// Operands that the TMA can copy go to the producer warp. Products go to the consumers. If the launch has a producer
/// warpgroup, it gets the products whose operands are all copied, and the consumers keep those with a computed operand.
/// An op that depends on a consumers' product goes to the consumers. Another op that depends on a product goes to the
/// producer warpgroup. Ops that depend on no product cost less than a channel, and run in each role that needs them.
///
/// A channel cuts an edge where the tile is smallest: before ops that compute nothing, which the reader repeats.
mlir::FailureOr<RolePartition> partitionRoles(tile::KernelOp kernel);

} // namespace kpkg::kgpu
