// Declares the functions of PyTorch's stable C ABI (torch >= 2.10) that the extension calls, so that building it needs
// no PyTorch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch guarantees these signatures (torch/csrc/inductor/aoti_torch/c/shim.h and torch/csrc/stable/c/shim.h). If the
// build finds PyTorch's own headers, StableAbiCheck.cpp includes both, so that the compiler compares all declarations.
//
// CMake reads this file too: every function whose line starts with `int32_t` goes into the link stub (TorchStub). So do
// the functions for dtypes, which it takes from the table of dtypes.
#ifndef KPKG_RUNTIME_TORCH_STABLEABI_H
#define KPKG_RUNTIME_TORCH_STABLEABI_H

#include <cstddef>
#include <cstdint>

extern "C" {

/// One value on the stack of a boxed kernel: an integer, the bits of a float, or an owning handle.
using StableIValue = uint64_t;
struct AtenTensorOpaque;
using AtenTensorHandle = AtenTensorOpaque *;
class TorchLibraryOpaque;
using TorchLibraryHandle = TorchLibraryOpaque *;
struct StableListOpaque;
using StableListHandle = StableListOpaque *;
struct StringOpaque;
using StringHandle = StringOpaque *;

// Codes of devices and dtypes are queried, never assumed, where PyTorch has the functions.
int32_t aoti_torch_device_type_cpu();
int32_t aoti_torch_device_type_cuda();
// Dtypes are weak: earlier releases of PyTorch lack the newest ones, and must still load this library.
#define KPKG_DECLARATION_IF_0(name)
#define KPKG_DECLARATION_IF_1(name) __attribute__((weak)) int32_t aoti_torch_dtype_##name();
#define KPKG_DTYPE_ROW(constant, Type, name, code, bits, kind, exponent, mantissa, infinity, dlpack, numpy, torch,     \
                       stable)                                                                                         \
  KPKG_DECLARATION_IF_##stable(name)
#include <kpkg/dtypes.def>
#undef KPKG_DECLARATION_IF_0
#undef KPKG_DECLARATION_IF_1
int32_t aoti_torch_layout_strided();

// Every function below returns 0 for success.
int32_t aoti_torch_get_data_ptr(AtenTensorHandle tensor, void **pointer);
int32_t aoti_torch_get_dim(AtenTensorHandle tensor, int64_t *rank);
int32_t aoti_torch_get_sizes(AtenTensorHandle tensor, int64_t **sizes);
int32_t aoti_torch_get_strides(AtenTensorHandle tensor, int64_t **strides);
int32_t aoti_torch_get_dtype(AtenTensorHandle tensor, int32_t *dtype);
int32_t aoti_torch_get_device_type(AtenTensorHandle tensor, int32_t *type);
int32_t aoti_torch_get_device_index(AtenTensorHandle tensor, int32_t *index);
int32_t aoti_torch_get_layout(AtenTensorHandle tensor, int32_t *layout);
int32_t aoti_torch_get_storage_offset(AtenTensorHandle tensor, int64_t *offset);
int32_t aoti_torch_delete_tensor_object(AtenTensorHandle tensor);
int32_t aoti_torch_empty_strided(int64_t rank, const int64_t *sizes, const int64_t *strides, int32_t dtype,
                                 int32_t deviceType, int32_t deviceIndex, AtenTensorHandle *result);
int32_t aoti_torch__reinterpret_tensor(AtenTensorHandle self, int64_t rank, const int64_t *sizes,
                                       const int64_t *strides, int64_t offset, AtenTensorHandle *result);
int32_t aoti_torch_copy_(AtenTensorHandle destination, AtenTensorHandle source, int32_t nonBlocking);

int32_t aoti_torch_library_init_impl(const char *ns, const char *dispatchKey, const char *file, uint32_t line,
                                     TorchLibraryHandle *result);
int32_t aoti_torch_library_init_fragment(const char *ns, const char *file, uint32_t line, TorchLibraryHandle *result);
int32_t aoti_torch_library_def(TorchLibraryHandle library, const char *schema);
int32_t torch_library_impl(TorchLibraryHandle library, const char *name,
                           void (*kernel)(StableIValue *, uint64_t, uint64_t), uint64_t abiVersion);
int32_t torch_call_dispatcher(const char *name, const char *overload, StableIValue *stack, uint64_t abiVersion);

int32_t torch_list_size(StableListHandle list, size_t *size);
int32_t torch_list_get_item(StableListHandle list, size_t index, StableIValue *element);
int32_t torch_delete_list(StableListHandle list);
int32_t torch_string_length(StringHandle string, size_t *length);
int32_t torch_string_c_str(StringHandle string, const char **text);
int32_t torch_delete_string(StringHandle string);

int32_t torch_get_num_threads(uint32_t *count);

} // extern "C"

namespace kpkg::torch_abi {
/// The version of the ABI that this extension uses, and thus the oldest supported PyTorch: 2.10.0.
inline constexpr uint64_t version = (uint64_t(2) << 56) | (uint64_t(10) << 48);

/// The code of float8_e8m0fnu. PyTorch 2.10 and 2.11 have this dtype without a function that returns the code. Codes do
/// not change: files that PyTorch writes have them.
inline constexpr int32_t float8E8m0fnuCode = 44;
} // namespace kpkg::torch_abi

#endif // KPKG_RUNTIME_TORCH_STABLEABI_H
