// A product on Hopper through the simulator and the schedule verifier: right as the compiler makes it, wrong in every way that it can be changed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/Passes.h"
#include "dialect/pipeline/GpuPipeline.h"
#include "dialect/pipeline/Registration.h"
#include "dialect/sim/async/Simulator.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include <array>
#include <cstring>
#include <gtest/gtest.h>

using namespace kpkg;
using namespace mlir;

namespace {

/// Two tiles of rows, the last one not whole, three steps of depth, two slots.
constexpr int64_t rows = 160, depth = 160;
constexpr const char *source = R"(
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @product(%a: !in, %b: !in, %d: !out) attributes {schedule = {stages = 2 : i32}} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %d, 0 : !out
  %columns = tile.dim %d, 1 : !out
  %depth = tile.dim %a, 1 : !in
  %tm = arith.ceildivsi %rows, %c128 : index
  %tn = arith.ceildivsi %columns, %c64 : index
  %tk = arith.ceildivsi %depth, %c64 : index
  tile.for_tiles (%i, %j) to (%tm, %tn) {
    %m = arith.muli %i, %c128 : index
    %n = arith.muli %j, %c64 : index
    %sum = scf.for %s = %c0 to %tk step %c1 iter_args(%acc = %zeros) -> tensor<128x64xf32> {
      %k = arith.muli %s, %c64 : index
      %x = tile.load %a[%m, %k] fill %zero : !in -> tensor<128x64xbf16>
      %y = tile.load %b[%k, %n] fill %zero : !in -> tensor<64x64xbf16>
      %p = tile.dot %x, %y, %acc : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      scf.yield %p : tensor<128x64xf32>
    }
    %r = arith.truncf %sum : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %r, %d[%m, %n] : tensor<128x64xbf16>, !out
  }
  tile.return
}
)";

/// Two sums of a tile over all rows of others, as gradients of attention are: products of products, operands that are read in two ways, a
/// row that arithmetic reads, loops within each other, warpgroups that take turns. %a and %b are [rows, 64], %r a row, %d is [columns, 64].
constexpr const char *chainSource = R"(
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!row = !tile.view<1xf32, unit = 0, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @chain(%a: !in, %b: !in, %r: !row, %d: !out) attributes {schedule = {stages = 2 : i32}} {
  %zero = arith.constant 0.0 : bf16
  %nought = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %none = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %a, 0 : !in
  %columns = tile.dim %d, 0 : !out
  %tn = arith.ceildivsi %columns, %c128 : index
  %tm = arith.ceildivsi %rows, %c64 : index
  tile.for_tiles (%i) to (%tn) {
    %n = arith.muli %i, %c128 : index
    %k = tile.load %a[%n, %c0] fill %zero : !in -> tensor<128x64xbf16>
    %sums:2 = scf.for %h = %c0 to %c2 step %c1 iter_args(%x0 = %zeros, %y0 = %zeros) -> (tensor<128x64xf32>, tensor<128x64xf32>) {
      %first = arith.addi %i, %h : index
      %inner:2 = scf.for %j = %first to %tm step %c1 iter_args(%x = %x0, %y = %y0) -> (tensor<128x64xf32>, tensor<128x64xf32>) {
        %m = arith.muli %j, %c64 : index
        %q = tile.load %a[%m, %c0] fill %zero : !in -> tensor<64x64xbf16>
        %g = tile.load %b[%m, %c0] fill %zero : !in -> tensor<64x64xbf16>
        %qt = tile.permute %q [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
        %gt = tile.permute %g [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
        %s = tile.dot %k, %qt, %none : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
        %t = tile.dot %k, %gt, %none : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
        %row = tile.load %r[%m] fill %nought : !row -> tensor<64xf32>
        %flat = tile.reshape %row : tensor<64xf32> -> tensor<1x64xf32>
        %wide = tile.broadcast %flat : tensor<1x64xf32> -> tensor<128x64xf32>
        %p = arith.addf %s, %wide : tensor<128x64xf32>
        %e = arith.subf %p, %t : tensor<128x64xf32>
        %pn = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xbf16>
        %en = arith.truncf %e : tensor<128x64xf32> to tensor<128x64xbf16>
        %x1 = tile.dot %pn, %g, %x : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
        %y1 = tile.dot %en, %q, %y : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
        scf.yield %x1, %y1 : tensor<128x64xf32>, tensor<128x64xf32>
      }
      scf.yield %inner#0, %inner#1 : tensor<128x64xf32>, tensor<128x64xf32>
    }
    %both = arith.subf %sums#0, %sums#1 : tensor<128x64xf32>
    %narrow = arith.truncf %both : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %narrow, %d[%n, %c0] : tensor<128x64xbf16>, !out
  }
  tile.return
}
)";

/// What warpgroups share, and sums that all tiles add to: %a and %b are [rows, 128], %d is [columns, 128], %z [rows, 128]. Some inner loops never run.
constexpr const char *sharedSource = R"(
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
!sum = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>
tile.kernel @shared(%a: !in, %b: !in, %d: !out, %z: !sum) attributes {schedule = {stages = 2 : i32}} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x128xf32>
  %none = arith.constant dense<0.0> : tensor<128x64xf32>
  %nothing = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %a, 0 : !in
  %columns = tile.dim %d, 0 : !out
  %tn = arith.ceildivsi %columns, %c128 : index
  %tm = arith.ceildivsi %rows, %c64 : index
  tile.for_tiles (%i) to (%tn) {
    %n = arith.muli %i, %c128 : index
    %k = tile.load %a[%n, %c0] fill %zero : !in -> tensor<128x128xbf16>
    %sum = scf.for %h = %c0 to %c2 step %c1 iter_args(%x0 = %zeros) -> tensor<128x128xf32> {
      %twice = arith.muli %i, %c2 : index
      %first = arith.addi %twice, %h : index
      %inner = scf.for %j = %first to %tm step %c1 iter_args(%x = %x0) -> tensor<128x128xf32> {
        %m = arith.muli %j, %c64 : index
        %q = tile.load %b[%m, %c0] fill %zero : !in -> tensor<64x128xbf16>
        %qt = tile.permute %q [1, 0] : tensor<64x128xbf16> -> tensor<128x64xbf16>
        %s = tile.dot %k, %qt, %none : tensor<128x128xbf16>, tensor<128x64xbf16>, tensor<128x64xf32>
        %p = arith.addf %s, %s : tensor<128x64xf32>
        %e = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xbf16>
        %x1 = tile.dot %e, %q, %x : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
        %et = tile.permute %e [1, 0] : tensor<128x64xbf16> -> tensor<64x128xbf16>
        %y = tile.dot %et, %k, %nothing : tensor<64x128xbf16>, tensor<128x128xbf16>, tensor<64x128xf32>
        tile.add_store %y, %z[%m, %c0] : tensor<64x128xf32>, !sum
        scf.yield %x1 : tensor<128x128xf32>
      }
      scf.yield %inner : tensor<128x128xf32>
    }
    %narrow = arith.truncf %sum : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %narrow, %d[%n, %c0] : tensor<128x128xbf16>, !out
  }
  tile.return
}
)";

/// Too large for a product that runs an iteration later: it waits for what is shared in its own.
constexpr const char *sharedAtOnceSource = R"(
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
!sum = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>
tile.kernel @merged(%a: !in, %b: !in, %v: !in, %g: !in, %d: !out, %z: !sum) attributes {schedule = {stages = 2 : i32}} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %none = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %a, 0 : !in
  %columns = tile.dim %d, 0 : !out
  %tn = arith.ceildivsi %columns, %c128 : index
  %tm = arith.ceildivsi %rows, %c128 : index
  tile.for_tiles (%i) to (%tn) {
    %n = arith.muli %i, %c128 : index
    %k = tile.load %a[%n, %c0] fill %zero : !in -> tensor<128x64xbf16>
    %w = tile.load %v[%n, %c0] fill %zero : !in -> tensor<128x64xbf16>
    %sum = scf.for %j = %c0 to %tm step %c1 iter_args(%x = %zeros) -> tensor<128x64xf32> {
      %m = arith.muli %j, %c128 : index
      %q = tile.load %b[%m, %c0] fill %zero : !in -> tensor<128x64xbf16>
      %qt = tile.permute %q [1, 0] : tensor<128x64xbf16> -> tensor<64x128xbf16>
      %s = tile.dot %k, %qt, %none : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      %u = tile.load %g[%m, %c0] fill %zero : !in -> tensor<128x64xbf16>
      %ut = tile.permute %u [1, 0] : tensor<128x64xbf16> -> tensor<64x128xbf16>
      %t = tile.dot %w, %ut, %none : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      %p = arith.mulf %s, %t : tensor<128x128xf32>
      %e = arith.truncf %p : tensor<128x128xf32> to tensor<128x128xbf16>
      %x1 = tile.dot %e, %q, %x : tensor<128x128xbf16>, tensor<128x64xbf16>, tensor<128x64xf32>
      %et = tile.permute %e [1, 0] : tensor<128x128xbf16> -> tensor<128x128xbf16>
      %y = tile.dot %et, %k, %zeros : tensor<128x128xbf16>, tensor<128x64xbf16>, tensor<128x64xf32>
      tile.add_store %y, %z[%m, %c0] : tensor<128x64xf32>, !sum
      scf.yield %x1 : tensor<128x64xf32>
    }
    %narrow = arith.truncf %sum : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %narrow, %d[%n, %c0] : tensor<128x64xbf16>, !out
  }
  tile.return
}
)";

struct Schedule : testing::Test {
  DialectRegistry registry = [] {
    DialectRegistry all;
    registerDialects(all);
    return all;
  }();
  MLIRContext context{registry, MLIRContext::Threading::DISABLED};
  int64_t columns = 64;
  unsigned cluster = 1;
  int64_t tileRows = 128;
  std::vector<uint16_t> a, b, d, expected;

  OwningOpRef<ModuleOp> parse() {
    std::string text(source);
    for (size_t at = 0; (at = text.find("128", at)) != std::string::npos; at += 3)
      text.replace(at, 3, std::to_string(tileRows));
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    if (cluster > 1) {
      NamedAttrList hints(kernelOf(*module).getScheduleAttr());
      hints.set("cluster", Builder(&context).getI32IntegerAttr(cluster));
      kernelOf(*module).setScheduleAttr(hints.getDictionary(&context));
    }
    return module;
  }
  static tile::KernelOp kernelOf(ModuleOp module) { return *module.getOps<tile::KernelOp>().begin(); }

  OwningOpRef<ModuleOp> compiled() {
    OwningOpRef<ModuleOp> module = parse();
    PassManager passes(&context);
    buildGpuPipeline(passes, "sm_90a", 0);
    EXPECT_TRUE(succeeded(passes.run(*module)));
    return module;
  }

  sim::View view(std::vector<uint16_t> &data, int64_t height, int64_t width) {
    return {reinterpret_cast<char *>(data.data()), BFloat16Type::get(&context), {height, width}, {width, 1}};
  }
  std::vector<sim::Argument> arguments() { return {view(a, rows, depth), view(b, depth, columns), view(d, rows, columns)}; }

  /// Small whole numbers: sums are exact, so results are equal bit for bit.
  void SetUp() override {
    auto number = [](size_t i) {
      float value = float(int64_t(i * 7919 % 5) - 2);
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      return uint16_t(bits >> 16);
    };
    for (size_t i = 0; i < size_t(rows * depth); ++i)
      a.push_back(number(i * i + 3 * i));
    for (size_t i = 0; i < size_t(depth * columns); ++i)
      b.push_back(number(i * 3 + i / 64));
    d.assign(size_t(rows * columns), 0x7fc0);
    OwningOpRef<ModuleOp> module = parse();
    llvm::Error failed = sim::run(kernelOf(*module), arguments(), {1, 1, 1});
    ASSERT_EQ(llvm::toString(std::move(failed)), "");
    expected = d;
  }

  /// What the simulator finds; empty for a right result.
  std::string simulate(ModuleOp module, uint64_t seed, int64_t ctas = 1) {
    d.assign(d.size(), 0x7fc0);
    sim::AsyncOptions options;
    options.seed = seed;
    options.maxSteps = 1 << 24;
    llvm::Error failed = sim::simulate(kernelOf(module), arguments(), {ctas, 1, 1}, options);
    if (failed)
      return llvm::toString(std::move(failed));
    return d == expected ? "" : "the result is wrong";
  }

  /// What the verifier of schedules says; empty when it passes.
  std::string verify(ModuleOp module) {
    std::string text;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { text += diagnostic.str() + "\n"; });
    PassManager passes(&context);
    passes.enableVerifier(false);
    passes.addNestedPass<tile::KernelOp>(kgpu::createKgpuVerifySchedule());
    return succeeded(passes.run(module)) ? "" : text;
  }
};

/// A change of a compiled kernel, and its name.
struct Mutation {
  std::string name;
  std::function<void(ModuleOp)> apply;
};

/// The op number `index` in the order of a walk.
Operation *opAt(ModuleOp module, size_t index) {
  Operation *found = nullptr;
  size_t at = 0;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (at++ == index)
      found = op;
  });
  return found;
}

Value shifted(Operation *op, Value use, int64_t by) {
  OpBuilder builder(op);
  Value more = arith::ConstantOp::create(builder, op->getLoc(), builder.getIntegerAttr(use.getType(), by));
  return arith::AddIOp::create(builder, op->getLoc(), use, more);
}

/// Puts the last op of a kind before `op` behind it: what `op` reads stays in front of it.
void moveDown(Operation *op, TypeID what) {
  for (Operation *earlier = op->getPrevNode(); earlier; earlier = earlier->getPrevNode())
    if (earlier->getName().getTypeID() == what) {
      earlier->moveAfter(op);
      return;
    }
}

void moveUp(Operation *op, TypeID before) {
  for (Operation *earlier = op->getPrevNode(); earlier; earlier = earlier->getPrevNode())
    if (earlier->getName().getTypeID() == before) {
      op->moveBefore(earlier);
      return;
    }
}

/// Every way to break the synchronisation and the addressing of the kernel that one change can.
std::vector<Mutation> mutations(ModuleOp module) {
  std::vector<Mutation> all;
  size_t index = 0;
  auto add = [&](size_t at, const std::string &name, std::function<void(Operation *)> change) {
    all.push_back({name, [at, change](ModuleOp copy) { change(opAt(copy, at)); }});
  };
  auto erased = [](Operation *op) {
    if (op->getNumResults())
      op->replaceAllUsesWith(op->getOperands().take_front(op->getNumResults()));
    op->erase();
  };
  auto useShift = [](int64_t by) {
    return [by](Operation *op) {
      for (OpOperand &operand : op->getOpOperands())
        if (operand.get().getType().isInteger(32))
          operand.set(shifted(op, operand.get(), by));
    };
  };
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    size_t at = index++;
    std::string name = op->getName().stripDialect().str();
    bool inRoles = op->getParentOfType<kgpu::RolesOp>() != nullptr;
    if (isa<kgpu::AcquireOp, kgpu::AwaitOp, kgpu::ReleaseOp, kgpu::TensorLoadOp, kgpu::WgmmaWaitOp, kgpu::AwaitTurnOp,
            kgpu::PassTurnOp>(op))
      add(at, "no " + name, erased);
    if (isa<kgpu::AcquireOp, kgpu::AwaitOp, kgpu::ReleaseOp, kgpu::TensorLoadOp>(op)) {
      add(at, name + " of the next use", useShift(1));
      add(at, name + " two uses ahead", useShift(2));
      add(at, name + " twice", [](Operation *op) { op->getBlock()->getOperations().insert(std::next(op->getIterator()), op->clone()); });
    }
    if (isa<kgpu::AcquireOp>(op))
      for (int64_t by : {-128, 128})
        add(at, "acquire of other bytes", [by](Operation *op) {
          auto acquire = cast<kgpu::AcquireOp>(op);
          acquire.setBytes(uint64_t(int64_t(acquire.getBytes()) + by));
        });
    if (isa<kgpu::TensorLoadOp>(op)) {
      add(at, "copy to a place further on", [](Operation *op) {
        auto load = cast<kgpu::TensorLoadOp>(op);
        load.setDistance(load.getDistance() + 1024);
      });
      add(at, "copy by another map", [](Operation *op) {
        auto load = cast<kgpu::TensorLoadOp>(op);
        load.setMap(load.getMap() == 0 ? 1 : 0);
      });
      add(at, "copy before its slot is empty", [](Operation *op) { moveDown(op, TypeID::get<kgpu::AcquireOp>()); });
      for (unsigned dim = 0; dim < cast<kgpu::TensorLoadOp>(op).getOffsets().size(); ++dim)
        add(at, "copy from elsewhere", [dim](Operation *op) {
          OpOperand &offset = cast<kgpu::TensorLoadOp>(op).getOffsetsMutable()[dim];
          offset.set(shifted(op, offset.get(), 64));
        });
    }
    if (auto load = dyn_cast<kgpu::TensorLoadOp>(op); load && load.getMulticast())
      add(at, "copy for one CTA alone", [](Operation *op) { cast<kgpu::TensorLoadOp>(op).removeMulticastAttr(); });
    else if (load && module->walk([](kgpu::ClusterRankOp) { return WalkResult::interrupt(); }).wasInterrupted())
      add(at, "copy of one CTA for all", [](Operation *op) { cast<kgpu::TensorLoadOp>(op).setMulticast(0); });
    if (auto ring = dyn_cast<kgpu::RingOp>(op); ring && ring.getCluster())
      add(at, "release within a CTA", [](Operation *op) { cast<kgpu::RingOp>(op).setCluster(false); });
    if (isa<kgpu::ClusterRankOp>(op) && inRoles)
      add(at, "another CTA's tile", [](Operation *op) {
        Value other = shifted(op->getNextNode(), op->getResult(0), 1);
        op->getResult(0).replaceAllUsesExcept(other, other.getDefiningOp());
      });
    if (isa<kgpu::ReleaseOp>(op)) {
      add(at, "release before the wait", [](Operation *op) { moveUp(op, TypeID::get<kgpu::WgmmaWaitOp>()); });
      add(at, "release before the product", [](Operation *op) { moveUp(op, TypeID::get<kgpu::WgmmaOp>()); });
    }
    if (isa<kgpu::WgmmaOp>(op)) {
      add(at, "product before its operands", [](Operation *op) { moveDown(op, TypeID::get<kgpu::AwaitOp>()); });
      if (cast<kgpu::WgmmaOp>(op).getLhs().getDefiningOp<kgpu::SlotOp>())
        add(at, "operands exchanged with the last slot", [](Operation *op) {
          auto slot = cast<kgpu::WgmmaOp>(op).getLhs().getDefiningOp<kgpu::SlotOp>();
          OpBuilder builder(slot);
          slot.getIndexMutable().assign(arith::ConstantIndexOp::create(builder, slot.getLoc(), 1));
        });
      add(at, "sum that never starts", [](Operation *op) {
        OpBuilder builder(op);
        cast<kgpu::WgmmaOp>(op).getAddsMutable().assign(arith::ConstantIntOp::create(builder, op->getLoc(), 1, 1));
      });
      if (!matchPattern(cast<kgpu::WgmmaOp>(op).getAdds(), m_Zero()))
        add(at, "sum that always starts", [](Operation *op) {
          OpBuilder builder(op);
          cast<kgpu::WgmmaOp>(op).getAddsMutable().assign(arith::ConstantIntOp::create(builder, op->getLoc(), 0, 1));
        });
    }
    if (auto wait = dyn_cast<kgpu::WgmmaWaitOp>(op); wait && wait.getPending() == 0)
      add(at, "wait for all but one", [](Operation *op) { cast<kgpu::WgmmaWaitOp>(op).setPending(1); });
    if (isa<arith::RemUIOp>(op) && inRoles && op->getResult(0).getType().isInteger(32))
      add(at, "slots counted otherwise", [](Operation *op) { op->setOperand(1, shifted(op, op->getOperand(1), -1)); });
    if (isa<arith::AddIOp>(op) && inRoles && op->getResult(0).getType().isInteger(32))
      add(at, "uses counted by twos", [](Operation *op) { op->setOperand(1, shifted(op, op->getOperand(1), 1)); });
    if (isa<scf::ForOp>(op) && inRoles) {
      for (int64_t by : {-1, 1})
        add(at, "loop of another length", [by](Operation *op) {
          auto loop = cast<scf::ForOp>(op);
          loop.getUpperBoundMutable().assign(shifted(op, loop.getUpperBound(), by));
        });
      add(at, "uses from one on", [](Operation *op) {
        for (OpOperand &init : cast<scf::ForOp>(op).getInitArgsMutable())
          if (init.get().getType().isInteger(32))
            init.set(shifted(op, init.get(), 1));
      });
    }
    if (auto alloc = dyn_cast<kgpu::AllocOp>(op); alloc && alloc.getOffset() && *alloc.getOffset() != 0)
      add(at, "buffer over another", [](Operation *op) {
        auto alloc = cast<kgpu::AllocOp>(op);
        alloc.setOffset(*alloc.getOffset() - 512);
      });
  });
  return all;
}

TEST_F(Schedule, IsRightInEveryOrder) {
  OwningOpRef<ModuleOp> module = compiled();
  ASSERT_TRUE(module->walk([](kgpu::RolesOp) { return WalkResult::interrupt(); }).wasInterrupted()) << "the kernel has no roles";
  EXPECT_EQ(verify(*module), "");
  for (uint64_t seed = 0; seed < 6; ++seed)
    EXPECT_EQ(simulate(*module, seed), "") << seed;
  EXPECT_EQ(simulate(*module, 0, /*ctas=*/2), "");
  EXPECT_EQ(simulate(*module, 1, /*ctas=*/3), "") << "a CTA without work";
}

/// How many changes of a kernel are found, and by whom.
struct Found {
  int64_t count = 0, proven = 0, simulated = 0, either = 0;
  std::string missed;
};

Found search(ModuleOp module, function_ref<bool(ModuleOp)> isRefused, function_ref<bool(ModuleOp)> isSeen) {
  Found found;
  for (const Mutation &mutation : mutations(module)) {
    OwningOpRef<ModuleOp> copy = module.clone();
    mutation.apply(*copy);
    bool refused = isRefused(*copy), seen = isSeen(*copy);
    ++found.count;
    found.proven += refused;
    found.simulated += seen;
    found.either += refused || seen;
    if (!refused && !seen)
      found.missed += "\n  " + mutation.name;
  }
  printf("%lld changes: the verifier refuses %lld, the simulator finds %lld, both together %lld\n",
         static_cast<long long>(found.count), static_cast<long long>(found.proven),
         static_cast<long long>(found.simulated), static_cast<long long>(found.either));
  return found;
}

TEST_F(Schedule, ChangesAreFound) {
  OwningOpRef<ModuleOp> module = compiled();
  auto isSeen = [&](ModuleOp copy) {
    for (uint64_t seed = 0; seed < 3; ++seed)
      if (!simulate(copy, seed).empty())
        return true;
    return false;
  };
  Found found = search(*module, [&](ModuleOp copy) { return !verify(copy).empty(); }, isSeen);
  EXPECT_GE(found.count, 40);
  EXPECT_GE(found.either * 100, found.count * 95) << "missed:" << found.missed;
  EXPECT_GE(found.simulated * 100, found.count * 85);
}

/// The same in tiles of 192 rows, a third for each of three warpgroups. One tile has no rows for the last of them.
struct ThreeWarpgroups : Schedule {
  ThreeWarpgroups() { tileRows = 192; }
};

TEST_F(ThreeWarpgroups, AreRightInEveryOrder) {
  OwningOpRef<ModuleOp> module = compiled();
  EXPECT_EQ(kgpu::getLaunch(kernelOf(*module)).consumers, 3u);
  EXPECT_EQ(verify(*module), "");
  for (uint64_t seed = 0; seed < 6; ++seed)
    EXPECT_EQ(simulate(*module, seed), "") << seed;
}

TEST_F(ThreeWarpgroups, ChangesAreFound) {
  OwningOpRef<ModuleOp> module = compiled();
  auto isSeen = [&](ModuleOp copy) {
    for (uint64_t seed = 0; seed < 3; ++seed)
      if (!simulate(copy, seed).empty())
        return true;
    return false;
  };
  Found found = search(*module, [&](ModuleOp copy) { return !verify(copy).empty(); }, isSeen);
  EXPECT_GE(found.count, 40);
  EXPECT_GE(found.either * 100, found.count * 95) << "missed:" << found.missed;
}

/// The same with pairs of CTAs that copy rows of %a for each other. Tiles of the last pair lie outside in part.
struct ClusterSchedule : Schedule {
  ClusterSchedule() {
    columns = 160;
    cluster = 2;
  }
};

TEST_F(ClusterSchedule, IsRightInEveryOrder) {
  OwningOpRef<ModuleOp> module = compiled();
  size_t shared = 0, all = 0;
  module->walk([&](kgpu::TensorLoadOp load) { ++all, shared += load.getMulticast().has_value(); });
  EXPECT_EQ(shared, 1u);
  EXPECT_EQ(all, 2u);
  EXPECT_EQ(verify(*module), "");
  for (uint64_t seed = 0; seed < 6; ++seed)
    EXPECT_EQ(simulate(*module, seed, /*ctas=*/seed % 2 ? 4 : 2), "") << seed;
  EXPECT_EQ(simulate(*module, 1, /*ctas=*/6), "") << "a pair without work";
}

TEST_F(ClusterSchedule, ChangesAreFound) {
  OwningOpRef<ModuleOp> module = compiled();
  auto isSeen = [&](ModuleOp copy) {
    for (uint64_t seed = 0; seed < 3; ++seed)
      if (!simulate(copy, seed, 2).empty())
        return true;
    return false;
  };
  Found found = search(*module, [&](ModuleOp copy) { return !verify(copy).empty(); }, isSeen);
  EXPECT_GE(found.count, 40);
  EXPECT_GE(found.either * 100, found.count * 95) << "missed:" << found.missed;
  EXPECT_GE(found.simulated * 100, found.count * 85);
}

/// The chain of products.
struct ChainSchedule : Schedule {
  static constexpr int64_t columnsOfChain = 256, rowsOfChain = 224;
  std::vector<uint16_t> left, right, sums, expectedSums;
  std::vector<float> row;

  std::vector<sim::Argument> chainArguments() {
    sim::View rowView{reinterpret_cast<char *>(row.data()), Float32Type::get(&context), {rowsOfChain}, {1}};
    return {view(left, rowsOfChain, 64), view(right, rowsOfChain, 64), rowView, view(sums, columnsOfChain, 64)};
  }
  OwningOpRef<ModuleOp> parseChain() { return parseSourceString<ModuleOp>(chainSource, &context); }
  OwningOpRef<ModuleOp> compiledChain() {
    OwningOpRef<ModuleOp> module = parseChain();
    PassManager passes(&context);
    buildGpuPipeline(passes, "sm_90a", 0);
    EXPECT_TRUE(succeeded(passes.run(*module)));
    return module;
  }
  void SetUp() override {
    auto number = [](size_t i) { return uint16_t(std::array{0xbf80, 0, 0x3f80}[i * 7919 % 65521 % 3]); }; // -1, 0, 1
    for (size_t i = 0; i < size_t(rowsOfChain * 64); ++i) {
      left.push_back(number(i + i / 64));
      right.push_back(number(3 * i + i / 192));
    }
    for (size_t i = 0; i < size_t(rowsOfChain); ++i)
      row.push_back(float(int64_t(i % 5) - 2));
    sums.assign(size_t(columnsOfChain * 64), 0x7fc0);
    OwningOpRef<ModuleOp> module = parseChain();
    llvm::Error failed = sim::run(kernelOf(*module), chainArguments(), {1, 1, 1});
    ASSERT_EQ(llvm::toString(std::move(failed)), "");
    expectedSums = sums;
  }
  std::string simulateChain(ModuleOp module, uint64_t seed, int64_t ctas) {
    sums.assign(sums.size(), 0x7fc0);
    sim::AsyncOptions options;
    options.seed = seed;
    llvm::Error failed = sim::simulate(kernelOf(module), chainArguments(), {ctas, 1, 1}, options);
    if (failed)
      return llvm::toString(std::move(failed));
    return sums == expectedSums ? "" : "the result is wrong";
  }
};

TEST_F(ChainSchedule, IsRightInEveryOrder) {
  OwningOpRef<ModuleOp> module = compiledChain();
  size_t products = 0, turns = 0;
  module->walk([&](kgpu::WgmmaOp) { ++products; });
  module->walk([&](kgpu::AwaitTurnOp) { ++turns; });
  ASSERT_EQ(products, 4u);
  ASSERT_EQ(turns, 2u) << "one before the loop, one between its products";
  EXPECT_EQ(verify(*module), "");
  for (uint64_t seed = 0; seed < 4; ++seed)
    EXPECT_EQ(simulateChain(*module, seed, /*ctas=*/1 + int64_t(seed % 2)), "") << seed;
}

TEST_F(ChainSchedule, ChangesAreFound) {
  OwningOpRef<ModuleOp> module = compiledChain();
  // What the verifier refuses is not simulated: the chain takes long.
  bool refused = false;
  auto isRefused = [&](ModuleOp copy) { return refused = !verify(copy).empty(); };
  auto isSeen = [&](ModuleOp copy) {
    return !refused && !(simulateChain(copy, 0, 1).empty() && simulateChain(copy, 1, 1).empty());
  };
  Found found = search(*module, isRefused, isSeen);
  EXPECT_GE(found.count, 100);
  EXPECT_GE(found.either * 100, found.count * 95) << "missed:" << found.missed;
}

TEST_F(ChainSchedule, TurnsAreCounted) {
  OwningOpRef<ModuleOp> compiled = compiledChain();
  for (size_t number = 0; number < 4; ++number) {
    OwningOpRef<ModuleOp> module = compiled->clone();
    SmallVector<Operation *> turns;
    module->walk([&](Operation *op) {
      if (isa<kgpu::AwaitTurnOp, kgpu::PassTurnOp>(op))
        turns.push_back(op);
    });
    ASSERT_EQ(turns.size(), 4u);
    turns[number]->erase();
    EXPECT_NE(verify(*module), "") << number;
  }
}

/// Products of what both warpgroups compute.
struct SharedSchedule : Schedule {
  static constexpr int64_t columnsOfShared = 256, rowsOfShared = 200;
  std::vector<uint16_t> left, right, sums, expectedSums;
  std::vector<float> total, expectedTotal;

  virtual const char *source() const { return sharedSource; }
  virtual int64_t width() const { return 128; }
  virtual std::vector<sim::Argument> inputs() { return {view(left, rowsOfShared, width()), view(right, rowsOfShared, width())}; }
  std::vector<sim::Argument> sharedArguments() {
    std::vector<sim::Argument> all = inputs();
    all.push_back(view(sums, columnsOfShared, width()));
    all.push_back(sim::View{reinterpret_cast<char *>(total.data()), Float32Type::get(&context), {rowsOfShared, width()}, {width(), 1}});
    return all;
  }
  OwningOpRef<ModuleOp> parseShared() { return parseSourceString<ModuleOp>(source(), &context); }
  void clear() {
    sums.assign(size_t(columnsOfShared * width()), 0x7fc0);
    total.assign(size_t(rowsOfShared * width()), 1);
  }
  void SetUp() override {
    auto number = [](size_t i) { return uint16_t(std::array{0xbf80, 0, 0x3f80}[i * 7919 % 65521 % 3]); }; // -1, 0, 1
    for (size_t i = 0; i < size_t(rowsOfShared * width()); ++i) {
      left.push_back(number(i + i / 128));
      right.push_back(number(3 * i + i / 192));
    }
    clear();
    OwningOpRef<ModuleOp> module = parseShared();
    llvm::Error failed = sim::run(kernelOf(*module), sharedArguments(), {1, 1, 1});
    ASSERT_EQ(llvm::toString(std::move(failed)), "");
    expectedSums = sums;
    expectedTotal = total;
  }
  OwningOpRef<ModuleOp> compiledShared() {
    OwningOpRef<ModuleOp> module = parseShared();
    PassManager passes(&context);
    buildGpuPipeline(passes, "sm_90a", 0);
    EXPECT_TRUE(succeeded(passes.run(*module)));
    return module;
  }
  std::string simulateShared(ModuleOp module, uint64_t seed, int64_t ctas) {
    clear();
    sim::AsyncOptions options;
    options.seed = seed;
    llvm::Error failed = sim::simulate(kernelOf(module), sharedArguments(), {ctas, 1, 1}, options);
    if (failed)
      return llvm::toString(std::move(failed));
    return sums == expectedSums && total == expectedTotal ? "" : "the result is wrong";
  }
};

TEST_F(SharedSchedule, IsRightInEveryOrder) {
  OwningOpRef<ModuleOp> module = compiledShared();
  size_t late = 0;
  module->walk([&](kgpu::WgmmaOp product) { late += product.getDroppable(); });
  ASSERT_EQ(late, 2u) << "one in the loop, one behind it";
  EXPECT_EQ(verify(*module), "");
  for (uint64_t seed = 0; seed < 3; ++seed)
    EXPECT_EQ(simulateShared(*module, seed, /*ctas=*/1 + int64_t(seed % 2)), "") << seed;
}

struct SharedAtOnceSchedule : SharedSchedule {
  const char *source() const override { return sharedAtOnceSource; }
  int64_t width() const override { return 64; }
  std::vector<sim::Argument> inputs() override {
    return {view(left, rowsOfShared, 64), view(right, rowsOfShared, 64), view(right, rowsOfShared, 64),
            view(left, rowsOfShared, 64)};
  }
};

TEST_F(SharedAtOnceSchedule, IsRightInEveryOrder) {
  OwningOpRef<ModuleOp> module = compiledShared();
  module->walk([](kgpu::WgmmaOp product) { EXPECT_FALSE(product.getDroppable()); });
  EXPECT_EQ(verify(*module), "");
  for (uint64_t seed = 0; seed < 3; ++seed)
    EXPECT_EQ(simulateShared(*module, seed, /*ctas=*/1 + int64_t(seed % 2)), "") << seed;
}

TEST_F(SharedAtOnceSchedule, ChangesAreFound) {
  OwningOpRef<ModuleOp> compiled = compiledShared();
  int64_t changes = 0;
  compiled->walk(
      [&](Operation *op) { changes += isa<kgpu::ReleaseOp, kgpu::AwaitOp, kgpu::ShareOp, kgpu::WgmmaWaitOp>(op); });
  ASSERT_GT(changes, 8);
  for (int64_t number = 0; number < changes; ++number) {
    OwningOpRef<ModuleOp> module = compiled->clone();
    int64_t at = 0;
    Operation *dropped = nullptr;
    module->walk([&](Operation *op) {
      if (isa<kgpu::ReleaseOp, kgpu::AwaitOp, kgpu::ShareOp, kgpu::WgmmaWaitOp>(op) && at++ == number)
        dropped = op;
    });
    dropped->replaceAllUsesWith(dropped->getNumResults() ? dropped->getOperands() : ValueRange());
    dropped->erase();
    EXPECT_FALSE(verify(*module).empty()) << number;
  }
}

TEST_F(SharedSchedule, ChangesAreFound) {
  OwningOpRef<ModuleOp> compiled = compiledShared();
  auto isRefused = [&](llvm::function_ref<void(kgpu::ShareOp, kgpu::AwaitOp)> change) {
    OwningOpRef<ModuleOp> module = compiled->clone();
    kgpu::ShareOp share;
    module->walk([&](kgpu::ShareOp op) { share = op; });
    kgpu::AwaitOp await;
    for (auto op : share->getBlock()->getOps<kgpu::AwaitOp>())
      if (op.getRing() == share.getRing())
        await = op;
    change(share, await);
    return !verify(*module).empty();
  };
  EXPECT_FALSE(isRefused([](kgpu::ShareOp, kgpu::AwaitOp) {}));
  EXPECT_TRUE(isRefused([](kgpu::ShareOp, kgpu::AwaitOp await) { await.erase(); }));
  EXPECT_TRUE(isRefused([](kgpu::ShareOp share, kgpu::AwaitOp) { share.erase(); }));
  EXPECT_TRUE(isRefused([](kgpu::ShareOp share, kgpu::AwaitOp await) { share->moveAfter(await); }));
  EXPECT_TRUE(isRefused([](kgpu::ShareOp share, kgpu::AwaitOp await) { // older than the slots allow
    OpBuilder builder(await);
    Value two = arith::ConstantIntOp::create(builder, await.getLoc(), -2, 32);
    await.getUseMutable().assign(arith::AddIOp::create(builder, await.getLoc(), share.getUse(), two));
  }));
  EXPECT_TRUE(isRefused([](kgpu::ShareOp share, kgpu::AwaitOp) { // the next use's slot
    OpBuilder builder(share);
    Value one = arith::ConstantIntOp::create(builder, share.getLoc(), 1, 32);
    share.getUseMutable().assign(arith::AddIOp::create(builder, share.getLoc(), share.getUse(), one));
  }));
}

} // namespace
