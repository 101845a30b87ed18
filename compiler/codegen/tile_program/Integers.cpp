// Finds out whether the 64-bit integers of a kernel fit into the 32 bits that TPUs have.
//
// Each integer has a bound of its absolute value. It grows along the kernel's ops until nothing changes. Values that
// still grow after some rounds, such as those that a loop sums, have no bound but that of their type.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/tile_program/TileProgram.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace kpkg::compiler {

namespace {

/// The largest absolute value of an int32, which only its least value has.
constexpr uint64_t kLeast32 = uint64_t(1) << 31;
/// The bound of positions in tensors, and of what kernels compute from them as `index`. `kpkg.jax` checks the tensors.
constexpr uint64_t kPositions = uint64_t(1) << 29;
constexpr uint64_t kUnbounded = uint64_t(1) << 63;
constexpr unsigned kRounds = 4;

mlir::Type elementOf(mlir::Value value) { return mlir::getElementTypeOrSelf(value.getType()); }

bool isInteger(mlir::Value value) {
  return isa<mlir::RankedTensorType, mlir::IntegerType, mlir::IndexType>(value.getType()) &&
         elementOf(value).isIntOrIndex();
}

/// Returns the bound of every value of an integer type that has one.
uint64_t boundOf(mlir::Type element) {
  if (element.isIndex() || element.isInteger(64))
    return kUnbounded;
  unsigned width = element.getIntOrFloatBitWidth();
  return width == 1 ? 1 : uint64_t(1) << (width - 1);
}

/// Returns the bound of numbers that are computed from numbers of the call. `kpkg.jax` checks it.
uint64_t boundOfCall(mlir::Value value) {
  mlir::Type element = elementOf(value);
  return element.isIndex() ? kPositions : std::min(boundOf(element), kLeast32);
}

class Bounds {
public:
  explicit Bounds(tile::KernelOp kernel) : kernel(kernel) {
    for (mlir::Value argument : kernel.getBody().front().getArguments())
      if (isInteger(argument)) { // a number of the call, which `kpkg.jax` checks
        raise(argument, boundOfCall(argument));
        ofCall.insert(argument);
      }
    for (; changes; ++round) {
      changes = false;
      kernel.getBody().walk([&](mlir::Operation *op) { visit(op); });
    }
  }

  bool fits(mlir::Value value) { return !isInteger(value) || !elementOf(value).isInteger(64) || of(value) <= kLeast32; }

private:
  uint64_t of(mlir::Value value) const { return bounds.lookup(value); }

  uint64_t most(mlir::ValueRange values) const {
    uint64_t bound = 0;
    for (mlir::Value value : values)
      bound = std::max(bound, isInteger(value) ? of(value) : 0);
    return bound;
  }

  void raise(mlir::Value value, uint64_t bound) {
    if (!isInteger(value))
      return;
    bound = std::min(bound, boundOf(elementOf(value)));
    uint64_t &known = bounds[value];
    if (bound <= known)
      return;
    known = round < kRounds ? bound : boundOf(elementOf(value));
    changes = true;
  }

  template <typename To> void pass(mlir::ValueRange from, To &&to) {
    for (auto [source, target] : zip(from, to))
      if (isInteger(source))
        raise(target, of(source));
  }

  void visit(mlir::Operation *op) {
    if (auto loop = dyn_cast<mlir::scf::ForOp>(op)) {
      raise(loop.getInductionVar(), kPositions);
      passOn(loop.getInitArgs(), loop.getBody()->getTerminator()->getOperands(), loop.getRegionIterArgs(),
             loop.getResults());
    } else if (auto loop = dyn_cast<mlir::scf::WhileOp>(op)) {
      pass(loop.getInits(), loop.getBeforeArguments());
      pass(loop.getYieldOp().getOperands(), loop.getBeforeArguments());
      pass(loop.getConditionOp().getArgs(), loop.getAfterArguments());
      pass(loop.getConditionOp().getArgs(), loop.getResults());
    } else if (auto branch = dyn_cast<mlir::scf::IfOp>(op)) {
      for (mlir::Region &region : op->getRegions())
        if (!region.empty())
          pass(region.front().getTerminator()->getOperands(), op->getResults());
    } else if (auto loop = dyn_cast<tile::ForTilesOp>(op)) {
      for (mlir::Value coordinate : loop.getBody().front().getArguments())
        raise(coordinate, kPositions);
    } else if (isa<tile::CombineOp, tile::ScanOp>(op)) {
      mlir::Block &body = op->getRegion(0).front();
      size_t count = op->getNumResults();
      mlir::OperandRange inputs = op->getOperands().take_front(count);
      auto arguments = body.getArguments();
      passOn(inputs, body.getTerminator()->getOperands(), arguments.take_front(count), op->getResults());
      passOn(inputs, body.getTerminator()->getOperands(), arguments.drop_front(count), op->getResults());
    } else if (op->getNumResults() == 1 && isInteger(op->getResult(0))) {
      mlir::Value result = op->getResult(0);
      if (isOfCall(op)) {
        ofCall.insert(result);
        raise(result, boundOfCall(result));
      } else {
        raise(result, result.getType().isIndex() || elementOf(result).isIndex() ? indexBound(op) : bound(op));
      }
    }
  }

  template <typename To>
  void passOn(mlir::ValueRange inits, mlir::ValueRange ends, To &&arguments, mlir::ValueRange results) {
    pass(inits, arguments);
    pass(ends, arguments);
    pass(inits, results);
    pass(ends, results);
  }

  /// Returns whether the op computes with numbers of the call alone. They have 64 bits where JAX traces the kernel.
  bool isOfCall(mlir::Operation *op) const {
    return isa<mlir::arith::ArithDialect>(op->getDialect()) && op->getNumOperands() &&
           all_of(op->getOperands(),
                  [&](mlir::Value value) { return ofCall.contains(value) || matchPattern(value, mlir::m_Constant()); });
  }

  /// What a kernel computes from positions is one, too.
  uint64_t indexBound(mlir::Operation *op) const {
    if (matchPattern(op, mlir::m_Constant()))
      return constant(op);
    return most(op->getOperands()) <= kPositions || isa<mlir::arith::RemSIOp>(op) ? kPositions : kUnbounded;
  }

  static uint64_t constant(mlir::Operation *op) {
    mlir::Attribute value = op->getAttr("value");
    if (auto elements = dyn_cast<mlir::SplatElementsAttr>(value))
      value = elements.getSplatValue<mlir::Attribute>();
    auto number = dyn_cast<mlir::IntegerAttr>(value);
    return number ? number.getValue().sextOrTrunc(65).abs().getLimitedValue(kUnbounded) : kUnbounded;
  }

  /// Sums and products that are less than the type's bound do not wrap.
  static uint64_t exact(uint64_t bound, mlir::Type element) {
    uint64_t most = element.isInteger(64) ? kLeast32 : boundOf(element);
    return bound < most ? bound : kUnbounded;
  }

  uint64_t bound(mlir::Operation *op) const {
    mlir::Type element = elementOf(op->getResult(0));
    return TypeSwitch<mlir::Operation *, uint64_t>(op)
        .Case([](mlir::arith::ConstantOp constantOp) { return constant(constantOp); })
        .Case([](tile::IotaOp iota) { return uint64_t(iota.getType().getShape().back()); })
        .Case<tile::LoadOp, tile::GatherOp>([](auto) { return kLeast32; }) // docs/tpu.md has the rule
        .Case<tile::BroadcastOp, tile::SplatOp, tile::ReshapeOp, tile::PermuteOp, tile::ScalarOp, tile::JoinOp,
              mlir::arith::MaxSIOp, mlir::arith::MinSIOp, mlir::arith::ExtSIOp, mlir::arith::IndexCastOp>(
            [&](auto) { return most(op->getOperands()); })
        .Case([&](mlir::arith::SelectOp select) {
          return std::max(of(select.getTrueValue()), of(select.getFalseValue()));
        })
        .Case([&](tile::ReduceOp reduce) {
          bool chooses = reduce.getKind() == tile::ReduceKind::Max || reduce.getKind() == tile::ReduceKind::Min;
          return chooses ? of(reduce.getValue()) : kUnbounded;
        })
        .Case([&](mlir::arith::TruncIOp) {
          uint64_t given = most(op->getOperands());
          return given < boundOf(element) ? given : kUnbounded;
        })
        .Case<mlir::arith::ExtUIOp, mlir::arith::IndexCastUIOp>([&](auto) {
          mlir::Type from = elementOf(op->getOperand(0));
          return from.isInteger(1) ? 1 : from.isIndex() ? kUnbounded : 2 * boundOf(from);
        })
        .Case<mlir::arith::AddIOp, mlir::arith::SubIOp>(
            [&](auto) { return exact(SaturatingAdd(of(op->getOperand(0)), of(op->getOperand(1))), element); })
        .Case([&](mlir::arith::MulIOp) {
          return exact(SaturatingMultiply(of(op->getOperand(0)), of(op->getOperand(1))), element);
        })
        .Case<mlir::arith::AndIOp, mlir::arith::OrIOp, mlir::arith::XOrIOp>(
            [&](auto) { return most(op->getOperands()) <= kLeast32 ? kLeast32 : kUnbounded; })
        .Default([](mlir::Operation *) { return kUnbounded; });
  }

  tile::KernelOp kernel;
  DenseMap<mlir::Value, uint64_t> bounds;
  DenseSet<mlir::Value> ofCall;
  unsigned round = 0;
  bool changes = true;
};

} // namespace

std::string whyNo32Bits(tile::KernelOp kernel) {
  Bounds bounds(kernel);
  std::string why;
  kernel.getBody().walk([&](mlir::Operation *op) {
    bool fits = all_of(op->getResults(), [&](mlir::Value value) { return bounds.fits(value); });
    for (mlir::Region &region : op->getRegions())
      for (mlir::Block &block : region)
        fits &= all_of(block.getArguments(), [&](mlir::Value value) { return bounds.fits(value); });
    if (!fits)
      why = op->getName().getStringRef().str() + " of i64 that may need more than 32 bits";
    return fits ? mlir::WalkResult::advance() : mlir::WalkResult::interrupt();
  });
  return why;
}

} // namespace kpkg::compiler
