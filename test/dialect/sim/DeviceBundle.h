// Writes random kernels as GPU code, with their launches and expected results, for test/device/random_kernels.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "RandomCall.h"
#include "compiler/driver/CompileGpu.h"
#include "llvm/Support/JSON.h"
#include <map>

namespace kpkg::sim::test {
/// Holds kernels, their calls, and their code for one or more chips.
///
/// `write` makes two files. `stem`.bin is zlib data, and `stem`.json gives positions in the inflated bytes. It is a
/// list of kernels:
///   {"seed", "grid": [x, y, z], "arguments": [...], "code": [...]}
///
/// A code entry is {"chip", "variant", "symbol", "image": span, "threads", "blocks", "cluster", "shared", "occupancy",
/// "persistent"}. The launch has the same meaning as in packages. A span is [first byte, bytes].
///
/// An argument is {"word": n}, a scalar in the form that the kernel takes, or a view:
///   {"dtype", "bytes" of an element, "shape", "strides", "offset", "initial": span}
///
/// Strides and offset count elements. A view that is written also has {"expected": span, "allowed": span of f64}.
/// "allowed" is absent if results must be exact.
class DeviceBundle {
public:
  DeviceBundle(std::vector<std::string> chips, compiler::Ptxas ptxas)
      : chips(std::move(chips)), ptxas(std::move(ptxas)) {}

  /// Compiles the kernel as packages are built: simplified, and in one of the variants whose facts its call satisfies.
  /// The seed decides which one. The error is the compiler's, and leaves the bundle unchanged.
  llvm::Error add(RandomKernel &kernel);
  llvm::Error write(llvm::StringRef stem) const;

  /// Returns the number of codes of each variant.
  const std::map<std::string, int64_t> &variantCounts() const { return variants; }
  int64_t machineCodeBytes() const { return codeBytes; }

private:
  llvm::json::Array append(const void *data, size_t bytes);
  llvm::json::Object describe(const compiler::GpuCode &code, tile::KernelOp variant);

  std::vector<std::string> chips;
  compiler::Ptxas ptxas;
  std::string binary;
  llvm::json::Array kernels;
  std::map<std::string, int64_t> variants;
  int64_t codeBytes = 0;
};
} // namespace kpkg::sim::test
