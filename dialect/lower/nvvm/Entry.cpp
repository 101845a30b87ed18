// Emits the kernel's function: its parameters, launch bounds, and the position of this thread's block.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/LowerNvvm.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

namespace {
constexpr unsigned globalSpace = 1;
/// Size and alignment of the driver's CUtensorMap.
constexpr unsigned tensorMapBytes = 128, tensorMapAlignment = 64;

/// Appends the parameter types of one kernel argument, one word each.
void appendParameters(SmallVectorImpl<Type> &types, Type argument, Builder &builder) {
  auto view = dyn_cast<tile::ViewType>(argument);
  if (!view) {
    types.push_back(argument.isIndex() ? builder.getI64Type() : argument.isInteger(1) ? builder.getI8Type() : argument);
    return;
  }
  types.push_back(LLVM::LLVMPointerType::get(builder.getContext(), globalSpace));
  types.append(2 * view.getRank(), builder.getI64Type());
}
/// Returns the last loop, after which the next kernel may start. Returns null for kernels without loops, which end
/// soon, and for kernels with products, which are bound by computation. CTAs of the next kernel that wait beside a loop
/// slow it down: gradients of norms took 2 to 25 % longer on an H200.
Operation *lastLoopOf(tile::KernelOp kernel) {
  Operation *last = nullptr;
  for (auto loop : kernel.getBody().front().getOps<scf::ForOp>())
    last = loop;
  bool hasProducts =
      kernel
          .walk([](Operation *op) {
            return isa<tile::DotOp, kgpu::MmaOp, kgpu::WgmmaOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
  return kgpu::getLaunch(kernel).consumers != 0 || hasProducts ? nullptr : last;
}
} // namespace

LogicalResult Emitter::makeFunction() {
  SmallVector<Type> parameters;
  for (Type argument : kernel.getArgumentTypes())
    appendParameters(parameters, argument, builder);
  parameters.append(launch.dynamic ? 4 : 3, builder.getI32Type());
  numberReports();
  if (!reportNumbers.empty())
    parameters.push_back(LLVM::LLVMPointerType::get(builder.getContext(), globalSpace));
  size_t firstMap = parameters.size();
  parameters.append(kgpu::tensorMapsOf(kernel).size(), LLVM::LLVMPointerType::get(builder.getContext()));
  auto function = gpu::GPUFuncOp::create(builder, kernel.getSymName(), builder.getFunctionType(parameters, {}));
  setLaunchBounds(function, launch);
  for (size_t number = firstMap; number < parameters.size(); ++number)
    setByValue(function, number, tensorMapBytes, tensorMapAlignment);
  Block *entry = &function.getBody().front();
  builder.setInsertionPointToStart(entry);
  place.start(entry, kernel.getLoc(), launch.threadsOfBlock());

  lastLoop = lastLoopOf(kernel);
  if (launch.overlaps) {
    if (!lastLoop)
      letNextKernelStart(builder);
    waitForKernelBefore(builder);
  }

  Type index = builder.getIndexType();
  auto arguments = function.getArguments();
  unsigned next = 0;
  // Words that facts bound to 32 bits are read as such, so that LLVM computes with 32 bits wherever it can.
  auto nextIndex = [&](bool isSmall, bool isNegative) -> Value {
    Value word = arguments[next++];
    if (!isSmall)
      return arith::IndexCastOp::create(builder, index, word);
    word = arith::TruncIOp::create(builder, builder.getI32Type(), word);
    return isNegative ? arith::IndexCastOp::create(builder, index, word).getResult()
                      : arith::IndexCastUIOp::create(builder, index, word).getResult();
  };
  for (auto [number, argument] : llvm::enumerate(kernel.getBody().getArguments())) {
    auto viewType = dyn_cast<tile::ViewType>(argument.getType());
    if (!viewType) {
      Value word = arguments[next++];
      if (argument.getType().isIndex())
        word = arith::IndexCastOp::create(builder, index, word);
      else if (argument.getType().isInteger(1))
        word = arith::TruncIOp::create(builder, builder.getI1Type(), word);
      define(argument, {word});
      continue;
    }
    View part;
    part.type = viewType;
    part.pointer = arguments[next];
    if (viewType.getFacts().align > 1)
      function.setArgAttr(next, LLVM::LLVMDialect::getAlignAttrName(),
                          builder.getI64IntegerAttr(viewType.getFacts().align));
    ++next;
    bool isSmall = viewType.getFacts().index == 32;
    for (int64_t dim = 0; dim < viewType.getRank(); ++dim)
      part.shape.push_back(nextIndex(isSmall, /*isNegative=*/false));
    for (int64_t dim = 0; dim < viewType.getRank(); ++dim) {
      Value stride = nextIndex(isSmall && dim >= viewType.getFacts().outer, /*isNegative=*/true);
      part.stride.push_back(dim == viewType.getUnit() ? arith::ConstantIndexOp::create(builder, 1).getResult()
                                                      : stride);
    }
    views[argument] = part;
  }
  for (Value &extent : grid)
    extent = arith::IndexCastUIOp::create(builder, index, arguments[next++]);
  if (launch.dynamic)
    counter = addressOfCounter(builder, arguments[next++]);
  if (!reportNumbers.empty())
    report = arguments[next++];
  tensorMaps.append(arguments.begin() + firstMap, arguments.end());
  if (launch.blocks > 1)
    inGrid = arith::CmpIOp::create(builder, arith::CmpIPredicate::ult, blockId(tile::GridAxis::x), grid[0]);
  if (launch.shared > 0)
    sharedMemory = addressOfSharedMemory(builder);
  return success();
}

Value Emitter::gridDim(tile::GridAxis axis) {
  Value extent = grid[unsigned(axis)];
  // The grid of a launch counts clusters, whose blocks each have a place at thread level.
  if (!tile::isOfThreads(kernel) || axis != tile::GridAxis::x || launch.cluster == 1)
    return extent;
  return arith::MulIOp::create(builder, extent, arith::ConstantIndexOp::create(builder, launch.cluster));
}

Value Emitter::blockId(tile::GridAxis axis) {
  Value id = ctaId(builder, axis);
  if (tile::isOfThreads(kernel))
    return asIndex(id);
  if (axis == tile::GridAxis::x && launch.ctas() > 1) {
    Value size = constantOf(builder, launch.ctas());
    id = arith::DivUIOp::create(builder, id, size);
  }
  if (axis == tile::GridAxis::x && launch.blocks > 1) {
    Value blocks = constantOf(builder, launch.blocks);
    Value threads = constantOf(builder, launch.threadsOfBlock());
    Value within = arith::DivUIOp::create(builder, place.thread(), threads);
    id = arith::AddIOp::create(builder, arith::MulIOp::create(builder, id, blocks), within);
  }
  return arith::IndexCastUIOp::create(builder, builder.getIndexType(), id);
}

} // namespace kpkg::lower::nvvm
