// The kgpu dialect, its attributes, types and ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/Partial.h"
#include "dialect/kgpu/ir/TargetModel.h"
#include "dialect/layout/Layout.h"
#include "dialect/layout/Shared.h"
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"

namespace kpkg::kgpu {
/// The launch attributes of a kernel; the description of the dialect explains them. `kgpu.target` is
/// tile::kTargetAttribute.
inline constexpr llvm::StringLiteral kThreadsAttribute = "kgpu.threads";
inline constexpr llvm::StringLiteral kBlocksAttribute = "kgpu.blocks";
inline constexpr llvm::StringLiteral kClusterAttribute = "kgpu.cluster";
inline constexpr llvm::StringLiteral kEarlyLoadsAttribute = "kgpu.early_loads";
inline constexpr llvm::StringLiteral kPrefetchAttribute = "kgpu.prefetch";
inline constexpr llvm::StringLiteral kOverlapsAttribute = "kgpu.overlaps";
inline constexpr llvm::StringLiteral kPeelsAttribute = "kgpu.peels";
inline constexpr llvm::StringLiteral kMinCtasAttribute = "kgpu.min_ctas";
inline constexpr llvm::StringLiteral kPersistentAttribute = "kgpu.persistent";
inline constexpr llvm::StringLiteral kSharedAttribute = "kgpu.shared";
inline constexpr llvm::StringLiteral kConsumersAttribute = "kgpu.consumers";
inline constexpr llvm::StringLiteral kProducersAttribute = "kgpu.producers";
inline constexpr llvm::StringLiteral kLoadRegistersAttribute = "kgpu.load_registers";
/// An array of #kgpu.tensor_map.
inline constexpr llvm::StringLiteral kTensorMapsAttribute = "kgpu.tensor_maps";
inline constexpr llvm::StringLiteral kDynamicAttribute = "kgpu.dynamic";
inline constexpr llvm::StringLiteral kStagesAttribute = "kgpu.stages";

inline constexpr unsigned kWarpgroupThreads = 128;
/// Number of tile counters of a kernel with `kgpu.dynamic`: as many of its launches can run at once, each with its
/// own.
inline constexpr int64_t kCounters = 4096;

/// The launch configuration of a kernel.
struct Launch {
  unsigned threads = 0; ///< per CTA; 0 = not configured yet
  unsigned blocks = 1;  ///< kernel blocks per CTA
  unsigned cluster = 1; ///< CTAs per kernel block; with `consumers`, CTAs with a tile each that multicast operands
  unsigned minCtas = 0; ///< per SM; 0 = no requirement
  bool persistent = false;
  bool earlyLoads = false; ///< data that every block reads is loaded before anything waits
  bool prefetch = false;   ///< loops load one iteration ahead
  bool overlaps = false;   ///< starts while the preceding kernel ends, and waits for its end itself
  bool peels = false;      ///< iterations of loops with products that never take a branch have a loop of their own
  bool dynamic = false;    ///< with `consumers`: CTAs take tiles from a dynamic tile scheduler
  int64_t shared = 0;      ///< bytes
  unsigned consumers = 0;  ///< consumer warpgroups, beside one with the producer warp; 0 = no roles
  unsigned producers = 0;  ///< with `consumers`: producer warpgroups, 0 or 1
  unsigned loadRegisters =
      0;               ///< with `consumers`: registers per thread of the producer warp's warpgroup; 0 = by its code
  unsigned stages = 0; ///< iterations of a loop whose operands are in shared memory at once; 0 = one, without a ring
  bool operator==(const Launch &other) const = default;

  /// Threads of a kernel block within one CTA; with roles, only those of the consumers.
  unsigned threadsOfBlock() const { return consumers ? consumers * kWarpgroupThreads : threads / blocks; }
  /// Warpgroups of a kernel with roles that compute.
  unsigned computing() const { return consumers + producers; }
  /// CTAs that hold a tile together.
  unsigned ctas() const { return consumers ? 1 : cluster; }
  unsigned lanes() const { return std::min(threadsOfBlock(), 32u); }
  unsigned warps() const { return threadsOfBlock() / lanes(); }
  /// The largest number of warps in a layout of this kernel, a power of two. In accumulators of three warpgroups the
  /// last quarter is padding, which no warp holds.
  unsigned layoutWarps() const { return llvm::PowerOf2Ceil(warps()); }
  /// Warps over which all other tiles are distributed; further warps hold copies.
  unsigned spreadWarps() const { return llvm::isPowerOf2_32(warps()) ? warps() : kWarpgroupThreads / 32; }
};

/// Reads and writes the launch attributes. Attributes with their default value are not written.
Launch getLaunch(tile::KernelOp kernel);
void setLaunch(tile::KernelOp kernel, const Launch &launch);

/// An access of one op to one buffer.
struct SharedMemoryAccess {
  enum class Scope {
    Thread, ///< every thread accesses only bytes that no other thread accesses through this layout
    Cta,    ///< any thread of the CTA
    Ring,   ///< the same, but to a slot that no thread reads before the next iteration of the surrounding loop
    Cluster ///< the buffers of all CTAs of the cluster
  };
  mlir::Value buffer;
  bool isWrite = false;
  Scope scope = Scope::Cta;
};
} // namespace kpkg::kgpu

#include "dialect/kgpu/ir/KgpuDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialect/kgpu/ir/KgpuAttributes.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/kgpu/ir/KgpuTypes.h.inc"

#include "dialect/kgpu/ir/KgpuInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialect/kgpu/ir/KgpuOps.h.inc"

namespace kpkg::kgpu {
/// Returns the target of a kernel; the kernel must have one.
const TargetModel &targetOf(tile::KernelOp kernel);
/// Checks that `window` names kernel arguments of the required types, and that it suits a view like `view`. Reports an
/// error at the kernel otherwise.
mlir::LogicalResult verifyWindow(tile::KernelOp kernel, tile::ViewType view, WindowAttr window);
/// Returns the kernel's tensor maps, in the order of its parameters.
llvm::SmallVector<TensorMapAttr> tensorMapsOf(tile::KernelOp kernel);
/// Returns the index of `map` among the kernel's tensor maps, and adds the map if the kernel lacks it.
unsigned addTensorMap(tile::KernelOp kernel, TensorMapAttr map);
/// Returns the layout of a tile; the tile must have one.
const layout::Layout &layoutOf(mlir::Type tile);
inline const layout::Layout &layoutOf(mlir::Value tile) { return layoutOf(tile.getType()); }
bool hasLayout(mlir::Type type);
/// Returns the type `tile` with this layout in place of its own, if any.
mlir::RankedTensorType withLayout(mlir::Type tile, const layout::Layout &layout);
/// Returns the buffer of which the op's result is a part or an alias. Returns null for other ops and for null.
mlir::Value aliasedBuffer(mlir::Operation *op);
/// Returns the dimension along which a buffer is divided into panels of 128 bytes, in the TMA's 128-byte swizzle, as
/// wgmma reads them. Returns nothing for other placements.
std::optional<unsigned> panelDim(SharedType buffer);
/// Returns whether a buffer is one panel with rows of 64 bytes, in the TMA's 64-byte swizzle. Products also take it as
/// a left operand.
bool isNarrowPanel(SharedType buffer);
/// Returns panels of 128 bytes along `panelDim` of a two-dimensional tile; the last panel may reach beyond the tile.
/// Returns nothing if panels cannot have so many rows.
std::optional<layout::SharedLayout> panelsOf(llvm::ArrayRef<int64_t> shape, unsigned panelDim, unsigned elementBytes);
/// Returns whether wgmma multiplies elements of this type into this accumulator type; f32 counts as tf32. Operands of
/// 16-bit elements may be contiguous along either dimension, others only along K.
bool isWgmmaElement(mlir::Type element, mlir::Type sum);
/// Returns whether `kgpu.exchange` can move a tile in this layout. All lanes of one warp must hold each element, and
/// every warp of the cluster must hold some.
bool canExchange(const layout::Layout &part, mlir::Type element, const Launch &launch);
/// Returns the type of a buffer of `slots` consecutive slots, each aligned as `slot` requires.
SharedType ringOf(int64_t slots, SharedType slot);
/// Returns the bytes of an element in memory: index takes 8, i1 takes 1.
int64_t elementBytes(mlir::Type element);
} // namespace kpkg::kgpu
