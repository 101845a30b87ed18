// Allocates tensors for results of ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_TVM_FFI_ALLOCATION_H
#define KPKG_RUNTIME_TVM_FFI_ALLOCATION_H

#include <kpkg/kpkg.h>
#include <tvm/ffi/container/tensor.h>

namespace kpkg::tvm_abi {

/// Returns new memory for an allocation. It has the allocation's shape if its strides are dense, and is flat otherwise.
/// It comes from the environment's allocator if there is one, such as that of PyTorch for calls with its tensors, and
/// else from kpkg. Throws tvm-ffi's MemoryError, and the errors of the environment's allocator.
tvm::ffi::Tensor allocateTensor(const kpkg_allocation &wanted, void *stream);

} // namespace kpkg::tvm_abi

#endif // KPKG_RUNTIME_TVM_FFI_ALLOCATION_H
