// What a pass may ask about a chip.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace kpkg::kgpu {
/// One chip. Sizes in bytes; source: tables of compute capabilities in NVIDIA's CUDA programming guide.
struct TargetModel {
  llvm::StringLiteral chip;
  unsigned warpSize;
  unsigned registersPerSm;      ///< of 32 bits
  unsigned maxRegisters;        ///< of a thread
  unsigned registerGranularity; ///< registers of a thread are rounded up to this
  unsigned maxThreads;          ///< of a CTA
  unsigned maxThreadsPerSm;
  unsigned maxCtasPerSm;
  unsigned sharedPerCta; ///< with opt-in
  unsigned sharedPerSm;
  unsigned reservedShared;   ///< of every CTA, by the system
  unsigned maxCluster;       ///< portable size; 1 = no clusters
  unsigned sms;              ///< of the largest part sold; for estimates only
  bool hasAsyncCopy;         ///< cp.async
  bool hasBulkCopy;          ///< cp.async.bulk and mbarrier transaction counts
  bool hasTma;               ///< tensor maps
  bool hasWgmma;             ///< matrix products of warpgroups from shared memory
  bool hasDistributedShared; ///< shared memory of other CTAs of a cluster
  bool hasDependentLaunch;   ///< a kernel may start before the one in front of it has ended
  bool hasMmaSync;           ///< mma.sync with 16 rows (f16, bf16, tf32, i8) and ldmatrix
  bool hasMmaSyncFloat8;     ///< and of e4m3 and e5m2
  unsigned maxVectorBytes;   ///< of one load or store of a thread

  /// CTAs of this many threads, registers of a thread and bytes of shared memory that fit an SM at once.
  unsigned residentCtas(unsigned threads, unsigned registers, int64_t shared) const;
};

/// The chip of this name, or null.
const TargetModel *findTarget(llvm::StringRef chip);
/// All chips, oldest first.
llvm::ArrayRef<TargetModel> allTargets();
} // namespace kpkg::kgpu
