// Calls matrix products by their PyTorch and BLAS names, and passes an int where an op takes a list.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   products gemm.kpkg norm.kpkg
#include <kpkg/kpkg.hpp>

#include <cstdio>

static void print(const char *name, const kpkg::Tensor &tensor) {
  std::printf("%s [", name);
  int64_t count = 1;
  for (int64_t extent : tensor.shape()) {
    std::printf(" %lld", static_cast<long long>(extent));
    count *= extent;
  }
  std::printf(" ]:");
  for (int64_t i = 0; i < count; ++i)
    std::printf(" %.4g", double(tensor.as<float>()[i]));
  std::printf("\n");
}

int main(int count, char **arguments) {
  auto products = kpkg::Library::open(count > 1 ? arguments[1] : "gemm.kpkg").value();
  auto norms = kpkg::Library::open(count > 2 ? arguments[2] : "norm.kpkg").value();
  float left[] = {1, 2, 3, 4, 5, 6, 7, 8}, right[] = {1, 0, 0, 1, 2, 0, 0, 2}, numbers[] = {1, 10};
  kpkg::Tensor a(left, kpkg::DType::Float32, {2, 2, 2}), b(right, kpkg::DType::Float32, {2, 2, 2}),
      matrix(left, kpkg::DType::Float32, {4, 2}), vector(numbers, kpkg::DType::Float32, {2});
  print("bmm", products.op("bmm").value().call({}, {a, b}).value()[0]);
  print("matmul", products.op("matmul").value().call({}, {a, vector}).value()[0]);
  print("gemv", products.op("gemv").value().call({}, {matrix, vector}, {{"alpha", 2.0}}).value()[0]);
  print("layer_norm", norms.op("layer_norm").value().call({}, {matrix}, {{"normalized_shape", 2}}).value()[0]);
}
