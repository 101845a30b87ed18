// Runs a small network without Python, on the GPU if there is one, else on the CPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   inference PACKAGES      a folder with gemm.kpkg, elementwise.kpkg, norm.kpkg and softmax.kpkg
//
// Nothing is compiled, and nothing is loaded after the first run.
#include <kpkg/kpkg.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace {

constexpr int64_t batch = 4, inputs = 64, hidden = 128, classes = 10;

/// Returns fixed numbers in place of weights from a file.
std::vector<float> numbers(int64_t count, float scale) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[size_t(i)] = scale * float(std::sin(0.7 * double(i) + 0.3));
  return values;
}

class Network {
public:
  Network(const kpkg::Registry &registry, kpkg_device device, kpkg::Stream stream)
      : device(device), stream(std::move(stream)), gemm(registry.op("gemm").value()), gelu(registry.op("gelu").value()),
        norm(registry.op("layer_norm").value()), softmax(registry.op("softmax").value()),
        up(place(numbers(hidden * inputs, 0.1f), {hidden, inputs})),
        down(place(numbers(classes * hidden, 0.1f), {classes, hidden})), bias(place(numbers(hidden, 0.5f), {hidden})) {}

  kpkg::Tensor place(std::vector<float> values, std::vector<int64_t> shape) const {
    kpkg::Tensor borrowed(values.data(), kpkg::DType::Float32, std::move(shape));
    return device.type == KPKG_DEVICE_CPU ? borrowed.to(kpkg::Cpu, {}).value() : borrowed.to(device, stream).value();
  }

  /// Maps [batch, inputs] to [batch, classes]; queues its work on the stream and returns.
  kpkg::Tensor operator()(const kpkg::Tensor &x) const {
    auto h = gemm.call(stream, {x, up}, {{"transpose_b", true}, {"c", bias}}).value()[0];
    h = gelu.call(stream, {h}).value()[0];
    h = norm.call(stream, {h}, {{"normalized_shape", std::vector<int64_t>{hidden}}}).value()[0];
    return softmax.call(stream, {gemm.call(stream, {h, down}, {{"transpose_b", true}}).value()[0]}).value()[0];
  }

private:
  kpkg_device device;
  kpkg::Stream stream;
  kpkg::Op gemm, gelu, norm, softmax;
  kpkg::Tensor up, down, bias;
};

} // namespace

int main(int count, char **arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: inference PACKAGES\n");
    return 2;
  }
  kpkg::Registry registry;
  if (kpkg::Status status = registry.addPath(arguments[1]); !status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    return 1;
  }
  auto gpus = kpkg::cudaDeviceCount();
  kpkg_device device = gpus && *gpus > 0 ? kpkg::cudaDevice() : kpkg::Cpu;
  kpkg::Stream stream = device.type == KPKG_DEVICE_CUDA ? kpkg::Stream::create().value() : kpkg::Stream();
  Network network(registry, device, stream);
  for (int run = 0; run < 2; ++run) {
    kpkg::Tensor x = network.place(numbers(batch * inputs, 1.0f + float(run)), {batch, inputs});
    kpkg::Tensor y = network(x).to(kpkg::Cpu, stream).value(); // waits for the stream
    for (int64_t row = 0; row < batch; ++row) {
      int64_t best = 0;
      double sum = 0;
      for (int64_t i = 0; i < classes; ++i) {
        sum += y.as<float>()[row * classes + i];
        best = y.as<float>()[row * classes + i] > y.as<float>()[row * classes + best] ? i : best;
      }
      std::printf("run %d row %d: class %d with %.4f, all together %.4f\n", run, int(row), int(best),
                  y.as<float>()[row * classes + best], sum);
    }
  }
}
