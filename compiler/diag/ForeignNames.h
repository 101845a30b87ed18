// Maps names of other kernel languages that .k does not define to advice.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <string_view>

namespace kpkg::compiler {

/// Returns advice for a name of CUDA, Triton, Mojo or NumPy; empty for other names.
std::string_view adviceForForeignName(std::string_view name);
/// The same for a method that PyTorch's and Triton's tensors have, and tiles have not.
std::string_view adviceForForeignTileMethod(std::string_view name);
/// The same for a method that PyTorch's tensors have, and tensors of ops have not.
std::string_view adviceForForeignTensorMethod(std::string_view name);
/// Returns whether a decorator of another language makes a function a kernel.
bool isForeignKernelDecorator(std::string_view name);

} // namespace kpkg::compiler
