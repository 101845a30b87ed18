/* C API of libkpkg_torch: ops of packages in PyTorch's dispatcher, for programs with libtorch and without Python.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef KPKG_TORCH_H
#define KPKG_TORCH_H

#include <kpkg/kpkg.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a package, and defines its ops in PyTorch's dispatcher: "kpkg::softmax", and "kpkg::softmax.out" with memory
 * for the result. The package stays open until the process ends. `options` may be NULL.
 *
 * Calls of models that AOTInductor has compiled, and of c10::Dispatcher, then reach the op. A second package with an op
 * of the same schema takes over its name; another schema is an error. A call without a kernel runs the packaged
 * reference of the op, as KPKG_FALLBACK allows. Ops compute no gradients. kpkg_last_error() describes a failure. */
KPKG_API kpkg_status kpkg_torch_load(const char *path, const kpkg_open_options *options);

#ifdef __cplusplus
}
#endif

#endif /* KPKG_TORCH_H */
