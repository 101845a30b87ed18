// Ranks the targets of GPU code for a compute capability.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/CudaTarget.h"

namespace kpkg::cuda {

namespace {
struct Target {
  bool isPtx = false;
  bool isSpecific = false; ///< for its chip alone
  int32_t number = 0;      ///< ten times the major number, plus the minor one
};
} // namespace

static std::optional<Target> parse(std::string_view target) {
  Target parsed;
  parsed.isPtx = target.starts_with("compute_");
  if (!parsed.isPtx && !target.starts_with("sm_"))
    return std::nullopt;
  std::string_view digits = target.substr(target.find('_') + 1);
  parsed.isSpecific = digits.ends_with('a');
  if (parsed.isSpecific)
    digits.remove_suffix(1);
  for (char digit : digits) {
    if (digit < '0' || digit > '9' || parsed.number > 1000)
      return std::nullopt;
    parsed.number = parsed.number * 10 + (digit - '0');
  }
  return parsed;
}

std::optional<size_t> targetRank(std::string_view target, int32_t major, int32_t minor) {
  auto parsed = parse(target);
  if (!parsed)
    return std::nullopt;
  int32_t own = major * 10 + minor, number = parsed->number;
  if (parsed->isSpecific ? number != own : parsed->isPtx ? number > own : number > own || number / 10 != major)
    return std::nullopt;
  constexpr size_t ptxRank = 1000;
  return parsed->isPtx ? ptxRank + size_t(own - number) : parsed->isSpecific ? 0 : 1 + size_t(own - number);
}

bool isGpuTarget(std::string_view target) { return parse(target).has_value(); }

} // namespace kpkg::cuda
