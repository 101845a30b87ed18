// Provides a package of small ops with the C kernels of test/runtime/kernels, as the compiler would write it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_TEST_RUNTIME_PACKAGE_SAMPLEPACKAGE_H
#define KPKG_TEST_RUNTIME_PACKAGE_SAMPLEPACKAGE_H

#include <nlohmann/json.hpp>

#include <string>

namespace kpkg::test {

/// Returns the sample package. Its ops in the namespace `test`:
///   scale(Tensor x, float alpha=2.0) -> Tensor           alpha * x for rank 2 and float32, at most 1024 columns
///   scale_(Tensor(a!) x, float alpha) -> ()               the same in place
///   scale_transposed(Tensor x) -> Tensor                  2 * contiguous(x^T): one copy, one launch
///   number(int n) -> Tensor                               int64: i / 8, by a persistent kernel
///   number_(Tensor(a!) y)                                 the same into y
///   tail(int n) -> Tensor                                 number(n)[1:], a view of what was allocated
///   complain() -> Tensor                                  prints, then fails an assert
/// `number` and `number_` use a persistent kernel.
std::string samplePackage();

/// Names of its sections for GPU instances: machine code and PTX, which are texts that the fake driver loads.
inline constexpr char sampleImage[] = "cubin/sm_90a", samplePtx[] = "ptx/compute_80";

/// Return the manifest of samplePackage(), and the same package with another manifest.
nlohmann::json sampleManifest();
std::string samplePackage(const nlohmann::json &manifest);

/// Return a target that this machine runs, and one that it does not.
std::string runnableTarget();
std::string foreignTarget();

} // namespace kpkg::test
#endif
