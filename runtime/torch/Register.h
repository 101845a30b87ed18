// C functions by which the Python package registers ops with PyTorch. The library must be loaded after PyTorch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_TORCH_REGISTER_H
#define KPKG_RUNTIME_TORCH_REGISTER_H

#include <kpkg/kpkg.h>

extern "C" {

/// Returns the schema of `op` in PyTorch, or of its out= form, without a namespace. NULL stands for an op without such
/// a form. The text is valid until the thread's next call.
__attribute__((visibility("default"))) const char *kpkg_torch_schema(const kpkg_op *op, int32_t isOut);

/// Makes `op`, or its out= form, callable as torch.ops.<ns>.<name>. The op must live forever.
///
/// A registered name is retargeted to this op if the schema is the same, and refused otherwise. `fallback` is the
/// dispatcher's name of the PyTorch implementation, "" for none. kpkg_last_error() describes failures.
__attribute__((visibility("default"))) kpkg_status kpkg_torch_register(const kpkg_op *op, const char *ns, int32_t isOut,
                                                                       const char *fallback);

/// Gives `op` of `registry` its PyTorch implementation as fallback, for calls that come from PyTorch.
__attribute__((visibility("default"))) kpkg_status kpkg_torch_use_fallback(kpkg_registry *registry, const char *op);

/// Reports an error of a fallback implementation on the calling thread. Raising through the C ABI would lose its text.
/// The implementation then returns placeholders.
__attribute__((visibility("default"))) void kpkg_torch_set_fallback_error(const char *message);

/// Returns how PyTorch may multiply float32 on a device of this type (kpkg_device_type): "high" or "medium"; NULL for
/// highest.
typedef const char *(*kpkg_torch_precision_fn)(int32_t device);

/// Sets a reader, which every call of an op with an empty argument `precision` asks if its first tensor is float32.
/// NULL removes it.
__attribute__((visibility("default"))) void kpkg_torch_follow_precision(kpkg_torch_precision_fn reader);

} // extern "C"

#endif // KPKG_RUNTIME_TORCH_REGISTER_H
