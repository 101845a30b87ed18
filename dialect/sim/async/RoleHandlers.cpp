// Handles roles, rings and warpgroup products of the kgpu dialect in the simulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/sim/async/Machine.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace kpkg;
using namespace kpkg::sim;

static constexpr uint64_t placeholderBits = 0x7ff8'5afe'0000'0000;

Cell kpkg::sim::placeholder(int64_t number) {
  Cell cell;
  cell.i = int64_t(placeholderBits | uint64_t(number));
  return cell;
}

std::optional<int64_t> kpkg::sim::productOf(const Tile &tile) {
  uint64_t bits = uint64_t(tile.cells[0].i);
  if ((bits & 0xffff'ffff'0000'0000) != placeholderBits)
    return std::nullopt;
  return int64_t(bits & 0xffff'ffff);
}

static Ring &ringOf(Value value) {
  return self().machine->ring(value, cast<kgpu::RingType>(value.getType()).getSlots());
}

/// Returns the number of a use, which is unsigned.
static int64_t useOf(Frame &frame, Value use) { return int64_t(uint32_t(frame.integer(use))); }

static llvm::Error runRoles(Frame &frame, Operation &op) {
  auto roles = cast<kgpu::RolesOp>(op);
  Region &region = self().isLoader()     ? roles.getProducerWarp()
                   : self().isProducer() ? roles.getProducers()
                                         : roles.getConsumers();
  for (Operation &inner : region.front())
    if (llvm::Error failed = frame.run(inner))
      return failed;
  return llvm::Error::success();
}

static llvm::Error makeRing(Frame &, Operation &op) {
  ringOf(op.getResult(0));
  return llvm::Error::success();
}

static llvm::Error acquire(Frame &frame, Operation &op) {
  auto acquire = cast<kgpu::AcquireOp>(op);
  Ring &ring = ringOf(acquire.getRing());
  int64_t use = useOf(frame, acquire.getUse()), slot = use % ring.slots(), parity = (use / ring.slots() & 1) ^ 1;
  if (llvm::Error ended = self().machine->pause(op, "an empty slot",
                                                [&ring, slot, parity] { return ring.empty[slot].hasPassed(parity); }))
    return ended;
  if (ring.full[slot].missing != 1)
    return frame.error(op, "slot " + llvm::Twine(slot) + " is acquired while it is being filled");
  ring.full[slot].expect(int64_t(acquire.getBytes()));
  return llvm::Error::success();
}

template <typename Op> static llvm::Error await(Frame &frame, Operation &op) {
  auto await = cast<Op>(op);
  Ring &ring = ringOf(await.getRing());
  int64_t use = useOf(frame, await.getUse()), slot = use % ring.slots(), parity = use / ring.slots() & 1;
  return self().machine->pause(op, "a full slot", [&ring, slot, parity] { return ring.full[slot].hasPassed(parity); });
}

static llvm::Error release(Frame &frame, Operation &op) {
  auto release = cast<kgpu::ReleaseOp>(op);
  Ring &ring = ringOf(release.getRing());
  Machine &machine = *self().machine;
  int64_t slot = useOf(frame, release.getUse()) % ring.slots();
  ring.empty[slot].arrive();
  for (int cta = 0; ring.isOfCluster && cta < machine.clusterSize(); ++cta)
    if (cta != self().cta) { // A remote arrival takes effect later.
      Barrier &empty = machine.ring(cta, release.getRing(), ring.slots()).empty[slot];
      machine.start({[&empty] { empty.arrive(); }});
    }
  return machine.pause(op);
}

static llvm::Error nextTile(Frame &frame, Operation &op) {
  auto take = cast<kgpu::NextTileOp>(op);
  frame.setInteger(take.getResult(), self().machine->nextTile(frame.integer(take.getCount())));
  return self().machine->pause(op);
}

static llvm::Error send(Frame &frame, Operation &op) {
  auto send = cast<kgpu::PublishIndexOp>(op);
  Ring &ring = ringOf(send.getRing());
  int64_t use = useOf(frame, send.getUse()), slot = use % ring.slots(), parity = (use / ring.slots() & 1) ^ 1;
  if (llvm::Error ended = self().machine->pause(op, "an empty slot of a channel",
                                                [&ring, slot, parity] { return ring.empty[slot].hasPassed(parity); }))
    return ended;
  ring.numbers[size_t(slot)] = frame.integer(send.getNumber());
  ring.full[slot].arrive();
  return llvm::Error::success();
}

static llvm::Error receive(Frame &frame, Operation &op) {
  auto receive = cast<kgpu::ConsumeIndexOp>(op);
  Ring &ring = ringOf(receive.getRing());
  int64_t use = useOf(frame, receive.getUse()), slot = use % ring.slots(), parity = use / ring.slots() & 1;
  if (llvm::Error ended =
          self().machine->pause(op, "a number", [&ring, slot, parity] { return ring.full[slot].hasPassed(parity); }))
    return ended;
  frame.setInteger(receive.getResult(), ring.numbers[size_t(slot)]);
  ring.empty[slot].arrive();
  return llvm::Error::success();
}

static llvm::Error publishAll(Frame &frame, Operation &op) {
  auto published = cast<kgpu::PublishAllOp>(op);
  Machine &machine = *self().machine;
  const Tile &tile = frame.tile(published.getValue());
  kgpu::SharedType type = published.getBuffer().getType();
  layout::SharedLayout placement = type.getPlacement();
  for (int64_t i = 0; i < tile.size(); ++i)
    if (int64_t row = i / tile.shape[1], column = i % tile.shape[1]; machine.owns(self(), tile.shape, row, column))
      storeCell(frame.view(published.getBuffer()).data + placement.offset({row, column}), tile.cells[i],
                type.getElementType());
  Ring &ring = ringOf(published.getRing());
  ring.full[useOf(frame, published.getUse()) % ring.slots()].arrive();
  return machine.pause(op);
}

static llvm::Error publish(Frame &frame, Operation &op) {
  auto published = cast<kgpu::PublishOp>(op);
  Ring &ring = ringOf(published.getRing());
  int64_t use = useOf(frame, published.getUse()), slot = use % ring.slots(), parity = (use / ring.slots() & 1) ^ 1;
  if (llvm::Error ended = self().machine->pause(op, "an empty slot for a tile",
                                                [&ring, slot, parity] { return ring.empty[slot].hasPassed(parity); }))
    return ended;
  const Tile &tile = frame.tile(published.getValue());
  kgpu::SharedType type = published.getBuffer().getType();
  layout::SharedLayout placement = type.getPlacement();
  SmallVector<int64_t> index(tile.shape.size(), 0);
  for (int64_t i = 0; i < tile.size(); ++i) {
    storeCell(frame.view(published.getBuffer()).data + placement.offset(index), tile.cells[i], type.getElementType());
    for (size_t d = index.size(); d-- > 0 && ++index[d] == tile.shape[d];)
      index[d] = 0;
  }
  ring.full[slot].arrive();
  return self().machine->pause(op);
}

static llvm::Error barrier(Frame &frame, Operation &op) {
  if (self().isLoader() || self().isProducer())
    return frame.error(op, "this role is not among those that meet here");
  int64_t count = ++self().barriers;
  Agent &agent = self();
  return agent.machine->pause(op, "the other warpgroups",
                              [&agent, count] { return agent.machine->allReached(agent, count); });
}

static llvm::Error pingPongWait(Frame &frame, Operation &op) {
  Agent &agent = self();
  if (agent.isLoader())
    return frame.error(op, "the load role takes no turns");
  int64_t turn = ++agent.turns;
  return agent.machine->pause(op, "its turn", [&agent, turn] { return agent.machine->turnsOf(agent) >= turn; });
}

static llvm::Error pingPongSignal(Frame &, Operation &op) {
  ++self().passed;
  return self().machine->pause(op);
}

std::vector<double> kpkg::sim::spread(const std::vector<double> &kept, const std::vector<int64_t> &positions) {
  std::vector<double> all(2 * kept.size());
  for (size_t i = 0; i < kept.size(); ++i)
    all[i / 2 * 4 + (uint64_t(positions[i / 8]) >> (i % 8 * 2) & 3)] = kept[i];
  return all;
}

static llvm::Error wgmma(Frame &frame, Operation &op) {
  auto wgmma = cast<kgpu::WgmmaOp>(op);
  Agent &agent = self();
  Product product;
  product.op = &op;
  if (auto buffer = dyn_cast<kgpu::SharedType>(wgmma.getLhs().getType())) {
    product.lhs = frame.view(wgmma.getLhs()).data;
    product.a = agent.machine->readOperand(product.lhs, buffer);
    if (agent.machine->isReadByRows(wgmma.getLhs()))
      agent.machine->keepOwnRows(agent, product.a, buffer.getShape());
  } else {
    for (Cell cell : frame.tile(wgmma.getLhs()).cells)
      product.a.push_back(isFloat(frame.tile(wgmma.getLhs()).type) ? cell.f : double(cell.i));
  }
  if (Value positions = wgmma.getPositions()) {
    for (const Cell &word : frame.tile(positions).cells)
      product.positions.push_back(word.i);
    product.a = spread(product.a, product.positions);
  }
  product.rhs = frame.view(wgmma.getRhs()).data;
  product.b = agent.machine->readOperand(product.rhs, wgmma.getRhs().getType());
  auto isMissing = [](const std::vector<double> &operand) {
    return llvm::any_of(operand, [](double x) { return std::isnan(x); });
  };
  if (!wgmma.getDroppable() && (isMissing(product.a) || isMissing(product.b)))
    return frame.error(op, "an operand is not there yet");
  product.sum = frame.tile(wgmma.getAccumulator());
  product.sumOf = productOf(product.sum);
  product.adds = frame.integer(wgmma.getAdds()) != 0;
  int64_t number = int64_t(agent.products.size());
  Tile result = Tile::ofType(wgmma.getResult().getType());
  llvm::fill(result.cells, placeholder(number));
  agent.products.push_back(std::move(product));
  frame.set(wgmma.getResult(), std::move(result));
  return agent.machine->pause(op);
}

static llvm::Error clearOutside(Frame &frame, Operation &op) {
  auto clear = cast<kgpu::ClearOutsideOp>(op);
  kgpu::SharedType type = clear.getBuffer().getType();
  layout::SharedLayout placement = type.getPlacement();
  unsigned rowDim = 1 - *kgpu::panelDim(type);
  int64_t begin = frame.integer(clear.getBegin()), end = frame.integer(clear.getEnd());
  for (int64_t i = 0; i < type.getShape()[0]; ++i)
    for (int64_t j = 0; j < type.getShape()[1]; ++j)
      if (int64_t row = rowDim == 0 ? i : j; row < begin || row >= end)
        storeCell(frame.view(clear.getBuffer()).data + placement.offset({i, j}), Cell(), type.getElementType());
  return self().machine->pause(op);
}

static llvm::Error wgmmaWait(Frame &frame, Operation &op) {
  auto wait = cast<kgpu::WgmmaWaitOp>(op);
  Agent &agent = self();
  int64_t wanted = int64_t(agent.products.size()) - int64_t(wait.getPending());
  if (llvm::Error ended = agent.machine->pause(op, "products", [&agent, wanted] { return agent.done >= wanted; }))
    return ended;
  for (auto [value, result] : llvm::zip_equal(wait.getValues(), wait.getResults())) {
    Tile tile = frame.tile(value);
    if (std::optional<int64_t> number = productOf(tile)) {
      if (*number >= wanted)
        return frame.error(op, "takes the result of a product that may still run");
      tile.cells = agent.products[size_t(*number)].sum.cells;
    }
    frame.set(result, std::move(tile));
  }
  return llvm::Error::success();
}

static llvm::Error ctaId(Frame &frame, Operation &op) {
  frame.setInteger(op.getResult(0), frame.block[0]);
  return llvm::Error::success();
}
static llvm::Error ctaCount(Frame &frame, Operation &op) {
  frame.setInteger(op.getResult(0), frame.grid[0]);
  return llvm::Error::success();
}
static llvm::Error clusterId(Frame &frame, Operation &op) {
  frame.setInteger(op.getResult(0), frame.block[0] / self().machine->clusterSize());
  return llvm::Error::success();
}
static llvm::Error clusterRank(Frame &frame, Operation &op) {
  frame.setInteger(op.getResult(0), self().cta % self().machine->clusterSize());
  return llvm::Error::success();
}
static llvm::Error convertLayout(Frame &frame, Operation &op) {
  frame.set(op.getResult(0), frame.tile(op.getOperand(0)));
  return llvm::Error::success();
}
/// Reduces the part of the axis that each warp holds.
static llvm::Error partialReduce(Frame &frame, Operation &op) {
  auto reduce = cast<kgpu::PartialReduceOp>(op);
  const Tile &source = frame.tile(reduce.getValue());
  const layout::Layout &layout = kgpu::layoutOf(reduce.getValue());
  int64_t axis = reduce.getAxis();
  Tile result = Tile::ofType(reduce.getType());
  int64_t parts = result.shape[axis], inner = 1;
  for (size_t dim = axis + 1; dim < source.shape.size(); ++dim)
    inner *= source.shape[dim];
  std::vector<int64_t> count(size_t(parts), 0);
  std::vector<Tile> own(size_t(parts), Tile{source.type, source.shape, {}});
  // Groups the elements by the warp that holds them, in order. All lines have the same partition.
  SmallVector<int64_t> index(source.shape.size(), 0);
  std::vector<int64_t> partOf(size_t(source.shape[axis]));
  for (int64_t k = 0; k < source.shape[axis]; ++k) {
    index[axis] = k;
    unsigned warp = layout.placeOf(index)->warp, along = layout.bitsAlong(layout::Part::Warp, axis), next = 0;
    for (unsigned bit = 0; bit < layout.bits(layout::Part::Warp); ++bit)
      if (along >> bit & 1)
        partOf[size_t(k)] |= int64_t(warp >> bit & 1) << next++;
    ++count[size_t(partOf[size_t(k)])];
  }
  for (int64_t i = 0; i < source.size(); ++i)
    own[size_t(partOf[size_t(i / inner % source.shape[axis])])].cells.push_back(source.cells[size_t(i)]);
  for (int64_t part = 0; part < parts; ++part) {
    own[size_t(part)].shape[axis] = count[size_t(part)];
    llvm::Expected<Tile> sum = reduced(frame, op, own[size_t(part)], reduce.getKind(), axis);
    if (!sum)
      return sum.takeError();
    for (int64_t line = 0; line < sum->size(); ++line)
      result.cells[size_t((line / inner * parts + part) * inner + line % inner)] = sum->cells[size_t(line)];
  }
  frame.set(reduce.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error columnsOf(Frame &frame, Operation &op) {
  auto columns = cast<kgpu::ColumnsOp>(op);
  const Tile &source = frame.tile(columns.getValue());
  Tile result = Tile::ofType(columns.getType());
  for (int64_t i = 0; i < result.shape[0]; ++i)
    for (int64_t j = 0; j < result.shape[1]; ++j)
      result.cells[size_t(i * result.shape[1] + j)] =
          source.cells[size_t(i * source.shape[1] + int64_t(columns.getFirst()) + j)];
  frame.set(columns.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error joinColumns(Frame &frame, Operation &op) {
  auto join = cast<kgpu::JoinColumnsOp>(op);
  Tile result = Tile::ofType(join.getType());
  int64_t width = result.shape[1] / int64_t(join.getParts().size());
  for (int64_t i = 0; i < result.shape[0]; ++i)
    for (int64_t j = 0; j < result.shape[1]; ++j)
      result.cells[size_t(i * result.shape[1] + j)] =
          frame.tile(join.getParts()[unsigned(j / width)]).cells[size_t(i * width + j % width)];
  frame.set(join.getResult(), std::move(result));
  return llvm::Error::success();
}

/// Computes the result for the whole tile, because warps run together here.
static llvm::Error warpAny(Frame &frame, Operation &op) {
  frame.setInteger(op.getResult(0),
                   llvm::any_of(frame.tile(op.getOperand(0)).cells, [](const Cell &cell) { return cell.i != 0; }));
  return llvm::Error::success();
}

/// Returns a tile of NaN for float types.
static llvm::Error poison(Frame &frame, Operation &op) {
  Tile tile = Tile::ofType(op.getResult(0).getType());
  if (isFloat(tile.type))
    llvm::fill(tile.cells, Cell{.f = std::nan("")});
  frame.set(op.getResult(0), std::move(tile));
  return llvm::Error::success();
}

void kpkg::sim::addRoleHandlers(HandlerTable &table) {
  table["kgpu.roles"] = runRoles;
  table["kgpu.ring"] = makeRing;
  table["kgpu.acquire"] = acquire;
  table["kgpu.await"] = await<kgpu::AwaitOp>;
  table["kgpu.release"] = release;
  table["kgpu.publish_all"] = publishAll;
  table["kgpu.publish"] = publish;
  table["kgpu.next_tile"] = nextTile;
  table["kgpu.publish_index"] = send;
  table["kgpu.consume_index"] = receive;
  table["kgpu.barrier"] = barrier;
  table["kgpu.warp_barrier"] = barrier; // of a CTA that is one warp
  table["kgpu.ping_pong_wait"] = pingPongWait;
  table["kgpu.ping_pong_signal"] = pingPongSignal;
  table["kgpu.wgmma"] = wgmma;
  table["kgpu.clear_outside"] = clearOutside;
  table["kgpu.scheduling_fence"] = await<kgpu::SchedulingFenceOp>;
  table["kgpu.wgmma_wait"] = wgmmaWait;
  table["kgpu.cta_id"] = ctaId;
  table["kgpu.cta_count"] = ctaCount;
  table["kgpu.cluster_id"] = clusterId;
  table["kgpu.cluster_rank"] = clusterRank;
  table["kgpu.cvt_layout"] = convertLayout;
  table["kgpu.partial_reduce"] = partialReduce;
  table["kgpu.columns"] = columnsOf;
  table["kgpu.join_columns"] = joinColumns;
  table["kgpu.warp_any"] = warpAny;
  table["ub.poison"] = poison;
}
