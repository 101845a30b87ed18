// Simulates CTAs: schedules their roles, and decides when copies and products end.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/sim/async/Machine.h"
#include "dialect/kgpu/analysis/RingUses.h"
#include "dialect/sim/async/Races.h"
#include <cstring>
#include <thread>

using namespace mlir;
using namespace kpkg;
using namespace kpkg::sim;

static thread_local Agent *current = nullptr;
Agent &kpkg::sim::self() { return *current; }

static const HandlerTable &handlers() {
  static const HandlerTable table = [] {
    HandlerTable all = handlersOfTiles();
    addRoleHandlers(all);
    addAsyncMemoryHandlers(all);
    addCheckedHandlers(all);
    return all;
  }();
  return table;
}

Machine::Machine(tile::KernelOp kernel, ArrayRef<Argument> arguments, std::array<int64_t, 3> block,
                 std::array<int64_t, 3> grid, int64_t count, const AsyncOptions &options, int64_t &steps)
    : kernel(kernel), launch(kgpu::getLaunch(kernel)), arguments(arguments), grid(grid), options(options), steps(steps),
      random(options.seed * 0x9e3779b97f4a7c15 + uint64_t(block[0])) {
  // Buffers without an offset do not overlap. Memory starts with bytes that are NaN in float types.
  int64_t end = launch.shared;
  kernel.walk([&](kgpu::AllocOp alloc) {
    auto type = cast<kgpu::SharedType>(alloc.getResult().getType());
    int64_t offset = alloc.getOffset() ? int64_t(*alloc.getOffset()) : int64_t(llvm::alignTo(end, 1024));
    offsets[alloc.getResult()] = offset;
    end = std::max(end, offset + type.getSizeBytes());
  });
  kernel.walk([&](kgpu::PublishAllOp publish) { sharedBuffers.insert(kgpu::rootBuffer(publish.getBuffer())); });
  bool hasRoles = kernel.walk([](kgpu::RolesOp) { return WalkResult::interrupt(); }).wasInterrupted();
  for (int64_t rank = 0; rank < count; ++rank) {
    Cta &cta = ctas.emplace_back();
    cta.block = {block[0] + rank, block[1], block[2]};
    cta.memory.assign(size_t(end) + 1024, char(0xff));
    for (unsigned i = hasRoles ? 0 : 1; i <= std::max(launch.computing(), 1u); ++i) {
      int id = int(agents.size());
      Agent &agent = agents.emplace_back();
      agent.machine = this;
      agent.cta = int(rank), agent.number = int(i), agent.id = id;
    }
  }
}

bool Agent::isProducer() const { return number > int(std::max(machine->launch.consumers, 1u)); }

std::string Agent::name() const {
  std::string name = isLoader()     ? "the load role"
                     : isProducer() ? "the warpgroup that makes operands"
                                    : "warpgroup " + std::to_string(number - 1);
  return machine->clusterSize() > 1 || machine->launch.dynamic ? name + " of CTA " + std::to_string(cta) : name;
}

char *Machine::shared(Value alloc) { return ctas[size_t(self().cta)].base() + offsets.lookup(alloc); }

Ring &Machine::ring(int cta, Value value, int64_t slots) {
  Ring &ring = ctas[size_t(cta)].rings[value.getAsOpaquePointer()];
  if (ring.full.empty()) {
    ring.full.resize(size_t(slots));
    ring.empty.resize(size_t(slots));
    auto op = value.getDefiningOp<kgpu::RingOp>();
    ring.isShared = op && op.getKind() == kgpu::RingKind::Shared;
    ring.isOfCluster = op && op.getKind() == kgpu::RingKind::Cluster;
    ring.numbers.resize(op && op.getKind() == kgpu::RingKind::Channel ? size_t(slots) : 0);
    for (Barrier &barrier : ring.empty)
      barrier.arrivals = barrier.missing =
          launch.producers && op && op.getKind() != kgpu::RingKind::Channel
              ? kgpu::releasing(op)
              : std::max(launch.consumers, 1u) * (ring.isOfCluster ? clusterSize() : 1);
    for (Barrier &barrier : ring.full)
      if (ring.isShared)
        barrier.arrivals = barrier.missing = std::max(launch.consumers, 1u);
  }
  return ring;
}

std::vector<double> Machine::readOperand(const char *base, kgpu::SharedType type) {
  std::vector<int64_t> &offsets = places[type.getAsOpaquePointer()];
  if (offsets.empty()) {
    layout::SharedLayout placement = type.getPlacement();
    for (int64_t i = 0; i < type.getShape()[0]; ++i)
      for (int64_t j = 0; j < type.getShape()[1]; ++j)
        offsets.push_back(placement.offset({i, j}));
  }
  std::vector<double> elements(offsets.size());
  for (auto [element, offset] : llvm::zip_equal(elements, offsets)) {
    Cell cell = loadCell(base + offset, type.getElementType());
    element = isFloat(type.getElementType()) ? cell.f : double(cell.i);
  }
  return elements;
}

bool Machine::write(char *address, Cell cell, Type type) {
  storeCell(address, cell, type);
  std::string bytes(address, size_t(storageSize(type)));
  auto [known, isNew] = written.try_emplace(address, self().id, bytes);
  bool agrees = isNew || known->second.first == self().id || known->second.second == bytes;
  known->second = {self().id, std::move(bytes)};
  return agrees;
}

bool Machine::owns(const Agent &agent, ArrayRef<int64_t> shape, int64_t row, int64_t column) const {
  int64_t count = std::max(launch.consumers, 1u), parts = std::max<int64_t>(count * 64 / shape[0], 1),
          groups = count / parts;
  return row / 64 % groups + column / (shape[1] / parts) * groups == agent.number - 1;
}

bool Machine::holds(const Agent &agent, const layout::Layout &layout, ArrayRef<int64_t> coordinates) const {
  if (launch.consumers < 2 || agent.isLoader() || agent.isProducer())
    return true;                   // One agent represents all threads.
  constexpr unsigned warpBits = 2; // Warp bits inside a warpgroup.
  unsigned decides = ~layout.freeBits(layout::Part::Warp) & (layout.warps() - 1);
  std::optional<layout::Place> place = layout.placeOf(coordinates);
  return place && ((place->warp ^ unsigned(agent.number - 1) << warpBits) & decides) >> warpBits == 0;
}

bool Machine::isReadByRows(Value operand) const {
  return isa<kgpu::SharedType>(operand.getType()) && !operand.getDefiningOp<kgpu::TransposeBufferOp>() &&
         sharedBuffers.contains(kgpu::rootBuffer(operand));
}

void Machine::keepOwnRows(const Agent &agent, std::vector<double> &operand, ArrayRef<int64_t> shape) const {
  for (int64_t i = 0; i < int64_t(operand.size()); ++i)
    if (!owns(agent, shape, i / shape[1], i % shape[1]))
      operand[size_t(i)] = 0;
}

bool Machine::allReached(const Agent &agent, int64_t count) const {
  return llvm::all_of(agents, [&](const Agent &other) {
    return other.cta != agent.cta || other.isLoader() || other.isProducer() || other.barriers >= count;
  });
}

int64_t Machine::turnsOf(const Agent &agent) const {
  bool isFirst = agent.number == 1;
  return isFirst ? agents[size_t(agent.id) + std::max(launch.consumers, 1u) - 1].passed + 1
                 : agents[size_t(agent.id) - 1].passed;
}

int64_t Machine::nextTile(int64_t count) {
  int64_t next = taken + int64_t(ctas.size());
  taken = taken + 1 < count ? taken + 1 : 0;
  return next;
}

bool Machine::goesOn(const Agent &agent) {
  constexpr uint64_t slowest = 5;
  return !launch.dynamic || random() % (1 + (uint64_t(agent.cta) + options.seed) % slowest) == 0;
}

void Machine::runAgent(Agent &agent) {
  current = &agent;
  {
    std::unique_lock lock(mutex);
    turned.wait(lock, [&] { return turn == &agent || isOver; });
  }
  if (!isOver) {
    Options plain;
    plain.maxSteps = options.maxSteps;
    std::mt19937_64 unused;
    Frame frame(handlers(), plain, steps, unused, ctas[size_t(agent.cta)].block, grid);
    for (auto [value, argument] : llvm::zip_equal(kernel.getBody().getArguments(), arguments)) {
      if (const View *view = std::get_if<View>(&argument))
        frame.set(value, *view);
      else
        frame.set(value, Tile::scalar(value.getType(), std::get<Cell>(argument)));
    }
    if (llvm::Error failed = frame.runBlock(kernel.getBody().front())) {
      std::string text = llvm::toString(std::move(failed));
      if (failure.empty())
        failure = agent.name() + ": " + text;
    }
  }
  std::lock_guard lock(mutex);
  agent.isFinished = true;
  turn = nullptr;
  turned.notify_all();
}

llvm::Error Machine::pause(Operation &op, const char *waitsFor, std::function<bool()> condition) {
  Agent &agent = self();
  agent.condition = std::move(condition);
  agent.waitsFor = waitsFor ? waitsFor : "";
  std::unique_lock lock(mutex);
  turn = nullptr;
  turned.notify_all();
  turned.wait(lock, [&] { return turn == &agent || isOver; });
  if (isOver)
    return llvm::createStringError("ended from outside");
  return llvm::Error::success();
}

void Machine::resume(Agent &agent) {
  std::unique_lock lock(mutex);
  turn = &agent;
  turned.notify_all();
  turned.wait(lock, [&] { return turn == nullptr; });
}

std::string Machine::deadlock() const {
  std::string text = "nothing can go on:";
  for (const Agent &agent : agents)
    if (!agent.isFinished)
      text += " " + agent.name() + " waits for " + agent.waitsFor + ";";
  text.pop_back();
  return text;
}

llvm::Error Machine::finish(const Agent &agent, Product &product) {
  auto wgmma = cast<kgpu::WgmmaOp>(product.op);
  kgpu::SharedType rhs = wgmma.getRhs().getType();
  std::vector<double> left = product.a;
  if (product.lhs) {
    auto type = cast<kgpu::SharedType>(wgmma.getLhs().getType());
    left = readOperand(product.lhs, type);
    if (isReadByRows(wgmma.getLhs()))
      keepOwnRows(agent, left, type.getShape());
    if (!product.positions.empty())
      left = spread(left, product.positions);
  }
  auto same = [](const std::vector<double> &x, const std::vector<double> &y) {
    return std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
  };
  if (!same(product.a, left) || !same(product.b, readOperand(product.rhs, rhs)))
    return llvm::createStringError("the operands of a product change while it runs");
  int64_t columns = product.sum.shape[1], rows = product.sum.shape[0], depth = int64_t(product.a.size()) / rows,
          firstRow = int64_t(wgmma.getRow());
  bool isFloatSum = isFloat(product.sum.type);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      Cell &cell = product.sum.cells[i * columns + j];
      double sum = !product.adds ? 0 : isFloatSum ? cell.f : double(cell.i);
      for (int64_t k = 0; k < depth; ++k)
        sum += product.a[i * depth + k] * product.b[(firstRow + k) * rhs.getShape()[1] + j];
      if (isFloatSum)
        cell.f = double(float(sum));
      else
        cell.i = wrapTo(int64_t(sum), product.sum.type);
    }
  product.isDone = true;
  return llvm::Error::success();
}

std::string Machine::leftOver(const Ring &ring) const {
  for (size_t slot = 0; slot < ring.full.size(); ++slot) {
    const Barrier &full = ring.full[slot], &empty = ring.empty[slot];
    if (ring.isShared && full.missing != full.arrivals)
      return "slot " + std::to_string(slot) + " of a shared ring was not filled by all warpgroups";
    if (!ring.isShared &&
        (full.phase != empty.phase || full.missing != 1 || empty.missing != empty.arrivals || full.bytes != 0))
      return "slot " + std::to_string(slot) + " of a ring was filled " + std::to_string(full.phase) +
             " times and emptied " + std::to_string(empty.phase) + " times";
  }
  return {};
}

llvm::Error Machine::run() {
  std::vector<std::thread> threads;
  for (Agent &agent : agents)
    threads.emplace_back([this, &agent] { runAgent(agent); });
  // Depending on the seed, copies tend to end late or early.
  unsigned haste = unsigned(options.seed % 3);
  while (failure.empty()) {
    std::vector<std::function<void()>> roles, effects;
    for (Agent &agent : agents)
      if (!agent.isFinished && (!agent.condition || agent.condition()))
        roles.push_back([this, &agent] {
          if (goesOn(agent))
            resume(agent);
        });
    for (size_t i = 0; i < copies.size(); ++i)
      effects.push_back([this, i] {
        Copy copy = std::move(copies[i]);
        copies.erase(copies.begin() + std::ptrdiff_t(i));
        copy.finish();
      });
    for (Agent &agent : agents)
      if (agent.done < int64_t(agent.products.size())) // Products of a warpgroup end in order.
        effects.push_back([this, &agent] {
          Product &product = agent.products[size_t(agent.done)];
          if (product.sumOf)
            product.sum = agent.products[size_t(*product.sumOf)].sum;
          if (llvm::Error wrong = finish(agent, product))
            failure = agent.name() + ": " + llvm::toString(std::move(wrong));
          ++agent.done;
        });
    if (roles.empty() && effects.empty()) {
      bool ended = llvm::all_of(agents, [](const Agent &agent) { return agent.isFinished; });
      if (!ended)
        failure = deadlock();
      break;
    }
    bool takesEffect = roles.empty() || (!effects.empty() && random() % 4 < 1 + haste);
    std::vector<std::function<void()>> &from = takesEffect ? effects : roles;
    from[random() % from.size()]();
  }
  {
    std::lock_guard lock(mutex);
    isOver = true;
    turned.notify_all();
  }
  for (std::thread &thread : threads)
    thread.join();
  for (Cta &cta : ctas)
    for (auto &[value, ring] : cta.rings)
      if (failure.empty())
        failure = leftOver(ring);
  if (failure.empty() && taken != 0)
    failure = "the counter of tiles ends at " + std::to_string(taken);
  if (failure.empty())
    return llvm::Error::success();
  const std::array<int64_t, 3> &block = ctas.front().block;
  return llvm::createStringError("CTA (" + llvm::Twine(block[0]) + ", " + llvm::Twine(block[1]) + ", " +
                                 llvm::Twine(block[2]) + "): " + failure);
}

llvm::Error kpkg::sim::simulate(tile::KernelOp kernel, ArrayRef<Argument> arguments, std::array<int64_t, 3> grid,
                                const AsyncOptions &options) {
  int64_t steps = 0;
  const kgpu::Launch launch = kgpu::getLaunch(kernel);
  const int64_t together = launch.dynamic ? grid[0] : launch.consumers ? launch.cluster : 1;
  if (grid[0] % together != 0)
    return llvm::createStringError("a grid of " + llvm::Twine(grid[0]) + " CTAs is no whole number of clusters of " +
                                   llvm::Twine(together));
  for (int64_t z = 0; z < grid[2]; ++z)
    for (int64_t y = 0; y < grid[1]; ++y)
      for (int64_t x = 0; x < grid[0]; x += together)
        if (llvm::Error failed = Machine(kernel, arguments, {x, y, z}, grid, together, options, steps).run())
          return failed;
  return llvm::Error::success();
}
