// Shows a custom fallback: gemm by cuBLAS where no instance of the package can run it, or by a plain loop on the host.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   cublas_fallback gemm.kpkg
//
// cuBLAS is loaded at run time, so that the program builds and runs without it. The program excludes every instance, so
// that the fallback is used.
#include <kpkg/kpkg.hpp>

#include <cstdio>
#include <dlfcn.h>

namespace {

/// The three cuBLAS functions that a matrix product needs.
struct Cublas {
  int (*create)(void **handle) = nullptr;
  int (*setStream)(void *handle, void *stream) = nullptr;
  int (*gemm)(void *handle, int transposeA, int transposeB, int m, int n, int k, const void *alpha, const void *a,
              int typeA, int lda, const void *b, int typeB, int ldb, const void *beta, void *c, int typeC, int ldc,
              int compute, int algorithm) = nullptr;
  void *handle = nullptr;

  Cublas() {
    void *library = nullptr;
    for (const char *name : {"libcublas.so.13", "libcublas.so.12"})
      library = library ? library : ::dlopen(name, RTLD_NOW);
    if (!library)
      return;
    create = reinterpret_cast<decltype(create)>(::dlsym(library, "cublasCreate_v2"));
    setStream = reinterpret_cast<decltype(setStream)>(::dlsym(library, "cublasSetStream_v2"));
    gemm = reinterpret_cast<decltype(gemm)>(::dlsym(library, "cublasGemmEx"));
    if (!create || !setStream || !gemm || create(&handle) != 0)
      handle = nullptr;
  }
};

bool isDense(const kpkg_tensor &t) { return !t.strides || (t.strides[1] == 1 && t.strides[0] == t.shape[1]); }

/// Computes a @ b for dense float32 matrices; refuses all other calls with a message.
kpkg_status multiply(kpkg_call &call) {
  const kpkg_tensor &a = *call.arguments[0].as.tensor, &b = *call.arguments[1].as.tensor;
  bool isPlain = call.arguments[2].as.real == 1.0 && !call.arguments[4].as.integer && !call.arguments[5].as.integer &&
                 call.arguments[6].kind == KPKG_NONE;
  if (!isPlain || a.dtype != KPKG_FLOAT32 || !isDense(a) || !isDense(b))
    return kpkg_set_error(KPKG_ERROR_UNSUPPORTED, "the fallback multiplies dense float32 matrices only");
  int64_t m = a.shape[0], k = a.shape[1], n = b.shape[1], shape[] = {m, n}, strides[] = {n, 1};

  kpkg_allocation wanted = {sizeof wanted, 0, 2, KPKG_FLOAT32, a.device, shape, strides, size_t(m * n) * sizeof(float)};
  void *memory = nullptr;
  if (kpkg_status status = call.allocate(call.allocate_context, &wanted, &memory); status != KPKG_OK)
    return status;
  kpkg_result &result = call.results[0];
  result = {};
  result.kind = KPKG_TENSOR, result.source = KPKG_FROM_ALLOCATION, result.dtype = KPKG_FLOAT32;
  result.device = a.device, result.rank = 2, result.whole = 1, result.data = memory;
  for (int d = 0; d < 2; ++d)
    result.shape[d] = shape[d], result.strides[d] = strides[d];

  if (a.device.type == KPKG_DEVICE_CUDA) {
    static Cublas cublas;
    if (!cublas.handle)
      return kpkg_set_error(KPKG_ERROR_UNSUPPORTED, "cuBLAS cannot be loaded");
    // cuBLAS is column-major: it computes the transposed product of the transposed matrices, from the same memory.
    const float one = 1, zero = 0;
    constexpr int real32 = 0, compute32 = 68, standard = -1;
    cublas.setStream(cublas.handle, call.stream);
    int code = cublas.gemm(cublas.handle, 0, 0, int(n), int(m), int(k), &one, b.data, real32, int(n), a.data, real32,
                           int(k), &zero, memory, real32, int(n), compute32, standard);
    return code == 0
               ? KPKG_OK
               : kpkg_set_error(KPKG_ERROR_DEVICE, ("cublasGemmEx failed with code " + std::to_string(code)).c_str());
  }
  auto *x = static_cast<const float *>(a.data), *y = static_cast<const float *>(b.data);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += x[i * k + l] * y[l * n + j];
      static_cast<float *>(memory)[i * n + j] = sum;
    }
  return KPKG_OK;
}

} // namespace

int main(int count, char **arguments) {
  kpkg::Registry registry;
  registry.add(kpkg::Library::open(count > 1 ? arguments[1] : "gemm.kpkg").value()).value();
  registry.setFallback("kpkg::gemm", [](const kpkg_op *, kpkg_call &call) { return multiply(call); }).value();
  kpkg::Op gemm = registry.op("gemm").value();

  float left[] = {1, 2, 3, 4, 5, 6}, right[] = {1, 0, 0, 1, 1, 1};
  kpkg::Tensor a(left, kpkg::DType::Float32, {2, 3}), b(right, kpkg::DType::Float32, {3, 2});
  int32_t gpus = kpkg::cudaDeviceCount() ? *kpkg::cudaDeviceCount() : 0;
  kpkg::Stream stream = gpus ? kpkg::Stream::create().value() : kpkg::Stream();
  if (gpus)
    a = a.to(kpkg::cudaDevice(), stream).value(), b = b.to(kpkg::cudaDevice(), stream).value();

  for (bool isRestricted : {false, true}) {
    if (isRestricted)
      registry.restrict("kpkg::gemm", R"({"target": "none of them"})").value();
    kpkg::Tensor c = gemm.call(stream, {a, b}).value()[0].to(kpkg::Cpu, stream).value();
    std::printf("%s: %g %g %g %g\n", isRestricted ? "fallback" : "package", c.as<float>()[0], c.as<float>()[1],
                c.as<float>()[2], c.as<float>()[3]);
  }
  std::printf("fallbacks: %d\n", int(gemm.stats().fallbacks));
}
