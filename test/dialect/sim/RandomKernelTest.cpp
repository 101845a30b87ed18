// Tests the random kernels: they are reproducible and valid, use every op, and detect wrong implementations.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RandomCall.h"
#include "dialect/pipeline/Registration.h"
#include "dialect/tile/ir/ThreadOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

using namespace mlir;
using namespace kpkg;
using namespace kpkg::sim::test;

namespace {
struct RandomKernels : testing::Test {
  DialectRegistry registry = [] {
    DialectRegistry all;
    registerDialects(all);
    return all;
  }();
  MLIRContext context{registry, MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module = (context.loadAllAvailableDialects(), ModuleOp::create(UnknownLoc::get(&context)));
};

TEST_F(RandomKernels, SameSeedGivesTheSameKernel) {
  for (uint64_t seed : {1, 2, 3}) {
    OwningOpRef<ModuleOp> other = ModuleOp::create(UnknownLoc::get(&context));
    EXPECT_EQ(describe(generateKernel(*module, seed)), describe(generateKernel(*other, seed)));
  }
}

TEST_F(RandomKernels, UseEveryOpOfTheDialectAndRun) {
  std::set<std::string> used;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    RandomKernel kernel = generateKernel(*module, seed);
    kernel.kernel->walk([&](Operation *op) { used.insert(op->getName().getStringRef().str()); });
    if (seed > 60)
      continue;
    Memory memory = makeMemory(kernel);
    llvm::Error failed = interpret(kernel, memory, {});
    EXPECT_FALSE(bool(failed)) << llvm::toString(std::move(failed));
  }
  EXPECT_TRUE(succeeded(verify(*module)));
  // Ops of single threads, ops that only report to the host, queries whose results depend on shapes alone, and
  // unordered updates.
  std::set<std::string> unused = {"tile.print", "tile.assert", "tile.stride", "tile.atomic", "tile.add_store"};
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.getDialectNamespace() == "tile" && !name.hasTrait<tile::OfThreads>() &&
        !unused.count(name.getStringRef().str()))
      EXPECT_TRUE(used.count(name.getStringRef().str())) << name.getStringRef().str();
  for (const char *name :
       {"scf.for", "scf.if", "scf.while", "arith.truncf", "arith.fptosi", "arith.floordivsi", "math.exp"})
    EXPECT_TRUE(used.count(name)) << name;
}

TEST_F(RandomKernels, DoubleRunsStayCloseToRoundedOnes) {
  // In f64 both kinds of run are the same computation.
  int compared = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    RandomKernel kernel = generateKernel(*module, seed);
    bool onlyWide = true;
    kernel.kernel->walk([&](Operation *op) {
      for (Value value : op->getResults())
        if (auto type = dyn_cast<FloatType>(getElementTypeOrSelf(value.getType())))
          onlyWide &= type.isF64();
    });
    if (!onlyWide)
      continue;
    Memory rounded = makeMemory(kernel), wide = inDouble(kernel, rounded);
    ASSERT_FALSE(bool(interpret(kernel, rounded, {})));
    sim::Options options;
    options.inDouble = true;
    ASSERT_FALSE(bool(interpret(kernel, wide, options)));
    EXPECT_EQ(rounded, wide) << describe(kernel);
    ++compared;
  }
  EXPECT_GT(compared, 5);
}

/// Replaces `op` by an op of another kind with the same operands.
template <typename To> void become(Operation *op) {
  OpBuilder b(op);
  Operation *other = To::create(b, op->getLoc(), op->getResultTypes(), op->getOperands());
  op->replaceAllUsesWith(other);
  op->erase();
}

Value plusOne(Operation *user, Value index) {
  OpBuilder b(user);
  return arith::AddIOp::create(b, user->getLoc(), index, arith::ConstantIndexOp::create(b, user->getLoc(), 1));
}

/// An error that a lowering could make. Returns whether it changed `op`.
struct Mutation {
  const char *name;
  bool (*apply)(Operation *op);
};

template <typename From, typename To> bool swapOp(Operation *op) {
  if (!isa<From>(op))
    return false;
  become<To>(op);
  return true;
}

const Mutation kMutations[] = {
    {"load one element further",
     [](Operation *op) {
       auto load = dyn_cast<tile::LoadOp>(op);
       if (!load || load.getOffsets().empty())
         return false;
       load.getOffsetsMutable().slice(load.getOffsets().size() - 1, 1).assign(plusOne(op, load.getOffsets().back()));
       return true;
     }},
    {"store one row further",
     [](Operation *op) {
       auto store = dyn_cast<tile::StoreOp>(op);
       if (!store)
         return false;
       store.getOffsetsMutable().slice(0, 1).assign(plusOne(op, store.getOffsets().front()));
       return true;
     }},
    {"drop at the next index",
     [](Operation *op) {
       auto drop = dyn_cast<tile::DropOp>(op);
       if (!drop)
         return false;
       drop.getIndicesMutable().slice(0, 1).assign(plusOne(op, drop.getIndices().front()));
       return true;
     }},
    {"scatter without its mask",
     [](Operation *op) {
       auto scatter = dyn_cast<tile::ScatterOp>(op);
       if (!scatter || !scatter.getMask())
         return false;
       scatter.getMaskMutable().clear();
       return true;
     }},
    {"reduce by maximum instead of sum",
     [](Operation *op) {
       auto reduce = dyn_cast<tile::ReduceOp>(op);
       if (!reduce || reduce.getKind() != tile::ReduceKind::Sum)
         return false;
       reduce.setKind(tile::ReduceKind::Max);
       return true;
     }},
    {"permute moves nothing",
     [](Operation *op) {
       auto permute = dyn_cast<tile::PermuteOp>(op);
       if (!permute)
         return false;
       OpBuilder b(op);
       Value same = tile::ReshapeOp::create(b, op->getLoc(), permute.getType(), permute.getValue());
       permute.replaceAllUsesWith(same);
       op->erase();
       return true;
     }},
    {"dot forgets its accumulator",
     [](Operation *op) {
       auto dot = dyn_cast<tile::DotOp>(op);
       if (!dot)
         return false;
       OpBuilder b(op);
       auto type = cast<RankedTensorType>(dot.getType());
       dot.getAccumulatorMutable().assign(arith::ConstantOp::create(
           b, op->getLoc(), DenseElementsAttr::get(type, b.getZeroAttr(type.getElementType()))));
       return true;
     }},
    {"a loop runs once more",
     [](Operation *op) {
       auto loop = dyn_cast<scf::ForOp>(op);
       if (!loop)
         return false;
       loop.setUpperBound(plusOne(op, loop.getUpperBound()));
       return true;
     }},
    {"less becomes less or equal",
     [](Operation *op) {
       auto compare = dyn_cast<arith::CmpFOp>(op);
       if (!compare || compare.getPredicate() != arith::CmpFPredicate::OLT)
         return false;
       compare.setPredicate(arith::CmpFPredicate::OLE);
       return true;
     }},
    {"product and sum become one fma",
     [](Operation *op) {
       auto add = dyn_cast<arith::AddFOp>(op);
       auto product = add ? add.getLhs().getDefiningOp<arith::MulFOp>() : arith::MulFOp();
       if (!product)
         return false;
       OpBuilder b(op);
       Value fused = math::FmaOp::create(b, op->getLoc(), product.getLhs(), product.getRhs(), add.getRhs());
       add.replaceAllUsesWith(fused);
       op->erase();
       return true;
     }},
    {"add becomes subtract", swapOp<arith::AddFOp, arith::SubFOp>},
    {"maximum ignores NaN", swapOp<arith::MaximumFOp, arith::MaxNumFOp>},
    {"signed shift becomes unsigned", swapOp<arith::ShRSIOp, arith::ShRUIOp>},
    {"division rounds down", swapOp<arith::DivSIOp, arith::FloorDivSIOp>},
    {"sign extension becomes zero extension", swapOp<arith::ExtSIOp, arith::ExtUIOp>},
    {"floor becomes ceil", swapOp<math::FloorOp, math::CeilOp>},
    {"round to even becomes round away", swapOp<math::RoundEvenOp, math::RoundOp>},
    {"select picks the other", [](Operation *op) {
       auto select = dyn_cast<arith::SelectOp>(op);
       if (!select)
         return false;
       Value yes = select.getTrueValue(), no = select.getFalseValue();
       select.getTrueValueMutable().assign(no);
       select.getFalseValueMutable().assign(yes);
       return true;
     }}};

TEST_F(RandomKernels, MistakesAreFound) {
  for (const Mutation &mutation : kMutations) {
    int applied = 0, found = 0;
    for (uint64_t seed = 1; seed <= 1200 && found < 2; ++seed) {
      OwningOpRef<ModuleOp> scratch = ModuleOp::create(UnknownLoc::get(&context));
      RandomKernel kernel = generateKernel(*scratch, seed);
      RandomKernel wrong = kernel;
      wrong.kernel = cast<tile::KernelOp>(kernel.kernel->clone());
      OwningOpRef<Operation *> owner(wrong.kernel);
      bool changed = wrong.kernel
                         ->walk([&](Operation *op) {
                           return mutation.apply(op) ? WalkResult::interrupt() : WalkResult::advance();
                         })
                         .wasInterrupted();
      if (!changed)
        continue;
      ++applied;
      Memory memory = makeMemory(wrong);
      llvm::Error failed = interpret(wrong, memory, {});
      llvm::Expected<Expectation> expectation = Expectation::of(kernel);
      ASSERT_TRUE(bool(expectation));
      found += bool(failed) || expectation->check(kernel, memory).has_value();
      llvm::consumeError(std::move(failed));
    }
    EXPECT_EQ(found, 2) << mutation.name << ": found in " << found << " of " << applied << " kernels";
  }
}
} // namespace
