// Classifies handwritten digits with the ops of a package: no Python, no PyTorch, no compiler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <kpkg/kpkg.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <vector>

using kpkg::Tensor;

/// The next tensor of the file.
static Tensor read(std::ifstream &file, std::vector<int64_t> shape) {
  Tensor tensor = Tensor::empty(kpkg::DType::Float32, std::move(shape));
  file.read(tensor.as<char>(), tensor.elements() * int64_t(sizeof(float)));
  return tensor;
}

int main(int, char **arguments) {
  auto library = kpkg::Library::open(arguments[1]).value();
  std::ifstream file(arguments[2], std::ios::binary | std::ios::ate);
  int64_t parameters = 64 + 64 + 128 * 64 + 128 + 10 * 128 + 10;
  int64_t count = (int64_t(file.tellg()) / int64_t(sizeof(float)) - parameters) / 64;
  file.seekg(0);
  Tensor gain = read(file, {64}), shift = read(file, {64});
  Tensor weight1 = read(file, {128, 64}), bias1 = read(file, {128}), weight2 = read(file, {10, 128}),
         bias2 = read(file, {10});
  Tensor images = read(file, {count, 64});

  auto run = [&](const char *op, std::vector<Tensor> tensors, std::vector<kpkg::Named> named = {}) {
    return library.op(op).value().call({}, tensors, named).value()[0];
  };
  Tensor x = run("kpkg::layer_norm", {images, gain, shift}, {{"normalized_shape", kpkg::Value({64})}});
  x = run("kpkg::gemm", {x, weight1, bias1}, {{"transpose_b", true}});
  x = run("digits::relu", {x});
  x = run("kpkg::gemm", {x, weight2, bias2}, {{"transpose_b", true}});
  x = run("kpkg::softmax", {x});

  for (int64_t i = 0; i < count; ++i) {
    const float *row = x.as<float>() + 10 * i;
    std::printf("%s%d", i ? " " : "", int(std::max_element(row, row + 10) - row));
  }
}
