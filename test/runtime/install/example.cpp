// The C++ example: opens a package, calls an op on memory of its own, and prints how the call was resolved.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// [example.begin]
#include <kpkg/kpkg.hpp>

#include <cstdio>

int main(int count, char **arguments) {
  auto library = kpkg::Library::open(count > 1 ? arguments[1] : "sample.kpkg");
  if (!library) {
    std::fprintf(stderr, "%s\n", library.error().message.c_str());
    return 1;
  }
  kpkg::Op scale = library->op("test::scale").value();
  float numbers[] = {0, 1, 2, 3, 4, 5};
  kpkg::Tensor x(numbers, kpkg::DType::Float32, {2, 3});
  auto results = scale.call({}, {x}, {{"alpha", 10.0}});
  if (!results) {
    std::fprintf(stderr, "%s\n", results.error().message.c_str());
    return 1;
  }
  std::printf("%g\n%s", results->front().as<float>()[5], scale.explain({x}).value().c_str());
}
// [example.end]
