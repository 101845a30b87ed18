// Declares limits of plans, and names that ops may not have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PLAN_LIMITS_H
#define KPKG_PLAN_LIMITS_H

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kpkg::plan {

/// Limits that the decoder enforces. Writers check them with Program::load.
struct Limits {
  static constexpr size_t bytes = 16u << 20, strings = 4096, stringBytes = 1u << 16, functions = 256, parameters = 256,
                          results = 64, registers = 16384, instructions = 32768, operands = 512, loopDepth = 16,
                          callDepth = 16;
};

/// The runtime clamps a device's compute units to 1 ... maxProcessors, on which the checker relies.
inline constexpr int64_t maxProcessors = 65535;

/// Returns whether a namespace belongs to PyTorch's own ops, so that a further op in it would be taken for PyTorch's.
constexpr bool isReservedNamespace(std::string_view name) {
  return name == "aten" || name == "prim" || name == "prims" || name == "torch" || name == "onnx";
}

} // namespace kpkg::plan
#endif
