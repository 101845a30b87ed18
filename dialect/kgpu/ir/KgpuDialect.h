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
/// The launch attributes of a kernel; see the description of the dialect. `kgpu.target` is tile::kTargetAttribute.
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
/// Counters of a kernel with `kgpu.dynamic`: as many launches of it can be under way at once, each with one of its own.
inline constexpr int64_t kCounters = 4096;

/// How a kernel is launched.
struct Launch {
  unsigned threads = 0; ///< of a CTA; 0 = not configured yet
  unsigned blocks = 1;  ///< kernel blocks of a CTA
  unsigned cluster = 1; ///< CTAs of a kernel block; beside `consumers`, CTAs with a tile each that share operands
  unsigned minCtas = 0; ///< of an SM; 0 = no demand
  bool persistent = false;
  bool earlyLoads = false; ///< what every block reads is loaded before anything waits
  bool prefetch = false;   ///< loops load one iteration ahead
  bool overlaps = false;   ///< starts while the kernel in front of it ends, and waits for that itself
  bool peels = false;      ///< iterations of loops with products that make no choice have a loop of their own
  bool dynamic = false;    ///< beside `consumers`: a CTA that is done with a tile takes the next one that no other has
  int64_t shared = 0;      ///< bytes
  unsigned consumers = 0;  ///< warpgroups that compute beside one that loads; 0 = all threads do everything
  unsigned producers = 0;  ///< beside `consumers`: warpgroups that make what products of those read; 0 or 1
  unsigned loadRegisters = 0; ///< beside `consumers`: of a thread of the producer warpgroup; 0 = by its code
  unsigned stages = 0; ///< iterations of a loop whose operands are in shared memory at once; 0 = one, without a ring
  bool operator==(const Launch &other) const = default;

  /// Threads of a kernel block within one CTA, without one that only loads.
  unsigned threadsOfBlock() const { return consumers ? consumers * kWarpgroupThreads : threads / blocks; }
  /// Warpgroups of a kernel with roles that compute something.
  unsigned computing() const { return consumers + producers; }
  /// CTAs that hold a tile together.
  unsigned ctas() const { return consumers ? 1 : cluster; }
  unsigned lanes() const { return std::min(threadsOfBlock(), 32u); }
  unsigned warps() const { return threadsOfBlock() / lanes(); }
  /// Most warps that a layout of this kernel has, a power of two. Of the sums of three warpgroups the last quarter is
  /// padding, which no warp holds.
  unsigned layoutWarps() const { return llvm::PowerOf2Ceil(warps()); }
  /// Warps over which all other tiles are spread; further ones hold copies.
  unsigned spreadWarps() const { return llvm::isPowerOf2_32(warps()) ? warps() : kWarpgroupThreads / 32; }
};

/// Reads and writes the launch attributes. Writing leaves out what has its default.
Launch getLaunch(tile::KernelOp kernel);
void setLaunch(tile::KernelOp kernel, const Launch &launch);

/// What one op does to one buffer.
struct SharedMemoryAccess {
  enum class Scope {
    Thread, ///< every thread touches only bytes that no other one touches through this layout
    Cta,    ///< any thread of the CTA
    Ring,   ///< the same, but of a slot that no thread reads before the next iteration of the loop around it
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
/// The target of a kernel that has one.
const TargetModel &targetOf(tile::KernelOp kernel);
/// Whether `window` names arguments of the kernel that have what it says, and walks over views like `view`; an error of
/// the kernel where not.
mlir::LogicalResult verifyWindow(tile::KernelOp kernel, tile::ViewType view, WindowAttr window);
/// The kernel's tensor maps, in the order of its parameters.
llvm::SmallVector<TensorMapAttr> tensorMapsOf(tile::KernelOp kernel);
/// The number of the map that is `map`, which is added where the kernel lacks it.
unsigned addTensorMap(tile::KernelOp kernel, TensorMapAttr map);
/// The layout of a tile that has one.
const layout::Layout &layoutOf(mlir::Type tile);
inline const layout::Layout &layoutOf(mlir::Value tile) { return layoutOf(tile.getType()); }
bool hasLayout(mlir::Type type);
/// `tile` with this layout in place of the one it has or lacks.
mlir::RankedTensorType withLayout(mlir::Type tile, const layout::Layout &layout);
/// The buffer of which the op's result is a part or another view; null for every other op, and for none.
mlir::Value aliasedBuffer(mlir::Operation *op);
/// The dimension along which a buffer is cut into panels of 128 bytes, as TMA's 128-byte swizzle leaves it and wgmma
/// reads it; nothing when it lies in another way.
std::optional<unsigned> panelDim(SharedType buffer);
/// Whether a buffer is one panel of rows of 64 bytes, as TMA's 64-byte swizzle leaves them: what products take as a
/// left operand too.
bool isNarrowPanel(SharedType buffer);
/// Panels of 128 bytes along `panelDim` of a tile of two dimensions; the last one may reach beyond the tile. Nothing
/// when panels cannot have so many rows.
std::optional<layout::SharedLayout> panelsOf(llvm::ArrayRef<int64_t> shape, unsigned panelDim, unsigned elementBytes);
/// Whether warpgroups multiply elements of this type into such a sum; f32 as tf32. Only operands of 16-bit elements may
/// lie along either dimension, others lie along what is summed over.
bool isWgmmaElement(mlir::Type element, mlir::Type sum);
/// Whether `kgpu.exchange` can move a tile in this layout: each element in all lanes of one warp, and all warps of the
/// cluster hold some.
bool canExchange(const layout::Layout &part, mlir::Type element, const Launch &launch);
/// A buffer of so many `slot`s, one behind the other, each aligned as `slot` needs it.
SharedType ringOf(int64_t slots, SharedType slot);
/// Bytes of an element in registers moved as memory: index 8, i1 1.
int64_t elementBytes(mlir::Type element);
} // namespace kpkg::kgpu
