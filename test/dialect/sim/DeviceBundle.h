// Random kernels as GPU code, with what a launch of them needs and must leave in memory, in files for
// test/device/random_kernels.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "RandomCall.h"
#include "compiler/driver/CompileGpu.h"
#include "llvm/Support/JSON.h"
#include <map>

namespace kpkg::sim::test {
/// Kernels, their calls and code for one or more chips.
///
/// `write` makes two files. `stem`.bin is zlib data; `stem`.json says where in the inflated bytes things are. It is a
/// list of kernels:
///   {"seed", "grid": [x, y, z], "arguments": [...], "code": [...]}
/// A code entry is {"chip", "variant", "symbol", "image": span, "threads", "blocks", "cluster", "shared", "occupancy",
/// "persistent"}; the launch has the meaning that it has in packages. An argument is {"word": n}, a scalar as the
/// kernel takes it, or a view: {"dtype", "bytes" of an element, "shape", "strides", "offset", "initial": span} where
/// strides and offset count elements, and for views that are written {"expected": span, "allowed": span of f64, absent
/// where nothing may differ}. A span is [first byte, bytes].
class DeviceBundle {
public:
  DeviceBundle(std::vector<std::string> chips, compiler::Ptxas ptxas)
      : chips(std::move(chips)), ptxas(std::move(ptxas)) {}

  /// Compiles the kernel as packages are built, simplified and in one of the variants whose facts its call satisfies;
  /// which one, the seed decides. The error is what the compiler says; then the bundle is as before.
  llvm::Error add(RandomKernel &kernel);
  llvm::Error write(llvm::StringRef stem) const;

  /// How many codes there are of each variant.
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
