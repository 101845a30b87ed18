// Owns the stack handles of one boxed call, and presents its arguments as kpkg values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_TORCH_BOXEDARGUMENTS_H
#define KPKG_RUNTIME_TORCH_BOXEDARGUMENTS_H

#include "runtime/torch/StableAbi.h"
#include <kpkg/kpkg.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kpkg::torch_abi {

/// The registered properties of one schema argument.
struct ArgumentType {
  int32_t kind; ///< kpkg_kind
  bool optional;
};

/// Limit of arguments of an op in PyTorch, including results of an out= form.
inline constexpr int maxArguments = 32;

/// Reads a stack of StableIValues by the types of the schema. Owns the stack's contents until `takeStack`.
class BoxedArguments {
public:
  /// Throws std::runtime_error with the argument's name for a tensor without strided memory. A dtype that kpkg lacks
  /// becomes KPKG_NO_DTYPE, which the runtime refuses with a reason.
  BoxedArguments(const StableIValue *stack, const std::vector<ArgumentType> &types, const char *opName);
  ~BoxedArguments();
  BoxedArguments(const BoxedArguments &) = delete;
  BoxedArguments &operator=(const BoxedArguments &) = delete;

  int32_t count() const { return int32_t(types.size()); }
  /// Returns `count()` values. Memory that they point to is valid as long as this object.
  const kpkg_value *values() const { return valueStorage.data(); }
  /// Returns argument `index` as a tensor; null for None.
  const kpkg_tensor *tensor(int32_t index) const {
    return valueStorage[index].kind == KPKG_TENSOR ? &tensors[index] : nullptr;
  }
  /// Returns the tensors of argument `index`: one, those of a list, or none.
  std::span<const kpkg_tensor> tensorsOf(int32_t index) const {
    const kpkg_value &value = valueStorage[index];
    if (value.kind == KPKG_TENSOR_LIST)
      return {value.as.tensor, size_t(value.count)};
    return {&tensors[index], size_t(value.kind == KPKG_TENSOR)};
  }
  /// Returns tensor argument `index`, borrowed.
  AtenTensorHandle handle(int32_t index) const;
  /// Moves all stack values, with ownership of their handles, to `stack`.
  void takeStack(StableIValue *stack);

private:
  /// Reads the properties of a tensor. `what` names it in errors.
  static kpkg_tensor describe(AtenTensorHandle handle, const std::string &what);
  StableListHandle listHandle(int32_t index) const;
  void readList(int32_t index);
  void readTensorList(int32_t index, const std::string &what);
  void release();

  const std::vector<ArgumentType> &types;
  std::array<StableIValue, maxArguments> owned;
  std::array<kpkg_value, maxArguments> valueStorage;
  std::array<kpkg_tensor, maxArguments> tensors;
  std::vector<int64_t> listStorage;
  std::vector<kpkg_tensor> tensorStorage; ///< of lists
  bool taken = false;
};

} // namespace kpkg::torch_abi

#endif // KPKG_RUNTIME_TORCH_BOXEDARGUMENTS_H
