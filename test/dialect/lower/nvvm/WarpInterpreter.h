// Runs straight-line code of one thread for all threads of a CTA in lockstep.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Block.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include <cstdint>
#include <vector>

namespace kpkg::test {

/// Values are bits: one number for each thread, or one for each element of a vector in order. Supports the integer ops
/// of arith, scf.if without results, shuffles, and accesses to shared memory, whose pointers are byte offsets. Any
/// other op fails the test.
class WarpInterpreter {
public:
  using Lanes = std::vector<uint64_t>; ///< Of thread 0, 1, ...

  /// Creates warps of `warpSize` lanes.
  WarpInterpreter(unsigned threads, unsigned warpSize, size_t sharedBytes)
      : threads(threads), warpSize(warpSize), memory(sharedBytes, 0xee), active(threads, true) {}

  void set(mlir::Value value, Lanes lanes) { values[value] = {std::move(lanes)}; }
  const Lanes &get(mlir::Value value) const { return values.find(value)->second.front(); }
  /// Runs the ops of the block except a terminator.
  void run(mlir::Block &block);
  /// Returns whether no byte was written with different values by two threads since the last barrier.
  bool raceFree() const { return !raced; }

private:
  void run(mlir::Operation &op);
  template <typename Function> void each(mlir::Operation &op, Function function);
  void access(mlir::Operation &op);
  void shuffle(mlir::Operation &op);

  unsigned threads, warpSize;
  std::vector<uint8_t> memory;
  std::vector<bool> active;
  bool raced = false;
  /// One entry for each element of the value's type.
  llvm::DenseMap<mlir::Value, std::vector<Lanes>> values;
};

} // namespace kpkg::test
