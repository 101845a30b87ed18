// Expands matrix products into mma.sync, with fragments that are read from shared memory step by step along K.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %a = tile.load %x[...] : tensor<128x32xbf16, #any>;  %b = tile.load %y[...] : tensor<32x128xbf16, #any>
//         %d = tile.dot %a, %b, %c : ..., tensor<128x128xf32, #acc>
// After:  %a = tile.load %x[...] : tensor<128x32xbf16, #copy>;  %b likewise
//         %left = kgpu.alloc : !kgpu.smem<128x32xbf16, "swizzled">;  kgpu.local_store %a, %left;  %right likewise
//         %a0 = kgpu.local_load %left at [0, 0] : tensor<128x16xbf16, #left>;  %b0 = kgpu.local_load %right at [0, 0]
//         %a1 = kgpu.local_load %left at [0, 16];  %b1 = kgpu.local_load %right at [16, 0]
//         %d0 = kgpu.mma %a0, %b0, %c;  %d = kgpu.mma %a1, %b1, %d0
//
// On entry: every tile has a layout.
// On exit: tile.dot is left only where tensor cores cannot compute it (see dotKind). The fragments of a step are
// loaded before the product of the preceding step.
//
// The buffer's layout makes copies and ldmatrix free of bank conflicts where possible. A load that feeds only the
// product gets a layout along the dimension that is contiguous in memory. Barriers are inserted later.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/AccessWidths.h"
#include "dialect/kgpu/analysis/DotLayout.h"
#include "dialect/layout/MatrixLoad.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUEXPANDMMA
#include "dialect/kgpu/Passes.h.inc"

namespace {
using layout::Layout;

/// Returns the instructions and wavefronts of all accesses to a buffer that is written once and read once.
unsigned costOf(const layout::SharedLayout &memory, const Layout &copy, const Layout &fragments) {
  unsigned cost = 0;
  auto add = [&](const layout::SharedAccess &access) {
    cost += layout::countWavefronts(access) + access.vectors.size();
  };
  add(llvm::cantFail(layout::planAccess(copy, memory)));
  if (std::optional<layout::MatrixLoad> load = layout::planMatrixLoad(fragments, memory))
    add(load->rows);
  else
    add(llvm::cantFail(layout::planAccess(fragments, memory)));
  return cost;
}

/// Chooses the layout of an operand's buffer: the library's general choice, or a swizzle of rows along `contiguous`.
/// Layouts that keep vectors of the copy contiguous are preferred, then those of lowest cost.
layout::SharedLayout memoryFor(ArrayRef<int64_t> shape, const Layout &copy, const Layout &fragments, unsigned bytes,
                               unsigned contiguous) {
  using layout::SharedLayout;
  SharedLayout best =
      SharedLayout::conflictFree(copy, layout::matrixRows(fragments, bytes, contiguous).value_or(fragments), bytes);
  unsigned least = costOf(best, copy, fragments);
  unsigned vectorBytes = copy.vectorLength(contiguous, 16 / bytes) * bytes; // of asynchronous copies
  bool keeps = keepsVectors(copy, best, contiguous, vectorBytes);
  SmallVector<int64_t> rows = {shape[1 - contiguous], shape[contiguous]};
  for (layout::Swizzle swizzle : {layout::Swizzle::B128, layout::Swizzle::B64, layout::Swizzle::B32}) {
    std::optional<SharedLayout> swizzled = llvm::expectedToOptional(SharedLayout::tma(rows, bytes, swizzle));
    if (!swizzled)
      continue;
    SharedLayout memory = contiguous == 1 ? *swizzled : layout::transposed(*swizzled);
    if (!llvm::expectedToOptional(layout::planAccess(copy, memory)) ||
        !llvm::expectedToOptional(layout::planAccess(fragments, memory)))
      continue;
    bool alsoKeeps = keepsVectors(copy, memory, contiguous, vectorBytes);
    if (unsigned cost = costOf(memory, copy, fragments); alsoKeeps > keeps || (alsoKeeps == keeps && cost < least)) {
      least = cost;
      best = memory;
      keeps = alsoKeeps;
    }
  }
  return best;
}

class Expansion {
public:
  explicit Expansion(tile::DotOp op) : op(op), launch(getLaunch(op->getParentOfType<tile::KernelOp>())), builder(op) {}

  void run() {
    auto left = cast<RankedTensorType>(op.getLhs().getType()), right = cast<RankedTensorType>(op.getRhs().getType());
    Value sum = op.getAccumulator();
    Layout accumulator = layoutOf(sum);
    if (!isMmaSyncAccumulator(accumulator)) {
      accumulator = mmaSyncAccumulator(cast<RankedTensorType>(op.getType()).getShape(), threads());
      sum = CvtLayoutOp::create(builder, op.getLoc(), withLayout(sum.getType(), accumulator), sum);
    }
    unsigned bytes = elementBytes(left.getElementType());
    int64_t depth = left.getDimSize(1), step = kMmaSyncDepthBytes / bytes;
    Value leftBuffer = stage(op.getLhs(), mmaSyncLeft(accumulator, depth, bytes));
    Value rightBuffer = stage(op.getRhs(), mmaSyncRight(accumulator, depth, bytes));
    Type leftStep = withLayout(left.clone({left.getDimSize(0), step}), mmaSyncLeft(accumulator, step, bytes));
    Type rightStep = withLayout(right.clone({step, right.getDimSize(1)}), mmaSyncRight(accumulator, step, bytes));
    auto fragments = [&](int64_t k) {
      return std::pair(loadAt(leftStep, leftBuffer, {0, k}), loadAt(rightStep, rightBuffer, {k, 0}));
    };
    auto [a, b] = fragments(0);
    for (int64_t k = 0; k < depth; k += step) {
      Value thisA = a, thisB = b;
      if (k + step < depth)
        std::tie(a, b) = fragments(k + step);
      sum = MmaOp::create(builder, op.getLoc(), sum.getType(), thisA, thisB, sum);
    }
    if (sum.getType() != op.getType())
      sum = CvtLayoutOp::create(builder, op.getLoc(), op.getType(), sum);
    builder.replaceOp(op, sum);
  }

private:
  layout::Threads threads() const { return {launch.lanes(), launch.spreadWarps(), launch.ctas()}; }

  Value loadAt(Type type, Value buffer, ArrayRef<int64_t> at) {
    return LocalLoadOp::create(builder, op.getLoc(), type, buffer, builder.getDenseI64ArrayAttr(at));
  }

  /// Assigns a load without other users the layout that suits memory. Returns the dimension along which it has
  /// vectors.
  unsigned layOut(tile::LoadOp load) {
    tile::ViewType view = load.getView().getType();
    auto type = cast<RankedTensorType>(load.getResult().getType());
    int64_t bytes = view.getElementBytes(), unit = view.getUnit();
    tile::ViewFacts facts = view.getFacts();
    bool hasVectors = unit >= 0 && facts.align % bytes == 0;
    int64_t vector =
        hasVectors ? std::clamp<int64_t>(std::min(facts.align, facts.divisible * bytes), bytes, 16) : bytes;
    unsigned fastest = unit >= 0 ? unit : 1;
    SmallVector<unsigned> order = {fastest, 1 - fastest};
    load.getResult().setType(withLayout(type, layout::coalesced(type.getShape(), bytes, threads(), vector, order)));
    return fastest;
  }

  /// Stores the operand to a buffer from which `fragments` are read.
  Value stage(Value value, const Layout &fragments) {
    auto load = value.getDefiningOp<tile::LoadOp>();
    unsigned contiguous;
    if (load && value.hasOneUse())
      contiguous = layOut(load);
    else
      contiguous = layoutOf(value).vectorLength(0, 16) > layoutOf(value).vectorLength(1, 16) ? 0 : 1;
    auto type = cast<RankedTensorType>(value.getType());
    unsigned bytes = elementBytes(type.getElementType());
    layout::SharedLayout memory = memoryFor(type.getShape(), layoutOf(value), fragments, bytes, contiguous);
    Value buffer = AllocOp::create(builder, op.getLoc(),
                                   SharedType::get(type.getShape(), type.getElementType(), memory), IntegerAttr());
    LocalStoreOp::create(builder, op.getLoc(), value, buffer);
    return buffer;
  }

  tile::DotOp op;
  Launch launch;
  IRRewriter builder;
};

struct ExpandMma final : impl::KgpuExpandMmaBase<ExpandMma> {
  void runOnOperation() override {
    SmallVector<tile::DotOp> all;
    getOperation().walk([&](tile::DotOp op) {
      if (dotKind(op) == DotKind::MmaSync)
        all.push_back(op);
    });
    for (tile::DotOp op : all)
      Expansion(op).run();
  }
};
} // namespace
} // namespace kpkg::kgpu
