// Expands scans along axes that many threads share: each warp scans its parts, and then all scan the parts' totals.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %s = tile.scan (%v : tensor<1x65536xf32, #wide>) axis 1 {...}
// After:  %r = tile.reshape %v : tensor<1x65536xf32, #wide> -> tensor<1x512x128xf32, #parts>
//         %p, %t = kgpu.partial_scan (%r) axis 2 -> tensor<1x512x128xf32, #parts>, tensor<1x512x1xf32, #totals> {...}
//         %m = kgpu.alloc : !kgpu.smem<1x512x1xf32>;  kgpu.local_store %t, %m
//         %g = kgpu.local_load %m -> tensor<1x512x1xf32, #gathered>
//         %e, %_ = kgpu.partial_scan (%g) axis 1 exclusive -> tensor<1x512x1xf32, #gathered>, ... {...}
//         %n = kgpu.alloc : !kgpu.smem<1x512x1xf32>;  kgpu.local_store %e, %n
//         %b = kgpu.local_load %n -> tensor<1x512x1xf32, #totals>
//         %q = kgpu.put_before (%b, %p) axis 1 -> tensor<1x512x128xf32, #parts> {...}
//         %s = tile.reshape %q : tensor<1x512x128xf32, #parts> -> tensor<1x65536xf32, #wide>
//
// A part consists of adjacent elements in the registers and lanes of one warp. Totals of a cluster are sent to all of
// its CTAs.
//
// On entry: every tile has a layout.
// On exit: a scan is expanded if several CTAs share its axis, or if a warp would need many registers for the whole
// axis. Scans that are left to kgpu-localise-scans are short.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/expand/SharedTiles.h"
#include "dialect/kgpu/ir/Partial.h"
#include "dialect/kgpu/ir/Walks.h"
#include "dialect/layout/Algebra.h"
#include "dialect/layout/Builders.h"

using namespace mlir;

namespace kpkg::kgpu {

#define GEN_PASS_DEF_KGPUEXPANDSCANS
#include "dialect/kgpu/Passes.h.inc"

namespace {

using layout::Layout;
using layout::Part;

/// The most elements per lane in a warp that scans a whole axis. `kMostRepeated` holds where warps repeat each other's
/// rows, because there are fewer rows than warps. `kMostOwn` holds where each warp has rows of its own.
constexpr unsigned kMostRepeated = 32, kMostOwn = 64;

/// The shapes and layouts of a scan that is divided into parts.
struct Parts {
  SmallVector<int64_t> shape, totalsShape;
  Layout layout, totals, gathered;
  bool acrossCtas = false;
};

bool isWorthwhile(tile::ScanOp op, const Layout &wide) {
  unsigned axis = op.getAxis();
  if (wide.bitsAlong(Part::Block, axis))
    return true;
  if (!wide.bitsAlong(Part::Warp, axis))
    return false;
  auto type = cast<RankedTensorType>(op.getInputs().front().getType());
  Layout local = layout::withinWarp(type.getShape(), elementBytes(type.getElementType()),
                                    {wide.lanes(), wide.warps(), wide.blocks()}, axis);
  return local.registers() > (local.freeBits(Part::Warp) ? kMostRepeated : kMostOwn);
}

/// Returns how many adjacent elements lie below those that warps and CTAs share; 0 if a bit moves along several
/// dimensions.
int64_t lengthOfParts(const Layout &layout, unsigned axis) {
  int64_t length = 0;
  for (Part part : layout::parts)
    for (const Layout::Basis &basis : layout.bases(part)) {
      if (basis[axis] == 0)
        continue;
      if (!llvm::isPowerOf2_32(basis[axis]) || llvm::count_if(basis, [](int32_t value) { return value != 0; }) != 1)
        return 0;
      if (part == Part::Warp || part == Part::Block)
        length = length == 0 ? basis[axis] : std::min<int64_t>(length, basis[axis]);
    }
  return length;
}

std::optional<Parts> plan(tile::ScanOp op, const Layout &wide) {
  unsigned axis = op.getAxis();
  auto type = cast<RankedTensorType>(op.getInputs().front().getType());
  int64_t length = lengthOfParts(wide, axis);
  if (length == 0 || type.getDimSize(axis) % length != 0)
    return std::nullopt;
  Parts parts{SmallVector<int64_t>(type.getShape()), {}, wide, wide, wide};
  parts.shape[axis] /= length;
  parts.shape.insert(parts.shape.begin() + axis + 1, length);
  parts.totalsShape = parts.shape;
  parts.totalsShape[axis + 1] = 1;
  auto take = [](Layout &to, llvm::Expected<Layout> made) {
    std::optional<Layout> layout = llvm::expectedToOptional(std::move(made));
    to = layout.value_or(to);
    return layout.has_value();
  };
  if (!take(parts.layout, layout::reshape(wide, type.getShape(), parts.shape)) ||
      !isWithinWarp(parts.layout, axis + 1) || !take(parts.totals, layout::slice(parts.layout, axis + 1)) ||
      !take(parts.gathered, gatherLayout(parts.totals, axis, parts.shape[axis])))
    return std::nullopt;
  parts.acrossCtas = wide.bitsAlong(Part::Block, axis) != 0;
  return parts;
}

class Expansion {
public:
  Expansion(tile::ScanOp op, Parts found) : op(op), parts(std::move(found)), builder(op), loc(op.getLoc()) {}

  void run() {
    unsigned axis = op.getAxis();
    SmallVector<Value> split;
    for (Value input : op.getInputs())
      split.push_back(tile::ReshapeOp::create(builder, loc, typeOf(input, parts.shape, parts.layout), input));
    PartialScanOp own = scan(split, axis + 1, false, parts.layout, parts.totalsShape, parts.totals);
    SmallVector<Value> totals = moved(own.getTotals(), parts.gathered, parts.acrossCtas);
    SmallVector<int64_t> one(parts.totalsShape);
    one[axis] = 1;
    PartialScanOp all = scan(totals, axis, true, parts.gathered, one,
                             llvm::cantFail(layout::slice(parts.gathered, axis))); // plan() has checked this
    SmallVector<Value> operands = moved(all.getOutputs(), parts.totals, false);
    SmallVector<Type> types(own.getOutputs().getTypes());
    auto whole = PutBeforeOp::create(builder, loc, types, operands, own.getOutputs(), axis);
    copyBody<YieldOp>(op.getBody(), whole.getBody());
    for (auto [output, value] : llvm::zip_equal(op.getOutputs(), whole.getOutputs()))
      output.replaceAllUsesWith(tile::ReshapeOp::create(builder, loc, output.getType(), value));
    op.erase();
  }

private:
  static Type typeOf(Value value, ArrayRef<int64_t> shape, const Layout &layout) {
    return withLayout(RankedTensorType::get(shape, getElementTypeOrSelf(value.getType())), layout);
  }

  PartialScanOp scan(ValueRange values, unsigned axis, bool isExclusive, const Layout &layout,
                     ArrayRef<int64_t> totalsShape, const Layout &ofTotals) {
    SmallVector<Type> types, totals;
    for (Value value : values) {
      types.push_back(withLayout(value.getType(), layout));
      totals.push_back(typeOf(value, totalsShape, ofTotals));
    }
    auto made = PartialScanOp::create(builder, loc, types, totals, values, axis, isExclusive);
    copyBody<YieldOp>(op.getBody(), made.getBody());
    return made;
  }

  /// Moves the values to another layout through shared memory.
  SmallVector<Value> moved(ValueRange values, const Layout &layout, bool acrossCtas) {
    SmallVector<Value> buffers, result;
    for (Value value : values)
      buffers.push_back(storedTile(builder, loc, value, acrossCtas));
    for (auto [value, buffer] : llvm::zip_equal(values, buffers))
      result.push_back(LocalLoadOp::create(builder, loc, withLayout(value.getType(), layout), buffer));
    return result;
  }

  tile::ScanOp op;
  Parts parts;
  OpBuilder builder;
  Location loc;
};

struct ExpandScans final : impl::KgpuExpandScansBase<ExpandScans> {
  void runOnOperation() override {
    for (auto op : opsIn<tile::ScanOp>(getOperation())) {
      const Layout wide = layoutOf(op.getInputs().front());
      if (!isWorthwhile(op, wide))
        continue;
      if (std::optional<Parts> parts = plan(op, wide))
        Expansion(op, std::move(*parts)).run();
    }
  }
};

} // namespace
} // namespace kpkg::kgpu
