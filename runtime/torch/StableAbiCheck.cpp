// Compiles only if kpkg's declarations of PyTorch's stable C ABI match PyTorch's: C functions cannot be declared twice
// with different types.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <torch/csrc/stable/c/shim.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/version.h>

#include "runtime/torch/StableAbi.h"

static_assert(TORCH_ABI_VERSION >= kpkg::torch_abi::version, "PyTorch is older than the ABI that the extension speaks");
static_assert(int32_t(c10::ScalarType::Float8_e8m0fnu) == kpkg::torch_abi::float8E8m0fnuCode);
