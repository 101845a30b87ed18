// Replaces the static schedule of tiles by a dynamic tile scheduler: CTAs take the next tile from an atomic counter.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: kgpu.roles producer_warp {
//           scf.for %t = kgpu.cta_id to %count step kgpu.cta_count iter_args(...) { copies of tile %t }
//         } consumers {
//           scf.for %t = kgpu.cta_id to %count step kgpu.cta_count iter_args(...) { products of tile %t } }
// After:  %channel = kgpu.ring channel ...
//         kgpu.roles producer_warp {
//           scf.while (%t = kgpu.cta_id, %use = ..., %n = 0) { %t < %count } do {
//             copies of tile %t; %next = kgpu.next_tile of %count; kgpu.publish_index %next to %channel[%n];
//             yield %next, ..., %n + 1 }
//         } consumers {
//           scf.while (%t = kgpu.cta_id, %use = ..., %n = 0) { %t < %count } do {
//             products of tile %t; %next = kgpu.consume_index %channel[%n]; yield %next, ..., %n + 1 } }
//
// On entry: a kernel with roles, each with one loop over the tiles of its CTA.
// On exit: no such loop is left.
//
// The producer warp takes the next tile number after it has issued all copies of a tile. The copies take longer than
// the counter's answer, and a tile is not bound to a CTA earlier than necessary. Tile numbers increase, so tiles that
// are first in the order of tiles start first.
#include "dialect/kgpu/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUDYNAMICTILES
#include "dialect/kgpu/Passes.h.inc"

namespace {
/// Slots of the channel: how many tiles the producer warp can be ahead. A tile may have fewer steps than other rings
/// have slots.
constexpr int64_t kChannelSlots = 4;

bool isOverTiles(scf::ForOp loop) {
  return loop.getLowerBound().getDefiningOp<CtaIdOp>() && loop.getStep().getDefiningOp<CtaCountOp>();
}

/// Returns the role's loop over tiles, or null if it has none or several.
scf::ForOp loopOverTiles(Region &role) {
  SmallVector<scf::ForOp> loops;
  for (auto loop : role.front().getOps<scf::ForOp>())
    if (isOverTiles(loop))
      loops.push_back(loop);
  return loops.size() == 1 ? loops.front() : scf::ForOp();
}

/// Replaces the loop over tiles by an scf.while. `nextTile` builds the next tile number at the end of the body, for
/// the given use of the channel.
void takeInTurn(scf::ForOp loop, llvm::function_ref<Value(OpBuilder &, Value use)> nextTile) {
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  auto number = [&](int64_t value) { return arith::ConstantIntOp::create(builder, loc, value, 32); };
  SmallVector<Value> inits = {loop.getLowerBound()};
  llvm::append_range(inits, loop.getInitArgs());
  inits.push_back(number(0));
  TypeRange types = ValueRange(inits).getTypes();
  auto taking = scf::WhileOp::create(builder, loc, types, inits);
  SmallVector<Location> locations(inits.size(), loc);
  Block *test = builder.createBlock(&taking.getBefore(), {}, types, locations);
  Value isThere =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, test->getArgument(0), loop.getUpperBound());
  scf::ConditionOp::create(builder, loc, isThere, test->getArguments());

  Block *body = builder.createBlock(&taking.getAfter(), {}, types, locations);
  Operation *yield = loop.getBody()->getTerminator();
  SmallVector<Value> results(yield->getOperands());
  yield->erase();
  body->getOperations().splice(body->end(), loop.getBody()->getOperations());
  builder.setInsertionPointToEnd(body);
  Value use = body->getArguments().back();
  results.insert(results.begin(), nextTile(builder, use));
  results.push_back(arith::AddIOp::create(builder, loc, use, number(1)));
  scf::YieldOp::create(builder, loc, results);
  // Arithmetic on the tile number relies on it not being negative.
  builder.setInsertionPointToStart(body);
  Value tile =
      arith::MaxSIOp::create(builder, loc, body->getArgument(0), arith::ConstantIndexOp::create(builder, loc, 0));
  loop.getInductionVar().replaceAllUsesWith(tile);
  for (auto [old, carried] : llvm::zip(loop.getRegionIterArgs(), body->getArguments().drop_front().drop_back()))
    old.replaceAllUsesWith(carried);
  loop.replaceAllUsesWith(taking.getResults().drop_front().drop_back());
  loop.erase();
}

struct DynamicTiles final : impl::KgpuDynamicTilesBase<DynamicTiles> {
  void runOnOperation() override {
    tile::KernelOp kernel = getOperation();
    RolesOp roles;
    kernel.walk([&](RolesOp op) { roles = op; });
    scf::ForOp loads = roles ? loopOverTiles(roles.getProducerWarp()) : scf::ForOp(),
               computes = roles ? loopOverTiles(roles.getConsumers()) : scf::ForOp();
    if (!loads || !computes) {
      kernel.emitError(
          "takes tiles from a counter, but has no loop of its own over the tiles of an output in each role");
      return signalPassFailure();
    }
    OpBuilder builder(roles);
    Location loc = roles.getLoc();
    Value place =
        AllocOp::create(builder, loc, SharedType::get({3, kChannelSlots}, builder.getI64Type()), IntegerAttr());
    Value channel =
        RingOp::create(builder, loc, RingType::get(kernel.getContext(), kChannelSlots), place, RingKind::Channel);
    Value count = loads.getUpperBound();
    takeInTurn(loads, [&](OpBuilder &at, Value use) -> Value {
      Value next = NextTileOp::create(at, loc, count);
      PublishIndexOp::create(at, loc, next, channel, use);
      return next;
    });
    takeInTurn(computes,
               [&](OpBuilder &at, Value use) -> Value { return ConsumeIndexOp::create(at, loc, channel, use); });
  }
};
} // namespace
} // namespace kpkg::kgpu
