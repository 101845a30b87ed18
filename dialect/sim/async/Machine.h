// One CTA of the simulator, those of a cluster, or all that share a counter: shared memory, rings, what is under way,
// and the roles that take turns.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/sim/Frame.h"
#include "dialect/sim/async/Simulator.h"
#include "llvm/ADT/MapVector.h"
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

namespace kpkg::sim {
/// An mbarrier: a phase ends when all have arrived and all announced bytes are there.
struct Barrier {
  int64_t arrivals = 1; ///< of a phase
  int64_t missing = 1;
  int64_t bytes = 0;
  int64_t phase = 0; ///< phases that have ended

  void arrive() {
    --missing;
    advance();
  }
  void expect(int64_t more) {
    bytes += more;
    arrive();
  }
  void complete(int64_t count) {
    bytes -= count;
    advance();
  }
  /// Waiting for a phase of this parity ends, as the hardware says it.
  bool hasPassed(int64_t parity) const { return (phase & 1) != parity; }

private:
  void advance() {
    if (missing <= 0 && bytes == 0) {
      ++phase;
      missing += arrivals;
    }
  }
};

struct Ring {
  std::vector<Barrier> full, empty;
  std::vector<int64_t> numbers; ///< in the slots of a channel
  bool isShared = false;        ///< filled by warpgroups, and never emptied
  bool isOfCluster = false;     ///< filled by copies of all its CTAs, and emptied by the warpgroups of all
  int64_t slots() const { return int64_t(full.size()); }
};

/// A copy that was started.
struct Copy {
  std::function<void()> finish;
};

/// A product that was started, of one warpgroup.
struct Product {
  mlir::Operation *op = nullptr;
  const char *lhs = nullptr, *rhs = nullptr; ///< null for an operand in registers
  std::vector<double> a, b;                  ///< the operands when it started
  std::vector<int64_t> positions; ///< of a left operand that has two of every four elements: `a` has all of them
  Tile sum;
  bool adds = false;
  std::optional<int64_t> sumOf; ///< the product that gives the accumulator, where that one may still run
  bool isDone = false;
};

/// All elements of an operand that has two of every four, which stand where the words of `positions` say (tile.dot).
std::vector<double> spread(const std::vector<double> &kept, const std::vector<int64_t> &positions);

class Machine;

/// What a CTA has for itself.
struct Cta {
  std::array<int64_t, 3> block;
  std::vector<char> memory;
  std::map<void *, Ring> rings;

  /// TMA's swizzle looks at addresses, so the beginning is aligned as the hardware's is.
  char *base() { return memory.data() + (-reinterpret_cast<uintptr_t>(memory.data()) & 1023); }
};

/// One role: a thread of the host that runs only when it is its turn.
struct Agent {
  Machine *machine = nullptr;
  int cta = 0; ///< in the machine
  int number =
      0;      ///< 0 loads; the others are warpgroups that compute, and behind them those that make operands for them
  int id = 0; ///< among all of the machine
  bool isLoader() const { return number == 0; }
  bool isProducer() const;
  std::string name() const;

  /// Goes on when it holds; null: at any time.
  std::function<bool()> condition;
  std::string waitsFor;
  bool isFinished = false;
  /// Products in the order of their start, and how many of them are done.
  std::deque<Product> products;
  int64_t done = 0;
  int64_t barriers = 0;          ///< that it has reached
  int64_t turns = 0, passed = 0; ///< that it has awaited, and given to the next warpgroup
};

/// The agent whose thread this is.
Agent &self();

class Machine {
public:
  /// `block`: the first of `count` CTAs.
  Machine(tile::KernelOp kernel, llvm::ArrayRef<Argument> arguments, std::array<int64_t, 3> block,
          std::array<int64_t, 3> grid, int64_t count, const AsyncOptions &options, int64_t &steps);

  /// Runs the CTAs to their end.
  llvm::Error run();

  /// For handlers, on an agent's thread: others may run now; returns when `condition` holds, or fails when the run is
  /// over.
  llvm::Error pause(mlir::Operation &op, const char *waitsFor = nullptr, std::function<bool()> condition = nullptr);

  /// Of the agent's CTA.
  char *shared(mlir::Value alloc);
  Ring &ring(mlir::Value value, int64_t slots) { return ring(self().cta, value, slots); }
  /// Of another one of the cluster.
  Ring &ring(int cta, mlir::Value value, int64_t slots);
  /// What an address of the agent's CTA is in another one.
  char *inCta(int cta, char *address) { return ctas[size_t(cta)].base() + (address - ctas[size_t(self().cta)].base()); }
  int clusterSize() const { return launch.consumers ? int(launch.cluster) : 1; }
  int ctaCount() const { return int(ctas.size()); }
  /// The next of `count` tiles, of which each CTA has one to begin with (kgpu.next_tile).
  int64_t nextTile(int64_t count);
  /// The elements of an operand of a product, row by row.
  std::vector<double> readOperand(const char *base, kgpu::SharedType type);
  void start(Copy copy) { copies.push_back(std::move(copy)); }
  /// Remembers what an agent wrote; fails when another one wrote something else there.
  bool write(char *address, Cell cell, mlir::Type type);
  /// Whether row `row` and column `column` of a tile in an accumulator's layout are the agent's.
  bool owns(const Agent &agent, llvm::ArrayRef<int64_t> shape, int64_t row, int64_t column) const;
  /// Whether a thread of the agent holds the element of a tile in this layout.
  bool holds(const Agent &agent, const layout::Layout &layout, llvm::ArrayRef<int64_t> coordinates) const;
  /// Whether warpgroups share the buffer, and each reads its own rows of it only.
  bool isReadByRows(mlir::Value operand) const;
  /// Makes all rows but those of the agent zero.
  void keepOwnRows(const Agent &agent, std::vector<double> &operand, llvm::ArrayRef<int64_t> shape) const;
  /// Whether all warpgroups of the agent's CTA have reached their barrier number `count`.
  bool allReached(const Agent &agent, int64_t count) const;
  /// How often the turn has come to a warpgroup: from the one before it, and to the first one at the beginning.
  int64_t turnsOf(const Agent &agent) const;

  tile::KernelOp kernel;
  const kgpu::Launch launch;

private:
  void runAgent(Agent &agent);
  /// Lets the agent run until it pauses or ends.
  void resume(Agent &agent);
  llvm::Error finish(const Agent &agent, Product &product);
  std::string deadlock() const;

  /// What is wrong with a ring once all is over; empty when nothing is.
  std::string leftOver(const Ring &ring) const;

  llvm::ArrayRef<Argument> arguments;
  const std::array<int64_t, 3> grid;
  const AsyncOptions &options;
  int64_t &steps;
  std::mt19937_64 random;

  /// Whether a CTA, some of which are slower than others where they take tiles as they become free, goes on this time.
  bool goesOn(const Agent &agent);

  std::deque<Cta> ctas;
  int64_t taken = 0;                         ///< the counter of the launch
  llvm::DenseSet<mlir::Value> sharedBuffers; ///< buffers that warpgroups fill
  llvm::MapVector<mlir::Value, int64_t> offsets;
  std::map<const void *, std::vector<int64_t>> places; ///< of the elements of an operand, by its type
  std::map<char *, std::pair<int, std::string>> written;
  std::vector<Copy> copies;
  std::deque<Agent> agents;

  std::mutex mutex;
  std::condition_variable turned;
  Agent *turn = nullptr; ///< null: the scheduler's
  bool isOver = false;
  std::string failure;
};

/// What stands for the result of product `number` of this warpgroup until it is waited for: no number that computing
/// gives.
Cell placeholder(int64_t number);
std::optional<int64_t> productOf(const Tile &tile);

void addRoleHandlers(HandlerTable &table);
void addAsyncMemoryHandlers(HandlerTable &table);
} // namespace kpkg::sim
