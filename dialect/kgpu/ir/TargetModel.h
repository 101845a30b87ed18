// Describes the properties of a chip that passes rely on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace kpkg::kgpu {
/// One chip. Sizes are in bytes. Source: tables of compute capabilities in NVIDIA's CUDA programming guide.
struct TargetModel {
  llvm::StringLiteral chip;
  unsigned warpSize;
  unsigned registersPerSm;      ///< of 32 bits
  unsigned maxRegisters;        ///< per thread
  unsigned registerGranularity; ///< registers of a thread are rounded up to a multiple
  unsigned maxThreads;          ///< per CTA
  unsigned maxThreadsPerSm;
  unsigned maxCtasPerSm;
  unsigned sharedPerCta; ///< with opt-in
  unsigned sharedPerSm;
  unsigned reservedShared;   ///< per CTA, by the system
  unsigned maxCluster;       ///< portable size; 1 = no clusters
  unsigned sms;              ///< of the largest product; for estimates only
  bool hasAsyncCopy;         ///< cp.async
  bool hasBulkCopy;          ///< cp.async.bulk and mbarrier transaction counts
  bool hasTma;               ///< tensor maps
  bool hasWgmma;             ///< matrix products of warpgroups from shared memory
  bool hasDistributedShared; ///< access to the shared memory of other CTAs of a cluster
  bool hasDependentLaunch;   ///< a kernel may start before the preceding one has ended
  bool hasMmaSync;           ///< mma.sync with 16 rows (f16, bf16, tf32, i8) and ldmatrix
  bool hasMmaSyncFloat8;     ///< the same for e4m3 and e5m2
  unsigned maxVectorBytes;   ///< of one load or store of a thread

  /// Returns how many CTAs fit an SM at once, given their threads, registers per thread and bytes of shared memory.
  unsigned residentCtas(unsigned threads, unsigned registers, int64_t shared) const;
};

/// Returns the chip of this name, or null.
const TargetModel *findTarget(llvm::StringRef chip);
/// Returns all chips, oldest first.
llvm::ArrayRef<TargetModel> allTargets();
} // namespace kpkg::kgpu
