// Lists the launch configurations that suit a kernel on a chip, the best guess first.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel that only moves memory reaches the bandwidth of a copy under two conditions. Enough bytes must be in flight
// at any time, and several CTAs per SM must overlap loads, computation and stores. Measured on an H200, that takes:
//  * Two to five vectors of 16 bytes per thread, up to eight if a row needs them. With fewer, starting threads and
//    exchanging partial sums take longer than the data.
//  * At least two CTAs on an SM, and `bytesInFlight` of loads in flight on an SM.
//  * Rows up to 1 KB on lanes of a warp, several rows in a CTA. Up to 2 KB if only a result per row is written.
//  * A row that leaves no room for a second CTA is distributed over a cluster, so that an SM holds parts of several
//    rows: four CTAs of 256 threads. Some exchange partial sums while others load and store.
//  * Clusters of a persistent kernel loop over rows, with the next row in flight to shared memory. This holds where a
//    CTA of the largest cluster takes 512 threads and less than `partThatHides` of its row, or all registers. It also
//    holds if a CTA reads more bytes of weights than of its row.
//  * Persistent CTAs of 512 threads if a row has more weights than elements: the weights stay in registers.
//  * Kernels without a reduction: many threads with one or two vectors each.
#include "dialect/kgpu/launch/Candidates.h"
#include "dialect/kgpu/analysis/Work.h"
#include "dialect/kgpu/ir/Walks.h"
#include "dialect/kgpu/launch/Hints.h"
#include "dialect/kgpu/launch/HoistLoads.h"
#include "dialect/kgpu/launch/PrefetchLoads.h"
#include "dialect/kgpu/launch/RoleLaunch.h"
#include "dialect/tile/ir/ThreadOps.h"

namespace kpkg::kgpu {
namespace {
constexpr int64_t kVectorBytes = 16;
/// Registers of a thread for addresses, predicates and partial sums, besides elements of tiles.
constexpr int64_t kFixedRegisters = 26;
/// Threads of a CTA that holds packed kernel blocks.
constexpr unsigned kSmallCta = 128;
/// Registers per thread of the warpgroup with the producer warp. Two consumer warpgroups beside it keep 232 of their
/// 240.
constexpr unsigned kMoreLoadRegisters = 40;
/// Minimum number of threads for a row that needs more than a warp.
constexpr unsigned kFewestThreads = 64;
/// The most elements of a computed tile per thread, if more threads are possible: the code grows with them.
constexpr int64_t kMostComputed = 256;

struct Estimate {
  const Work &work;
  const TargetModel &target;

  int64_t vectors(unsigned threads) const { return llvm::divideCeil(work.widestBytes, kVectorBytes * threads); }
  unsigned registers(unsigned threads) const {
    return kFixedRegisters + llvm::divideCeil(work.liveRegisters, int64_t(threads));
  }
  bool hides(unsigned threads) const {
    // With `minCtas`, ptxas uses fewer registers than counted here.
    unsigned ctas = target.residentCtas(threads, registers(threads) * 3 / 4, 0);
    return ctas >= 2 && ctas * work.inputBytes >= std::min(target.heuristics.bytesInFlight, 4 * work.inputBytes);
  }
};

/// Returns the threads for a kernel block that needs more than a warp.
unsigned threadsFor(const Estimate &estimate) {
  const unsigned limit = estimate.target.maxThreads;
  const chips::Heuristics &heuristics = estimate.target.heuristics;
  const int64_t most = estimate.work.reduces ? heuristics.mostVectorsOfReduction : heuristics.mostVectors;
  for (unsigned threads = kFewestThreads; threads < limit; threads *= 2)
    if (estimate.vectors(threads) <= most && estimate.hides(threads))
      return threads;
  // Prefers more vectors per thread to a CTA that fills half of the SM, also if nothing hides the latency.
  for (unsigned threads = kFewestThreads; threads < limit; threads *= 2)
    if (estimate.vectors(threads) <= heuristics.mostVectorsOfRow && estimate.hides(threads))
      return threads;
  unsigned threads = kFewestThreads;
  while (threads < limit && estimate.vectors(threads) > heuristics.mostVectorsOfRow)
    threads *= 2;
  return threads;
}

/// Returns how many CTAs of this size an SM should hold, so that enough bytes are in flight. Returns 0 if there is no
/// such requirement.
unsigned wantedCtas(const Estimate &estimate, unsigned threads) {
  const Work &work = estimate.work;
  int64_t wanted = std::max<int64_t>(
      2, llvm::divideCeil(estimate.target.heuristics.wantedBytesInFlight, std::max<int64_t>(work.inputBytes, 1)));
  wanted = std::min<int64_t>({wanted, estimate.target.maxCtasPerSm, estimate.target.maxThreadsPerSm * 3 / 4 / threads});
  // Three quarters of the threads of an SM are enough. A requirement that leaves too few registers only causes spills.
  while (wanted > 2 && estimate.target.residentCtas(threads, estimate.registers(threads) * 5 / 8, 0) < wanted)
    --wanted;
  // Two CTAs instead of one are worth an attempt that may spill.
  return wanted > 1 && estimate.target.residentCtas(threads, estimate.registers(threads) / 2, 0) > 1 ? wanted : 0;
}

llvm::SmallVector<Launch> forDot(const Work &work, const TargetModel &target) {
  // Accumulators of 32 registers per thread leave room for operands and two CTAs on an SM.
  int64_t words = work.dotElements * work.dotElementBytes / 4;
  int64_t threads = llvm::bit_ceil(static_cast<uint64_t>(llvm::divideCeil(words, 32)));
  llvm::SmallVector<Launch> result;
  for (int64_t count = std::clamp<int64_t>(threads, 64, target.maxThreads); count <= target.maxThreads; count *= 2)
    result.push_back({.threads = static_cast<unsigned>(count)});
  return result;
}
/// Stages of the rings for operands of products.
constexpr unsigned kMostStages = 4, kFewestStages = 2;

/// Lists launches for products of mma.sync. An accumulator of 128 registers per thread lets a warp read little of the
/// operands for its computation; fewer registers follow in case that spills. A second CTA on an SM hides the code
/// between loops.
llvm::SmallVector<Launch> forMma(const Work &work, const TargetModel &target) {
  llvm::SmallVector<Launch> result;
  int64_t fewest =
      std::clamp<int64_t>(llvm::bit_ceil(static_cast<uint64_t>(work.mmaElements / 128)), 128, target.maxThreads);
  auto stagesFor = [&](int64_t bytes) {
    return static_cast<unsigned>(std::min<int64_t>(kMostStages, bytes / std::max<int64_t>(work.mmaStageBytes, 1)));
  };
  for (unsigned threads = fewest; threads <= target.maxThreads && int64_t(threads) <= 4 * fewest; threads *= 2) {
    unsigned perThread = work.mmaElements / threads + 112;
    unsigned half = stagesFor(target.sharedPerSm / 2 - target.reservedShared);
    if (half > kFewestStages && target.residentCtas(threads, std::min(perThread, target.maxRegisters), 0) >= 2)
      result.push_back({.threads = threads, .minCtas = 2, .stages = half});
    unsigned whole = stagesFor(target.sharedPerCta);
    // Four warps alone on an SM do not hide each other's latency, and operands mostly spill beside so many
    // accumulators. Kernels with reductions are excepted, since their rows stay within one warp.
    bool isAlone = whole * work.mmaStageBytes > int64_t(target.sharedPerSm / 2 - target.reservedShared);
    if (isAlone && !work.reduces && threads == fewest && work.mmaElements >= 128 * int64_t(threads) &&
        2 * threads <= target.maxThreads)
      continue;
    result.push_back({.threads = threads, .stages = whole < kFewestStages ? 0 : whole});
  }
  return result;
}

/// Returns the smallest cluster of which an SM holds `ctas` CTAs of `threads` threads. Returns nothing if even the
/// largest cluster has too few registers, or if vectors do not divide a part of the row among the threads.
std::optional<unsigned> clusterFor(const Work &work, const TargetModel &target, unsigned threads, unsigned ctas) {
  for (unsigned cluster = 2; cluster <= target.maxCluster; cluster *= 2) {
    unsigned registers = kFixedRegisters + llvm::divideCeil(work.liveRegisters, int64_t(threads) * cluster);
    int64_t atOnce = kVectorBytes * threads * cluster;
    if (target.residentCtas(threads, registers * 3 / 4, 0) >= ctas &&
        int64_t(llvm::alignTo(work.widestBytes, atOnce)) * 4 <= 5 * work.widestBytes)
      return cluster;
  }
  return std::nullopt;
}

/// Lists launches for a row that needs the registers of several CTAs.
llvm::SmallVector<Launch> forCluster(const Work &work, const TargetModel &target) {
  llvm::SmallVector<Launch> result;
  unsigned threads = 256, ctas = 4;
  std::optional<unsigned> cluster = clusterFor(work, target, threads, ctas);
  bool stays = work.repeatedBytes > work.rowBytes;
  if (!cluster) {
    threads = 512, ctas = 2;
    cluster = clusterFor(work, target, threads, ctas);
    stays = stays || !cluster || work.rowBytes < target.heuristics.partThatHides * *cluster;
  }
  if (!cluster)
    ctas = 1, cluster = target.maxCluster;
  auto addStaying = [&](unsigned part, unsigned wanted) {
    int64_t slot = work.rowBytes / part;
    if (work.isFetchable && slot * wanted < int64_t(target.sharedPerSm) && slot < int64_t(target.sharedPerCta))
      result.push_back(
          {.threads = threads, .cluster = part, .minCtas = wanted > 1 ? wanted : 0, .persistent = true, .stages = 1});
  };
  for (unsigned wanted = ctas; stays && wanted > 1; --wanted)
    addStaying(*cluster, wanted);
  for (unsigned wanted = ctas; !stays && wanted > 1; --wanted)
    result.push_back({.threads = threads, .cluster = *cluster, .minCtas = wanted});
  // A CTA alone on its SM hides nothing. So its next row is in flight meanwhile, and it gets more work between two
  // exchanges.
  unsigned part = *cluster;
  while (part > 2 && work.rowBytes / part < target.heuristics.partThatHides)
    part /= 2;
  if (stays || threads > 256) {
    addStaying(part, 1);
    addStaying(*cluster, 1);
  }
  for (; threads <= target.maxThreads; threads *= 2) {
    if (stays && threads * ctas <= target.maxThreads)
      result.push_back({.threads = threads, .cluster = *cluster, .minCtas = ctas});
    result.push_back({.threads = threads, .cluster = *cluster});
  }
  return result;
}

/// Returns a persistent launch that keeps the weights of all rows in registers. If weights are larger than a row,
/// reading them for each row takes as long as the row. A CTA holds up to 32 KB of its row, and the next row is in
/// flight. Rows of 32-bit elements take half the instructions per byte, so only long rows need this launch. They
/// profit from a second row in flight, others lose by it.
std::optional<Launch> forWeights(const Work &work, const TargetModel &target) {
  const int64_t elementBytes = work.widestBytes / std::max<int64_t>(work.widestElements, 1);
  const int64_t shortest =
      elementBytes < 4 ? target.heuristics.shortestRowWithWeights : target.heuristics.longestRowOfCta;
  bool mayStay = work.reduces && !work.loops && !work.prints && !work.movesParts && work.isFetchable &&
                 target.hasDistributedShared;
  if (!mayStay || elementBytes > 4 || work.repeatedBytes <= work.rowBytes || work.rowBytes < shortest)
    return std::nullopt;
  Launch launch{.threads = 512, .persistent = true, .stages = elementBytes < 4 ? 1u : 2u};
  while (launch.cluster < target.maxCluster && work.rowBytes > target.heuristics.partWithWeights * launch.cluster)
    launch.cluster *= 2;
  if (2 * work.rowBytes <= target.heuristics.partWithWeights * launch.cluster)
    launch.minCtas = 2;
  return launch;
}

/// Returns whether a CTA with a whole row leaves no room for a second one on its SM.
bool fillsSm(const Work &work, const TargetModel &target) {
  constexpr int64_t fewestThreads = 256;
  return work.rowBytes >= target.heuristics.shortestRowOfCluster &&
         2 * (work.liveRegisters + kFixedRegisters * fewestThreads) > target.registersPerSm;
}

llvm::SmallVector<Launch> forWork(const Work &work, const TargetModel &target) {
  if (work.mmaElements != 0)
    return forMma(work, target);
  if (work.dotElements != 0)
    return forDot(work, target);
  bool mayUseClusters = work.reduces && !work.loops && !work.prints && !work.movesParts && target.hasDistributedShared;
  if (work.widestBytes > target.heuristics.longestRowOfCta && mayUseClusters)
    return forCluster(work, target);
  Estimate estimate{work, target};
  llvm::SmallVector<Launch> result;
  auto add = [&](Launch launch) {
    if (!llvm::is_contained(result, launch))
      result.push_back(launch);
  };

  // Short rows: one or two vectors for each lane of a part of a warp. Four if only a result per row is written, which
  // all of its lanes compute. Eight lanes read a whole cache line.
  const int64_t vectors = work.writesRows ? 2 : 4;
  if (work.widestBytes <= vectors * kVectorBytes * target.warpSize && work.packable &&
      work.computedElements <= kMostComputed * target.warpSize) {
    int64_t lanes = llvm::bit_ceil(static_cast<uint64_t>(llvm::divideCeil(work.widestBytes, kVectorBytes)));
    if (!work.writesRows)
      lanes = std::max(std::min<int64_t>(lanes, target.cacheLineBytes / kVectorBytes), lanes / vectors);
    unsigned block = std::clamp<int64_t>(lanes, 1, target.warpSize);
    add({.threads = kSmallCta, .blocks = kSmallCta / block});
    add({.threads = kSmallCta});
    return result;
  }
  const int64_t forComputed = llvm::PowerOf2Ceil(llvm::divideCeil(work.computedElements, kMostComputed));
  const unsigned fewest = std::clamp<int64_t>(
      forComputed, work.widestBytes <= 2 * kVectorBytes * target.warpSize ? target.warpSize : threadsFor(estimate),
      target.maxThreads);
  // If a second CTA does not fit without spills, one of more threads with fewer registers each may.
  for (unsigned threads = fewest; threads <= target.maxThreads; threads *= 2)
    for (unsigned ctas = wantedCtas(estimate, threads); ctas > 1; ctas = ctas > 4 ? ctas * 2 / 3 : ctas - 1)
      add({.threads = threads, .minCtas = ctas});
  for (unsigned threads = fewest; threads <= target.maxThreads; threads *= 2)
    add({.threads = threads});
  if (mayUseClusters && fillsSm(work, target)) {
    llvm::SmallVector<Launch> spread = forCluster(work, target);
    result.insert(result.begin(), spread.begin(), spread.end());
  }
  return result;
}

/// A kernel whose loads are issued as early as possible.
struct Early {
  Work work;
  bool hoists, prefetches;

  void mark(Launch &launch) const {
    launch.earlyLoads = hoists;
    launch.prefetch = launch.prefetch || prefetches;
  }
};

std::optional<Early> withEarlyLoads(tile::KernelOp kernel, const TargetModel &target) {
  mlir::OwningOpRef<tile::KernelOp> copy = kernel.clone();
  bool hoists = hoistLoads(*copy), prefetches = prefetchLoads(*copy);
  if (!hoists && !prefetches)
    return std::nullopt;
  return Early{measure(*copy, target), hoists, prefetches};
}

/// Returns whether the registers for early loads leave enough threads on an SM. In a loop nothing else hides the
/// latency.
bool isWorthwhile(const Launch &early, const Launch &late, bool prefetches) {
  unsigned demanded = late.threads * std::max(late.minCtas, 1u), left = early.threads * std::max(early.minCtas, 1u);
  return prefetches ? 3 * left >= demanded : 4 * left >= 3 * demanded;
}

/// Returns whether the kernel's elements have any strides, so that they are loaded one by one and most of each sector
/// is wasted. Neither early loads nor more CTAs compensate for that. The many addresses take registers and make the
/// code long. So such a kernel is compiled once, without requirements. Products are excepted, since they reuse their
/// operands.
bool isForAnyStrides(tile::KernelOp kernel, const Work &work) {
  return kernel.getVariant() == "any" && work.dotElements == 0;
}

/// Returns the stages for a loop over rows whose author chose the CTAs per SM. They keep loads in flight while an
/// iteration waits and computes. Returns 0 if they do not fit, or if no load can be fetched.
unsigned stagesOfLoop(const Work &work, const TargetModel &target, const Launch &launch) {
  constexpr unsigned kMost = 3;
  int64_t slot = work.rowBytes / launch.cluster * std::max(launch.minCtas, 1u);
  if (!work.loops || !work.reduces || !work.isFetchable || slot == 0 || work.dotElements != 0 ||
      work.mmaElements != 0 || !target.hasAsyncCopy)
    return 0;
  int64_t wanted = std::min<int64_t>(llvm::divideCeil(target.heuristics.bytesAhead, slot), kMost);
  return std::min<int64_t>(wanted, target.sharedPerSm * 7 / 8 / slot);
}

/// Returns the launch that the kernel's author asks for, completed from `best`.
std::optional<Launch> hinted(tile::KernelOp kernel, const TargetModel &target, const Work &work, Launch best) {
  bool multiplies = work.dotElements != 0 || work.mmaElements != 0;
  bool hasScratch = containsOp<tile::ScratchOp>(kernel);
  auto hint = [&](Hint asked) { // for products, clusters belong to launches with roles
    return (multiplies || hasScratch) && asked == Hint::Cluster ? 0 : kernel.getHint(asked);
  };
  if (!hint(Hint::Warps) && !hint(Hint::Occupancy) && !hint(Hint::Cluster))
    return std::nullopt; // `stages` alone selects no launch
  if (!hint(Hint::Warps) && launchWithRoles(kernel, target))
    return std::nullopt; // `occupancy` belongs to launches with roles
  if (unsigned warps = hint(Hint::Warps)) {
    best.threads = warps * target.warpSize;
    best.blocks = 1;
    best.minCtas = 0;
  }
  if (unsigned occupancy = hint(Hint::Occupancy))
    best.minCtas = occupancy;
  if (unsigned cluster = hint(Hint::Cluster); cluster != 0 && best.blocks == 1)
    best.cluster = std::min(cluster, target.maxCluster);
  if (unsigned stages = hint(Hint::Stages);
      stages != 0 && best.blocks == 1 && work.dotElements == 0 && work.mmaElements == 0) {
    best.persistent = !work.loops;
    best.stages = stages;
  } else if (best.blocks == 1) {
    best.stages = stagesOfLoop(work, target, best);
  }
  if (hint(Hint::Warps) && excessiveRegisters(kernel, target, best))
    return std::nullopt;
  return best;
}
} // namespace

static bool overlapsOther(const Launch &launch, tile::KernelOp kernel, const Work &work, const TargetModel &target) {
  bool repeats = work.loops || launch.persistent || kernel.isPersistent();
  return target.hasDependentLaunch &&
         (repeats || work.inputBytes * launch.blocks >= target.heuristics.overlapBytes * launch.cluster);
}

llvm::SmallVector<Launch> candidates(tile::KernelOp kernel, const TargetModel &target) {
  if (tile::isOfThreads(kernel)) // the author has chosen it
    return {{.threads = unsigned(tile::threadCount(kernel)), .cluster = unsigned(tile::clusterSize(kernel))}};
  Work work = measure(kernel, target);
  llvm::SmallVector<Launch> late = forWork(work, target), result;
  bool anyStrides = isForAnyStrides(kernel, work);
  std::optional<Early> early = anyStrides ? std::nullopt : withEarlyLoads(kernel, target);
  if (anyStrides)
    llvm::erase_if(late, [](const Launch &launch) { return launch.minCtas != 0; });
  if (std::optional<Launch> launch = launchWithRoles(kernel, target)) {
    auto addPeeledFirst = [&](const Launch &one) {
      if (kernel.getHint(Hint::Peel))
        result.emplace_back(one).peels = true;
      result.push_back(one);
    };
    addPeeledFirst(*launch);
    if (launch->producers != 0) {
      Launch &two = result.emplace_back(*launch);
      two.producers = 0;
      two.threads -= kWarpgroupThreads;
    }
    if (launch->minCtas > 1) {
      Launch alone = *launch;
      alone.minCtas = 0;
      addPeeledFirst(alone);
    }
    if (launch->producers == 0) { // if registers of the producer warp spill, a few of the consumers' help
      Launch more = result.back();
      more.loadRegisters = kMoreLoadRegisters;
      result.push_back(more);
    }
  }
  if (std::optional<Launch> launch = early ? forWeights(work, target) : std::nullopt)
    early->mark(result.emplace_back(*launch));
  if (early)
    for (Launch launch : forWork(early->work, target)) {
      // Persistent kernels find weights in the L1 cache. If not all weights fit into registers, registers are better
      // used for the row.
      if (launch.stages != 0)
        break;
      if (!isWorthwhile(launch, late.front(), early->prefetches))
        break;
      early->mark(result.emplace_back(launch));
    }
  result.append(late);
  if (std::optional<Launch> launch = hinted(kernel, target, work, late.front())) {
    llvm::SmallVector<Launch> asked = {*launch};
    if (launch->stages != 0 && launch->stages == stagesOfLoop(work, target, *launch)) {
      asked.push_back(*launch);
      asked.back().stages = 0;
    }
    for (const Launch &one : llvm::reverse(asked)) {
      result.insert(result.begin(), one);
      if (early)
        early->mark(*result.insert(result.begin(), one));
    }
  }
  for (Launch &launch : result)
    launch.overlaps = overlapsOther(launch, kernel, work, target);
  return result;
}

std::optional<Launch> shortestLaunch(tile::KernelOp kernel, const TargetModel &target) {
  Work work = measure(kernel, target);
  const Launch first = candidates(kernel, target).front();
  bool multiplies = work.dotElements != 0 || work.mmaElements != 0;
  if (tile::isOfThreads(kernel) || multiplies || first.consumers != 0)
    return std::nullopt;
  int64_t elements = std::max<int64_t>(std::max(work.widestElements, work.computedElements) / first.cluster, 1);
  auto threads = unsigned(std::clamp<int64_t>(llvm::PowerOf2Ceil(elements), target.warpSize, target.maxThreads));
  if (threads <= first.threads / first.blocks)
    return std::nullopt;
  Launch launch = first;
  launch.threads = threads;
  launch.blocks = 1;
  launch.minCtas = 0;
  return launch;
}

bool multipliesBytesByWarps(tile::KernelOp kernel, const TargetModel &target) {
  mlir::WalkResult found = kernel.walk([](tile::DotOp dot) {
    unsigned bits = mlir::getElementTypeOrSelf(dot.getLhs().getType()).getIntOrFloatBitWidth();
    return bits == 8 ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  return target.hasWgmma && found.wasInterrupted() && !launchWithRoles(kernel, target);
}

bool leavesFewRegisters(tile::KernelOp kernel, const TargetModel &target) {
  return !launchWithRoles(kernel, target) && 3 * measure(kernel, target).mmaElements >= target.registersPerSm;
}
} // namespace kpkg::kgpu
