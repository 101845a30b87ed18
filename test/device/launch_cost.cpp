// Measures the host time of Op::callInto on a GPU beyond that of cuLaunchKernelEx for a kernel with as many parameters.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   launch_cost PACKAGE [OP]      OP takes one tensor, or two of the same shape: softmax (default), add
//
// Build: clang++ -std=c++20 -O2 launch_cost.cpp -Iruntime/include -Lbuild/lib -lkpkg -ldl -o launch_cost. Prints JSON.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <kpkg/kpkg.hpp>
#include <string>
#include <vector>

namespace {

constexpr int rounds = 101, callsPerRound = 200;
constexpr double limitUs = 1.0;

/// An empty kernel with as many parameters as a row kernel of two matrices.
constexpr const char *nothing = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u64 e, .param .u64 f, .param .u64 g,
                        .param .u64 h, .param .u64 i, .param .u64 j, .param .u32 x, .param .u32 y, .param .u32 z) { ret; }
)";

struct LaunchConfig {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  void *stream;
  void *attributes;
  unsigned attributeCount;
};

template <typename Function> Function find(void *library, const char *name) {
  auto found = reinterpret_cast<Function>(::dlsym(library, name));
  if (!found) {
    std::fprintf(stderr, "the driver has no %s\n", name);
    std::exit(3);
  }
  return found;
}

void check(int code, const char *what) {
  if (code) {
    std::fprintf(stderr, "%s failed with code %d\n", what, code);
    std::exit(3);
  }
}

template <typename Call> double microseconds(Call call) {
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < callsPerRound; ++i)
    call();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / callsPerRound;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: launch_cost PACKAGE [OP]\n");
    return 2;
  }
  auto library = kpkg::Library::open(argv[1]).value();
  auto op = library.op(argc > 2 ? argv[2] : "softmax").value();
  auto stream = kpkg::Stream::create().value();
  std::vector<kpkg::Tensor> inputs;
  for (int32_t i = 0; i < op.info().argument_count; ++i) {
    kpkg_argument_info info = {};
    info.struct_size = sizeof info;
    if (kpkg_op_argument(op.get(), i, &info) == KPKG_OK && info.kind == KPKG_TENSOR && !info.optional)
      inputs.push_back(kpkg::Tensor::empty(kpkg::DType::Float32, {32, 64}, kpkg::cudaDevice(), stream).value());
  }
  std::vector<kpkg::Tensor> outputs = {
      kpkg::Tensor::empty(kpkg::DType::Float32, {32, 64}, kpkg::cudaDevice(), stream).value()};
  auto first = std::chrono::steady_clock::now();
  op.callInto(stream, inputs, outputs).value();
  double firstMs = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - first).count();
  stream.synchronize().value();

  // The driver's own launches use the device's primary context, as the runtime does.
  void *driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  void *context = nullptr, *module = nullptr, *function = nullptr;
  check(find<int (*)(void **, int)>(driver, "cuDevicePrimaryCtxRetain")(&context, 0), "cuDevicePrimaryCtxRetain");
  check(find<int (*)(void *)>(driver, "cuCtxSetCurrent")(context), "cuCtxSetCurrent");
  check(find<int (*)(void **, const void *)>(driver, "cuModuleLoadData")(&module, nothing), "cuModuleLoadData");
  check(find<int (*)(void **, void *, const char *)>(driver, "cuModuleGetFunction")(&function, module, "nothing"),
        "cuModuleGetFunction");
  auto launch = find<int (*)(const LaunchConfig *, void *, void **, void **)>(driver, "cuLaunchKernelEx");
  unsigned long long words[13] = {};
  void *parameters[13];
  for (int i = 0; i < 13; ++i)
    parameters[i] = words + i;
  LaunchConfig config = {32, 1, 1, 128, 1, 1, 0, stream.handle, nullptr, 0};

  // Calls the C ABI as a framework does: values are made once, outputs are given.
  std::vector<kpkg_tensor> descriptors;
  for (const kpkg::Tensor &tensor : inputs)
    descriptors.push_back(tensor.descriptor());
  kpkg_tensor outputDescriptor = outputs[0].descriptor();
  std::vector<kpkg_value> values(descriptors.size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i].kind = KPKG_TENSOR;
    values[i].as.tensor = &descriptors[i];
  }
  const kpkg_tensor *outputPointer = &outputDescriptor;
  kpkg_result result = {};
  kpkg_call call = {};
  call.struct_size = sizeof call;
  call.arguments = values.data();
  call.argument_count = int32_t(values.size());
  call.results = &result;
  call.result_capacity = 1;
  call.outputs = &outputPointer;
  call.stream = stream.handle;

  std::vector<double> cpp, c, raw;
  for (int round = 0; round < rounds; ++round) {
    cpp.push_back(microseconds([&] { op.callInto(stream, inputs, outputs).value(); }));
    stream.synchronize().value();
    c.push_back(microseconds([&] { kpkg::Status::from(kpkg_op_call(op.get(), &call)).value(); }));
    stream.synchronize().value();
    raw.push_back(microseconds([&] { check(launch(&config, function, parameters, nullptr), "cuLaunchKernelEx"); }));
    stream.synchronize().value();
  }
  double above = median(c) - median(raw);
  std::printf("{\"op\": \"%s\", \"cuLaunchKernelEx_us\": %.3f, \"kpkg_op_call_us\": %.3f, \"callInto_us\": %.3f, "
              "\"c_above_us\": %.3f, "
              "\"cpp_above_us\": %.3f, \"first_call_ms\": %.3f, \"holds\": %s}\n",
              op.name().c_str(), median(raw), median(c), median(cpp), above, median(cpp) - median(raw), firstMs,
              above <= limitUs ? "true" : "false");
  return above <= limitUs ? 0 : 1;
}
