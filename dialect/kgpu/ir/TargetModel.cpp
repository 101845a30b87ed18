// Defines the properties of the supported chips.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/TargetModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace kpkg::kgpu {
namespace {
constexpr unsigned KiB = 1024;

// clang-format off
constexpr TargetModel targets[] = {
  // chip      warp  regs/SM   regs gran thr  thr/SM CTAs  smem/CTA   smem/SM    reserved cluster SMs  async  bulk   tma    wgmma  dsmem  dep    mma   mma8   vector
  {"sm_80",    32,   64 * KiB, 255, 8, 1024,  2048,  32,   163 * KiB, 164 * KiB, KiB,     1,      108, true,  false, false, false, false, false, true,  false, 16},
  {"sm_86",    32,   64 * KiB, 255, 8, 1024,  1536,  16,    99 * KiB, 100 * KiB, KiB,     1,       84, true,  false, false, false, false, false, true,  false, 16},
  {"sm_89",    32,   64 * KiB, 255, 8, 1024,  1536,  24,    99 * KiB, 100 * KiB, KiB,     1,      142, true,  false, false, false, false, false, true,  true,  16},
  {"sm_90a",   32,   64 * KiB, 255, 8, 1024,  2048,  32,   227 * KiB, 228 * KiB, KiB,     8,      132, true,  true,  true,  true,  true,  true,  true,  true,  16},
  {"sm_100a",  32,   64 * KiB, 255, 8, 1024,  2048,  32,   227 * KiB, 228 * KiB, KiB,     8,      148, true,  true,  true,  false, true,  true,  true,  true,  32},
  {"sm_120",   32,   64 * KiB, 255, 8, 1024,  1536,  24,    99 * KiB, 100 * KiB, KiB,     8,      188, true,  true,  true,  false, true,  true,  true,  true,  16},
};
// clang-format on
} // namespace

unsigned TargetModel::residentCtas(unsigned threads, unsigned registers, int64_t shared) const {
  unsigned warps = llvm::divideCeil(threads, warpSize);
  // Hardware allocates registers for whole warps.
  unsigned ofWarp = llvm::alignTo(registers, registerGranularity) * warpSize;
  unsigned byRegisters = registersPerSm / std::max(ofWarp * warps, 1u);
  unsigned byThreads = maxThreadsPerSm / (warps * warpSize);
  unsigned byShared = sharedPerSm / (shared + reservedShared);
  return std::min({byRegisters, byThreads, byShared, maxCtasPerSm});
}

const TargetModel *findTarget(llvm::StringRef chip) {
  const TargetModel *found = llvm::find_if(targets, [&](const TargetModel &target) { return target.chip == chip; });
  return found == std::end(targets) ? nullptr : found;
}

llvm::ArrayRef<TargetModel> allTargets() { return targets; }
} // namespace kpkg::kgpu
