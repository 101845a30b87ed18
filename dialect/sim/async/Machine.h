// Declares the machine that simulates the CTAs of a cluster or of a tile counter: memory, rings, roles, pending work.
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
/// An mbarrier: a phase ends when all arrivals and all announced bytes are complete.
struct Barrier {
  int64_t arrivals = 1; ///< The arrivals of a phase.
  int64_t missing = 1;
  int64_t bytes = 0;
  int64_t phase = 0; ///< The number of phases that have ended.

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
  /// Returns whether a wait for the phase of this parity ends, as the hardware's wait does.
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
  std::vector<int64_t> numbers; ///< The numbers in the slots of a channel.
  bool isShared = false;        ///< Filled by warpgroups, and never emptied.
  bool isOfCluster = false;     ///< Filled by multicast from all CTAs, and emptied by the warpgroups of all CTAs.
  int64_t slots() const { return int64_t(full.size()); }
};

/// A copy in flight.
struct Copy {
  std::function<void()> finish;
};

/// A product of one warpgroup in flight.
struct Product {
  mlir::Operation *op = nullptr;
  const char *lhs = nullptr, *rhs = nullptr; ///< Null for an operand in registers.
  std::vector<double> a, b;                  ///< The operands when the product started.
  std::vector<int64_t> positions;            ///< The positions of a 2:4 sparse left operand; `a` is densified.
  Tile sum;
  bool adds = false;
  std::optional<int64_t> sumOf; ///< The product that computes the accumulator, where it may still run.
  bool isDone = false;
};

/// Expands a 2:4 sparse operand to all of its elements, by the words of `positions` (tile.dot).
std::vector<double> spread(const std::vector<double> &kept, const std::vector<int64_t> &positions);

class Machine;

/// The accesses to an element of shared memory since the last barrier, in a CTA without roles.
struct LastAccesses {
  static constexpr int kSeveral = -1; ///< several threads
  struct Last {
    mlir::Operation *op = nullptr; ///< null: none
    int64_t execution = 0;
    int thread = 0;
  };
  int64_t barriers = 0; ///< before these accesses
  Last read, write, update;
};

/// The state of one CTA.
struct Cta {
  std::array<int64_t, 3> block;
  std::vector<char> memory;
  std::map<void *, Ring> rings;

  /// Returns the start of shared memory, aligned like the hardware's, because TMA's swizzle depends on addresses.
  char *base() { return memory.data() + (-reinterpret_cast<uintptr_t>(memory.data()) & 1023); }
};

/// A role of a CTA: a host thread that runs only on its turn.
struct Agent {
  Machine *machine = nullptr;
  int cta = 0;    ///< Its index in the machine.
  int number = 0; ///< 0 is the producer warp; then the consumer warpgroups follow, then the producer warpgroups.
                  ///< Without roles 1 stands for all threads.
  int id = 0;     ///< Unique in the machine.
  bool isLoader() const { return number == 0; }
  bool isProducer() const;
  std::string name() const;

  /// The agent continues when the condition holds. Null means at any time.
  std::function<bool()> condition;
  std::string waitsFor;
  bool isFinished = false;
  /// Products in the order of their start, and the number of completed ones.
  std::deque<Product> products;
  int64_t done = 0;
  int64_t barriers = 0;          ///< The barriers that it has reached.
  int64_t turns = 0, passed = 0; ///< The ping-pong turns that it has awaited, and passed to the next warpgroup.
};

/// Returns the agent of the calling thread.
Agent &self();

class Machine {
public:
  /// Simulates `count` CTAs, the first of which is `block`.
  Machine(tile::KernelOp kernel, llvm::ArrayRef<Argument> arguments, std::array<int64_t, 3> block,
          std::array<int64_t, 3> grid, int64_t count, const AsyncOptions &options, int64_t &steps);

  /// Runs the CTAs until they end.
  llvm::Error run();

  /// Lets other agents run; called by handlers on an agent's thread. Returns when `condition` holds, or fails when the
  /// run is over.
  llvm::Error pause(mlir::Operation &op, const char *waitsFor = nullptr, std::function<bool()> condition = nullptr);

  /// Returns whether one agent stands for all threads of a CTA.
  bool isWithoutRoles() const { return agents.size() == ctas.size(); }
  LastAccesses &lastAccesses(const char *address) { return accesses[address]; }
  /// Returns a new number for the execution of an op.
  int64_t nextExecution() { return ++executions; }

  /// Returns the address of a buffer in the agent's CTA.
  char *shared(mlir::Value alloc);
  Ring &ring(mlir::Value value, int64_t slots) { return ring(self().cta, value, slots); }
  /// Returns a ring of another CTA of the cluster.
  Ring &ring(int cta, mlir::Value value, int64_t slots);
  /// Maps an address in the agent's CTA to another CTA.
  char *inCta(int cta, char *address) { return ctas[size_t(cta)].base() + (address - ctas[size_t(self().cta)].base()); }
  int clusterSize() const { return launch.consumers ? int(launch.cluster) : 1; }
  int ctaCount() const { return int(ctas.size()); }
  /// Returns the next of `count` tiles. Each CTA starts with one tile (kgpu.next_tile).
  int64_t nextTile(int64_t count);
  /// Returns the elements of an operand of a product, row by row.
  std::vector<double> readOperand(const char *base, kgpu::SharedType type);
  void start(Copy copy) { copies.push_back(std::move(copy)); }
  /// Records a write of an agent. Returns false when another agent wrote a different value there.
  bool write(char *address, Cell cell, mlir::Type type);
  /// Returns whether the agent owns row `row` and column `column` of a tile in an accumulator's layout.
  bool owns(const Agent &agent, llvm::ArrayRef<int64_t> shape, int64_t row, int64_t column) const;
  /// Returns whether a thread of the agent holds the element of a tile in this layout.
  bool holds(const Agent &agent, const layout::Layout &layout, llvm::ArrayRef<int64_t> coordinates) const;
  /// Returns whether warpgroups share the buffer, and each reads only its own rows.
  bool isReadByRows(mlir::Value operand) const;
  /// Sets all rows to zero except those of the agent.
  void keepOwnRows(const Agent &agent, std::vector<double> &operand, llvm::ArrayRef<int64_t> shape) const;
  /// Returns whether all warpgroups of the agent's CTA have reached their barrier number `count`.
  bool allReached(const Agent &agent, int64_t count) const;
  /// Returns how often a warpgroup was given the turn by its predecessor. The first warpgroup also starts with a turn.
  int64_t turnsOf(const Agent &agent) const;

  tile::KernelOp kernel;
  const kgpu::Launch launch;

private:
  void runAgent(Agent &agent);
  /// Runs the agent until it pauses or ends.
  void resume(Agent &agent);
  llvm::Error finish(const Agent &agent, Product &product);
  std::string deadlock() const;

  /// Returns what is wrong with a ring at the end of the run, or an empty text.
  std::string leftOver(const Ring &ring) const;

  llvm::ArrayRef<Argument> arguments;
  const std::array<int64_t, 3> grid;
  const AsyncOptions &options;
  int64_t &steps;
  std::mt19937_64 random;

  /// Returns whether the agent runs this time. With a dynamic tile scheduler, some CTAs are slower than others.
  bool goesOn(const Agent &agent);

  std::deque<Cta> ctas;
  int64_t taken = 0;                         ///< The counter of the launch.
  llvm::DenseSet<mlir::Value> sharedBuffers; ///< Buffers that warpgroups fill.
  llvm::MapVector<mlir::Value, int64_t> offsets;
  std::map<const void *, std::vector<int64_t>> places; ///< The offsets of an operand's elements, by its type.
  std::map<char *, std::pair<int, std::string>> written;
  std::map<const char *, LastAccesses> accesses;
  int64_t executions = 0;
  std::vector<Copy> copies;
  std::deque<Agent> agents;

  std::mutex mutex;
  std::condition_variable turned;
  Agent *turn = nullptr; ///< Null: the scheduler's turn.
  bool isOver = false;
  std::string failure;
};

/// Returns a placeholder for the result of product number `number` of this warpgroup, until it is waited for. No
/// computation produces such a value.
Cell placeholder(int64_t number);
std::optional<int64_t> productOf(const Tile &tile);

void addRoleHandlers(HandlerTable &table);
void addAsyncMemoryHandlers(HandlerTable &table);
} // namespace kpkg::sim
