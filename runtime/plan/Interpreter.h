// Interprets verified plan bytecode. Internal to runtime/plan: users call evaluate().
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/plan/Decoded.h"
#include "runtime/plan/Memory.h"
#include <bit>

namespace kpkg::plan {

/// The contents of a register. Int, Bool, DType: the number; Float: its bits; Tensor: its TensorId; String: index in
/// the interpreter's strings. List of Int: start in the pool * 256 + length; List of Tensor: index in `tensorLists`.
struct Value {
  int64_t bits = 0;
  /// Only for pass-through scalars: the call's argument, or -1 if `bits` is the value.
  int32_t argument = -1;
};

/// A list of tensors: a range of the interpreter's `listed`.
struct TensorList {
  size_t first = 0, count = 0;
  int32_t argument = -1; ///< the argument of the call that it is, or -1
};

/// The allocations of an evaluation, which later ones may reuse.
struct Workspace {
  std::vector<Value> stack, values;
  std::vector<int64_t> pool;
  std::vector<std::string_view> strings;
  std::vector<uint32_t> active;
  std::vector<TensorList> tensorLists;
  std::vector<TensorId> listed;
  Memory::Storage memory;
};

class Interpreter {
public:
  /// Discards the contents of `workspace`.
  Interpreter(const DecodedModule &module, CallSignature call, Resolution &resolution, int64_t processors,
              Workspace &workspace);
  /// Runs function 0 and fills the resolution.
  std::optional<Error> run();

private:
  /// Fills `values`.
  bool bindArguments();
  /// Checks the number of arguments, and where the tensors of lists are.
  bool checkCall();
  bool bindTensorList(size_t index, Value &value);
  /// Creates the registers of a function. Those from the returned index on are its arguments.
  size_t pushFrame(uint32_t index);
  /// Runs a function, removes its registers, and leaves the results in `values`.
  bool runFunction(uint32_t index, size_t frame);
  bool callFunction(const Instruction &i, const Function &f, size_t frame);

  /// The families of instructions, to which Interpreter.cpp dispatches.
  bool scalar(const Instruction &i, const Function &f, Value *regs);
  bool intArithmetic(Opcode op, int64_t a, int64_t b, int64_t &result);
  bool list(const Instruction &i, const Function &f, Value *regs);
  bool tensorList(const Instruction &i, const Function &f, Value *regs);
  bool query(const Instruction &i, const Function &f, Value *regs);
  bool tensor(const Instruction &i, const Function &f, Value *regs);
  bool viewOrCopy(const Instruction &i, TensorId source, std::span<const uint16_t> operands, Value *regs,
                  TensorId &result);
  bool launch(const Instruction &i, const Function &f, Value *regs);
  bool raise(const Instruction &i, const Function &f, Value *regs);

  /// Fails if the evaluation exceeds its cost limit.
  bool spend(size_t steps);
  bool spendOnText(size_t bytes);
  bool equalStrings(std::string_view a, std::string_view b, Value &out);
  bool fail(Error::Kind kind, std::string message, int32_t argument = -1);
  /// Fails with Memory's error.
  bool failMemory();
  /// Fails with "<operation> of <tensor>: <why>".
  bool failTensor(Opcode op, TensorId id, const std::string &why);

  std::span<const int64_t> listOf(const Value &value) const {
    return {pool.data() + (value.bits >> 8), static_cast<size_t>(value.bits & 255)};
  }
  bool makeList(std::span<const int64_t> entries, Value &value);
  /// Fails if lists of tensors cannot have one more list of this length.
  bool makesRoomFor(size_t tensors);
  std::string format(const Value &value, RegisterType type) const;

  const DecodedModule &module;
  CallSignature call;
  Resolution &resolution;
  Memory memory;
  std::vector<Value> &stack;  ///< registers of all active functions
  std::vector<Value> &values; ///< arguments of the call, then results of the function that returned last
  std::vector<int64_t> &pool; ///< entries of lists
  std::vector<std::string_view> &strings;
  std::vector<uint32_t> &active; ///< functions, outermost first
  std::vector<TensorList> &tensorLists;
  std::vector<TensorId> &listed; ///< tensors of lists
  int64_t fuel;                  ///< remaining steps
  const int64_t processors;
  std::optional<Error> failure;
};

} // namespace kpkg::plan
