// Calls an op with the values of tvm-ffi, and gives it memory of tvm-ffi's environment.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_TVM_FFI_CALL_H
#define KPKG_RUNTIME_TVM_FFI_CALL_H

#include "runtime/tvm_ffi/Arena.h"

#include <kpkg/kpkg.hpp>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include <array>
#include <forward_list>
#include <optional>
#include <string>
#include <vector>

namespace kpkg::tvm_abi {

/// Throws the error of a failed function of kpkg as tvm-ffi's, under the name of Python's exception for it.
[[noreturn]] void raise(const Error &error);

/// One call, and the memory that its pointers refer to.
class Call {
public:
  /// Where the results go.
  enum Form {
    Returning, ///< to new tensors
    Writing    ///< to the tensors that stand before the arguments
  };

  /// Reads the arguments, which are in the order of the schema. Those left out have their defaults, and so has None
  /// where the schema does not allow it. Throws tvm-ffi's TypeError for a value that does not fit the schema.
  Call(const Op &op, tvm::ffi::PackedArgs given, Form form);
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  /// Runs the op on the environment's stream, and returns its result, an array of several, or None. Throws the errors
  /// of `raise`.
  tvm::ffi::Any run();

private:
  /// Returns the entries of a list or tuple, and refuses all else.
  std::vector<tvm::ffi::Any> entriesOf(const ArgumentInfo &argument, tvm::ffi::AnyView given) const;
  [[noreturn]] void refuse(const ArgumentInfo &argument, const std::string &what) const;
  kpkg_value lower(const ArgumentInfo &argument, tvm::ffi::AnyView given);
  void lowerIntegers(const ArgumentInfo &argument, tvm::ffi::AnyView given, kpkg_value &lowered);
  void lowerTensors(const ArgumentInfo &argument, tvm::ffi::AnyView given, kpkg_value &lowered);
  int32_t dtypeOf(const ArgumentInfo &argument, tvm::ffi::AnyView given) const;
  /// Returns nothing if the value is no tensor.
  std::optional<kpkg_tensor> describe(tvm::ffi::AnyView given);
  /// Returns null if the value is no tensor.
  const kpkg_tensor *tensorOf(tvm::ffi::AnyView given);
  static kpkg_status allocate(void *context, const kpkg_allocation *wanted, void **data);
  tvm::ffi::Any pack(const kpkg_result &result);

  const Op &op;
  Arena arena;
  kpkg_call call = {};
  std::array<tvm::ffi::Tensor, maxResults> allocated;
  std::forward_list<std::string> strings;
  kpkg_device device = {}; ///< of the first tensor
};

} // namespace kpkg::tvm_abi

#endif // KPKG_RUNTIME_TVM_FFI_CALL_H
