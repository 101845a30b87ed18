// The kgpu dialect, its attributes, types and ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/Launch.h"
#include "dialect/kgpu/ir/Partial.h"
#include "dialect/kgpu/ir/TargetModel.h"
#include "dialect/layout/Layout.h"
#include "dialect/layout/Shared.h"
#include "dialect/tile/ir/ElementBytes.h"
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"

namespace kpkg::kgpu {
/// The launch configuration of a kernel, a #kgpu.launch. Its target, `kgpu.target`, is tile::kTargetAttribute.
inline constexpr llvm::StringLiteral kLaunchAttribute = "kgpu.launch";
/// An array of #kgpu.tensor_map.
inline constexpr llvm::StringLiteral kTensorMapsAttribute = "kgpu.tensor_maps";

/// Number of tile counters of a kernel whose launch is `dynamic`: as many of its launches can run at once, each with
/// its own.
inline constexpr int64_t kCounters = 4096;

/// Reads and writes the kernel's #kgpu.launch. A kernel without one has the default launch.
Launch getLaunch(tile::KernelOp kernel);
void setLaunch(tile::KernelOp kernel, const Launch &launch);

/// An access of one op to one buffer.
struct SharedMemoryAccess {
  enum class Scope {
    Thread, ///< every thread accesses only bytes that no other thread accesses through this layout
    Cta,    ///< any thread of the CTA
    Update, ///< the same, by atomic updates, which need not wait for each other
    Ring,   ///< the same as Cta, but to a slot that no thread reads before the next iteration of the surrounding loop
    Cluster ///< the buffers of all CTAs of the cluster
  };
  mlir::Value buffer;
  bool isWrite = false;
  Scope scope = Scope::Cta;
};
} // namespace kpkg::kgpu

#include "dialect/kgpu/ir/KgpuDialect.h.inc"
#include "dialect/kgpu/ir/KgpuEnums.h.inc"
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
/// Returns the heuristics of the kernel's chip; those of the reference chip for a kernel without a chip.
const chips::Heuristics &heuristicsOf(tile::KernelOp kernel);
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
/// Returns the buffer or view of which the op's result is a part or an alias. Returns null for other ops and for null.
mlir::Value aliasedBuffer(mlir::Operation *op);
/// Returns all accesses of an op to shared memory, including those through views of buffers.
llvm::SmallVector<SharedMemoryAccess> sharedAccessesOf(mlir::Operation *op);
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
using tile::elementBytes;
} // namespace kpkg::kgpu
