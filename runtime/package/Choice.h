// Which instance of a kernel runs a launch, and why not the others.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_CHOICE_H
#define KPKG_PACKAGE_CHOICE_H

#include "runtime/package/Restriction.h"
#include "runtime/package/Tables.h"
#include "runtime/plan/Evaluate.h"

#include <kpkg/result.hpp>

#include <span>
#include <string>
#include <vector>

namespace kpkg::package {

/// Where the tensors of a call are.
struct ExecutionDevice {
  bool isCuda = false;
  int32_t index = 0;
  /// Of a GPU.
  int32_t major = 0, minor = 0;
  int32_t multiprocessors = 0;
  /// What plans see.
  int64_t processors() const { return isCuda ? multiprocessors : plan::hostProcessors; }
};

struct Verdict {
  const Instance *instance = nullptr;
  /// Why it was not taken; empty for the chosen one.
  std::string reason;
};

/// Chooses among all instances of the launch's kernel: parameters must fit (of `at_least` parameters the smallest value
/// that does), the device must run the target, facts must hold for the views, flags of KPKG_REQUIRE must be there. Then
/// the best target wins, then the variant with most facts. Of a `restriction` (may be null) nothing else is taken. With `verdicts`, says for each instance what became of it.
/// `alignments` has what the address of each buffer is a multiple of, in bytes.
///
/// The error (KPKG_ERROR_NO_INSTANCE) says which requirement nothing meets. KPKG_ERROR_KERNEL: the arguments themselves
/// do not fit the kernel.
Result<const Instance *> chooseInstance(const Tables &tables, const plan::LaunchStep &launch, const std::string &op,
                                        const ExecutionDevice &device, std::span<const int64_t> alignments,
                                        const Restriction *restriction, std::vector<Verdict> *verdicts = nullptr);

/// Whether the device runs the instance's target.
bool runsOn(const Instance &instance, const ExecutionDevice &device);

/// Estimated by the instance's formulas for this launch; 0 when there is none.
struct Cost {
  double flops = 0;
  double bytes = 0;
};
Cost estimateCost(const Instance &instance, const plan::LaunchStep &launch);
/// Tiles of a launch of a persistent kernel's instance that says how many there are.
double countTiles(const Instance &instance, const plan::LaunchStep &launch);

} // namespace kpkg::package
#endif
