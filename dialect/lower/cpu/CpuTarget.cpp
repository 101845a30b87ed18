// Lists the CPU instruction set levels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/CpuTarget.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace kpkg::lower::cpu {

static constexpr const char *linuxX86 = "x86_64-unknown-linux-gnu";
static constexpr const char *linuxArm = "aarch64-unknown-linux-gnu";

llvm::ArrayRef<CpuTarget> CpuTarget::all() {
  // AVX-512 machines since Ice Lake run 512-bit code without a large drop in clock rate; LLVM's default is 256.
  static const CpuTarget targets[] = {
      {"x86-64-v3", linuxX86, "x86-64-v3", "", {32, 16, true}, 0},
      {"x86-64-v4", linuxX86, "x86-64-v4", "", {64, 32, true}, 512},
      {"x86-64-v4-bf16", linuxX86, "x86-64-v4", "+avx512bf16", {64, 32, true, /*multipliesPairs=*/true}, 512},
      {"x86-64-v4-amx",
       linuxX86,
       "x86-64-v4",
       "+avx512bf16,+amx-tile,+amx-bf16",
       {64, 32, true, /*multipliesPairs=*/true, /*multipliesTiles=*/true},
       512},
      {"aarch64", linuxArm, "generic", "+neon", {16, 32, false}, 0},
  };
  return targets;
}

llvm::Expected<CpuTarget> CpuTarget::find(llvm::StringRef isa) {
  for (const CpuTarget &target : all())
    if (target.isa == isa)
      return target;
  std::string known =
      llvm::join(llvm::map_range(all(), [](const CpuTarget &target) { return target.isa.str(); }), ", ");
  return llvm::createStringError("unknown CPU target '" + isa + "'; known are " + known);
}

} // namespace kpkg::lower::cpu
