// Compiles tile kernels from text to a loaded shared object and calls them, for tests.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/codegen/host/HostCode.h"
#include "runtime/include/kpkg/kernel_abi.h"
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace kpkg::test {

/// The argument words of a call.
class Arguments {
public:
  template <class T> Arguments &view(T *data, std::vector<int64_t> shape, std::vector<int64_t> stride = {}) {
    words.push_back(reinterpret_cast<int64_t>(data));
    if (stride.empty()) {
      stride.assign(shape.size(), 1);
      for (size_t dim = shape.size(); dim-- > 1;)
        stride[dim - 1] = stride[dim] * shape[dim];
    }
    words.insert(words.end(), shape.begin(), shape.end());
    words.insert(words.end(), stride.begin(), stride.end());
    return *this;
  }
  template <class T> Arguments &scalar(T value) {
    int64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    words.push_back(word);
    return *this;
  }
  std::vector<int64_t> words;
};

class CompiledKernels {
public:
  /// Compiles the text. The running test fails with a message if it does not compile.
  explicit CompiledKernels(const std::string &mlirText, const char *isa = "x86-64-v3");
  ~CompiledKernels();
  /// Runs blocks [0, x * y * z) on this thread, or all tiles of a persistent kernel. Returns the kernel's status.
  int32_t run(const std::string &symbol, const Arguments &arguments, std::vector<int64_t> grid = {1});
  const compiler::HostKernel &kernel(const std::string &symbol) const;
  std::vector<std::vector<uint64_t>> printed; ///< For each print: the index of its format, then its words.

private:
  std::vector<compiler::HostKernel> kernels;
  void *library = nullptr;
};

/// Returns the shared object's bytes, or an empty string after a test failure.
std::string compileShared(const std::string &mlirText, const char *isa,
                          std::vector<compiler::HostKernel> *kernels = nullptr);

} // namespace kpkg::test
