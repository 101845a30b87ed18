// Runs straight-line code of one thread for all threads of a CTA in lockstep.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Block.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include <cstdint>
#include <vector>

namespace kpkg::test {

/// Values are bits: one number for each thread, or for each element of a vector one after the other. Knows the integer
/// ops of arith, scf.if without results, shuffles, and accesses to shared memory, whose pointers are byte offsets.
/// Anything else fails the test.
class WarpInterpreter {
public:
  using Lanes = std::vector<uint64_t>; ///< of thread 0, 1, ...

  /// Warps of `warpSize` lanes.
  WarpInterpreter(unsigned threads, unsigned warpSize, size_t sharedBytes)
      : threads(threads), warpSize(warpSize), memory(sharedBytes, 0xee), active(threads, true) {}

  void set(mlir::Value value, Lanes lanes) { values[value] = {std::move(lanes)}; }
  const Lanes &get(mlir::Value value) const { return values.find(value)->second.front(); }
  /// Runs the ops of the block; its terminator, if any, is left out.
  void run(mlir::Block &block);
  /// No thread wrote a byte that another one wrote with another value since the last barrier.
  bool raceFree() const { return !raced; }

private:
  void run(mlir::Operation &op);
  template <typename Function> void each(mlir::Operation &op, Function function);
  void access(mlir::Operation &op);

  unsigned threads, warpSize;
  std::vector<uint8_t> memory;
  std::vector<bool> active;
  bool raced = false;
  /// For each element of the value's type.
  llvm::DenseMap<mlir::Value, std::vector<Lanes>> values;
};

} // namespace kpkg::test
