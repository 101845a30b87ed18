// The launches that suit a kernel on a chip, the best guess first.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that only move memory reach the rate of a copy when enough bytes are on their way at any time and the
// hardware has several CTAs per SM to overlap loading, computing and storing. What that takes was measured on an H200:
//  * two to five vectors of 16 bytes a thread, up to eight when a row needs them: fewer, and starting threads and
//    exchanging partial sums take longer than the data;
//  * at least two CTAs on an SM, and 48 KB of loads on their way on an SM;
//  * rows up to 1 KB on lanes of a warp, several of them in a CTA; up to 2 KB where a result for each is all that is
//  written;
//  * a row that one CTA cannot hold beside another one is spread over a cluster, so that an SM holds parts of several
//  rows: four CTAs of 256 threads. Those
//    exchange partial sums while others load and store;
//  * where a CTA of the largest cluster takes 512 threads and less than 64 KB of its row, or all registers, or reads
//  more weights than row, clusters
//    stay and go over rows, with the next row on its way to shared memory;
//  * so do CTAs of 512 threads where a row has more weights than elements: these stay in registers;
//  * kernels without a reduction: many threads with one or two vectors each.
#include "dialect/kgpu/schedule/Candidates.h"
#include "dialect/kgpu/schedule/Hints.h"
#include "dialect/kgpu/schedule/HoistLoads.h"
#include "dialect/kgpu/schedule/PrefetchLoads.h"
#include "dialect/kgpu/schedule/RoleLaunch.h"
#include "dialect/kgpu/schedule/Work.h"

namespace kpkg::kgpu {
namespace {
constexpr int64_t kVectorBytes = 16;
constexpr int64_t kBytesInFlight = 48 * 1024;
/// What an SM is asked for where registers allow it: warps that compute hide behind others.
constexpr int64_t kWantedBytesInFlight = 96 * 1024;
/// Addresses, predicates, partial sums: what a thread needs besides the elements of tiles.
constexpr int64_t kFixedRegisters = 26;
/// Rows above the first size are always spread over clusters, those from the second on where one CTA needs too much of
/// an SM.
constexpr int64_t kLongestRowOfCta = 128 * 1024;
constexpr int64_t kShortestRowOfCluster = 48 * 1024;
/// Of its row, that a CTA of 512 threads reads at least for its exchanges to be hidden by the other one on its SM.
constexpr int64_t kPartThatHides = 64 * 1024;
/// Rows of 16-bit elements for which weights stay in registers, and the part of a row that a CTA then has.
constexpr int64_t kShortestRowWithWeights = 16 * 1024, kPartWithWeights = 32 * 1024;
/// What loops over rows have on their way on an SM. Measured on an H200 with gradients of norms: half of it is 2 to 8 %
/// slower, more is not faster.
constexpr int64_t kBytesAhead = 64 * 1024;
/// What a CTA reads at least to start while the kernel in front of it ends: below, waiting for that one takes longer
/// than it hides.
constexpr int64_t kOverlapBytes = 4 * 1024;
/// Lanes that load a line of the cache together.
constexpr int64_t kLanesOfLine = 8;
/// Threads of a CTA that holds packed kernel blocks.
constexpr unsigned kSmallCta = 128;
/// Of a thread of the producer warpgroup: two consumers beside it keep 232 of their 240.
constexpr unsigned kMoreLoadRegisters = 40;
/// Threads that share a row at least when it needs more than a warp.
constexpr unsigned kFewestThreads = 64;
/// Elements of a computed tile that a thread gets where there are more threads to have: code grows with them.
constexpr int64_t kMostComputed = 256;

struct Estimate {
  const Work &work;
  const TargetModel &target;

  int64_t vectors(unsigned threads) const { return llvm::divideCeil(work.widestBytes, kVectorBytes * threads); }
  unsigned registers(unsigned threads) const {
    return kFixedRegisters + llvm::divideCeil(work.liveRegisters, int64_t(threads));
  }
  bool hides(unsigned threads) const {
    // With a demand for it, ptxas gets along with fewer registers than counted here.
    unsigned ctas = target.residentCtas(threads, registers(threads) * 3 / 4, 0);
    return ctas >= 2 && ctas * work.inputBytes >= std::min(kBytesInFlight, 4 * work.inputBytes);
  }
};

/// Threads for a kernel block that needs more than a warp.
unsigned threadsFor(const Estimate &estimate) {
  const unsigned limit = estimate.target.maxThreads;
  const int64_t most = estimate.work.reduces ? 5 : 2;
  for (unsigned threads = kFewestThreads; threads < limit; threads *= 2)
    if (estimate.vectors(threads) <= most && estimate.hides(threads))
      return threads;
  // More vectors per thread rather than a CTA that fills half of the SM; also where nothing hides the latency.
  for (unsigned threads = kFewestThreads; threads < limit; threads *= 2)
    if (estimate.vectors(threads) <= 8 && estimate.hides(threads))
      return threads;
  unsigned threads = kFewestThreads;
  while (threads < limit && estimate.vectors(threads) > 8)
    threads *= 2;
  return threads;
}

/// How many CTAs of this size an SM should be asked to hold, so that enough bytes are on their way; 0 where registers
/// are no question.
unsigned wantedCtas(const Estimate &estimate, unsigned threads) {
  const Work &work = estimate.work;
  int64_t wanted = std::max<int64_t>(2, llvm::divideCeil(kWantedBytesInFlight, std::max<int64_t>(work.inputBytes, 1)));
  wanted = std::min<int64_t>({wanted, estimate.target.maxCtasPerSm, estimate.target.maxThreadsPerSm * 3 / 4 / threads});
  // Three quarters of the threads of an SM are enough, and a demand that leaves too few registers only leads to spills.
  while (wanted > 2 && estimate.target.residentCtas(threads, estimate.registers(threads) * 5 / 8, 0) < wanted)
    --wanted;
  // Two instead of one are worth an attempt that may spill.
  return wanted > 1 && estimate.target.residentCtas(threads, estimate.registers(threads) / 2, 0) > 1 ? wanted : 0;
}

llvm::SmallVector<Launch> forDot(const Work &work, const TargetModel &target) {
  // 32 registers of accumulator a thread leave room for operands and two CTAs on an SM.
  int64_t words = work.dotElements * work.dotElementBytes / 4;
  int64_t threads = llvm::bit_ceil(static_cast<uint64_t>(llvm::divideCeil(words, 32)));
  llvm::SmallVector<Launch> result;
  for (int64_t count = std::clamp<int64_t>(threads, 64, target.maxThreads); count <= target.maxThreads; count *= 2)
    result.push_back({.threads = static_cast<unsigned>(count)});
  return result;
}
/// Slots of the rings through which operands of products go.
constexpr unsigned kMostStages = 4, kFewestStages = 2;

/// Products of warps: 128 registers of accumulator a thread, so that a warp reads little of the operands for what it
/// computes; fewer where that spills. One CTA more on an SM hides what happens between loops.
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
    // Four warps alone on an SM hide nothing from each other, and beside so many accumulators operands mostly spill.
    // Rows stay with one warp, though.
    bool isAlone = whole * work.mmaStageBytes > int64_t(target.sharedPerSm / 2 - target.reservedShared);
    if (isAlone && !work.reduces && threads == fewest && work.mmaElements >= 128 * int64_t(threads) &&
        2 * threads <= target.maxThreads)
      continue;
    result.push_back({.threads = threads, .stages = whole < kFewestStages ? 0 : whole});
  }
  return result;
}

/// The smallest cluster of which an SM holds so many CTAs of this many threads; nothing when the largest one has too
/// few registers for that, or when vectors do not divide a part of the row among so many threads.
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

/// A row for the registers of several CTAs.
llvm::SmallVector<Launch> forCluster(const Work &work, const TargetModel &target) {
  llvm::SmallVector<Launch> result;
  unsigned threads = 256, ctas = 4;
  std::optional<unsigned> cluster = clusterFor(work, target, threads, ctas);
  bool stays = work.repeatedBytes > work.rowBytes;
  if (!cluster) {
    threads = 512, ctas = 2;
    cluster = clusterFor(work, target, threads, ctas);
    stays = stays || !cluster || work.rowBytes < kPartThatHides * *cluster;
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
  // One alone on its SM hides nothing: its next row is under way meanwhile, and it gets more to do between two
  // exchanges.
  unsigned part = *cluster;
  while (part > 2 && work.rowBytes / part < kPartThatHides)
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

/// Clusters that stay, with the weights of all rows in their registers: where these are more than a row, reading them
/// for each row takes as long as the row. A CTA has up to 32 KB of its row, the next one on its way. Rows of 32-bit
/// elements, which take half the instructions a byte, need it when they are long; they profit from a second row on its
/// way, others lose by it.
std::optional<Launch> forWeights(const Work &work, const TargetModel &target) {
  const int64_t elementBytes = work.widestBytes / std::max<int64_t>(work.widestElements, 1);
  const int64_t shortest = elementBytes < 4 ? kShortestRowWithWeights : kLongestRowOfCta;
  bool mayStay = work.reduces && !work.loops && !work.prints && work.isFetchable && target.hasDistributedShared;
  if (!mayStay || elementBytes > 4 || work.repeatedBytes <= work.rowBytes || work.rowBytes < shortest)
    return std::nullopt;
  Launch launch{.threads = 512, .persistent = true, .stages = elementBytes < 4 ? 1u : 2u};
  while (launch.cluster < target.maxCluster && work.rowBytes > kPartWithWeights * launch.cluster)
    launch.cluster *= 2;
  if (2 * work.rowBytes <= kPartWithWeights * launch.cluster)
    launch.minCtas = 2;
  return launch;
}

/// Whether a CTA that has the whole row leaves no room for a second one on its SM.
bool fillsSm(const Work &work, const TargetModel &target) {
  constexpr int64_t fewestThreads = 256;
  return work.rowBytes >= kShortestRowOfCluster &&
         2 * (work.liveRegisters + kFixedRegisters * fewestThreads) > target.registersPerSm;
}

llvm::SmallVector<Launch> forWork(const Work &work, const TargetModel &target) {
  if (work.mmaElements != 0)
    return forMma(work, target);
  if (work.dotElements != 0)
    return forDot(work, target);
  bool mayUseClusters = work.reduces && !work.loops && !work.prints && target.hasDistributedShared;
  if (work.widestBytes > kLongestRowOfCta && mayUseClusters)
    return forCluster(work, target);
  Estimate estimate{work, target};
  llvm::SmallVector<Launch> result;
  auto add = [&](Launch launch) {
    if (!llvm::is_contained(result, launch))
      result.push_back(launch);
  };

  // Short rows: a vector or two for each lane of a part of a warp; four where a result for each row is all that is
  // written, which all of its lanes compute. Eight lanes read a whole line of the cache.
  const int64_t vectors = work.writesRows ? 2 : 4;
  if (work.widestBytes <= vectors * kVectorBytes * target.warpSize && work.packable &&
      work.computedElements <= kMostComputed * target.warpSize) {
    int64_t lanes = llvm::bit_ceil(static_cast<uint64_t>(llvm::divideCeil(work.widestBytes, kVectorBytes)));
    if (!work.writesRows)
      lanes = std::max(std::min<int64_t>(lanes, kLanesOfLine), lanes / vectors);
    unsigned block = std::clamp<int64_t>(lanes, 1, target.warpSize);
    add({.threads = kSmallCta, .blocks = kSmallCta / block});
    add({.threads = kSmallCta});
    return result;
  }
  const int64_t forComputed = llvm::PowerOf2Ceil(llvm::divideCeil(work.computedElements, kMostComputed));
  const unsigned fewest = std::clamp<int64_t>(
      forComputed, work.widestBytes <= 2 * kVectorBytes * target.warpSize ? target.warpSize : threadsFor(estimate),
      target.maxThreads);
  // Where a CTA cannot have a second one beside it without spills, one of more threads, with fewer registers each, may.
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

/// A kernel with its loads as early as they can be.
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

/// Whether the registers for early loads leave enough threads on an SM. In a loop nothing else hides the latency.
bool isWorthwhile(const Launch &early, const Launch &late, bool prefetches) {
  unsigned demanded = late.threads * std::max(late.minCtas, 1u), left = early.threads * std::max(early.minCtas, 1u);
  return prefetches ? 3 * left >= demanded : 4 * left >= 3 * demanded;
}

/// Elements of any strides are loaded one by one, most of each sector for nothing. Neither early loads nor more CTAs
/// make up for that, but the many addresses make the code long and registers few: it is compiled at the first try
/// without demands. Products reuse what they load.
bool isForAnyStrides(tile::KernelOp kernel, const Work &work) {
  return kernel.getVariant() == "any" && work.dotElements == 0;
}

/// Slots for a loop over rows of which the author says how many CTAs an SM holds: as many as keep loads on their way
/// while an iteration waits and computes. 0 where they do not fit, or where nothing can be fetched.
unsigned stagesOfLoop(const Work &work, const TargetModel &target, const Launch &launch) {
  constexpr unsigned kMost = 3;
  int64_t slot = work.rowBytes / launch.cluster * std::max(launch.minCtas, 1u);
  if (!work.loops || !work.reduces || !work.isFetchable || slot == 0 || work.dotElements != 0 ||
      work.mmaElements != 0 || !target.hasAsyncCopy)
    return 0;
  int64_t wanted = std::min<int64_t>(llvm::divideCeil(kBytesAhead, slot), kMost);
  return std::min<int64_t>(wanted, target.sharedPerSm * 7 / 8 / slot);
}

/// What the kernel's author asks for, completed from `best`.
std::optional<Launch> hinted(tile::KernelOp kernel, const TargetModel &target, const Work &work, Launch best) {
  bool multiplies = work.dotElements != 0 || work.mmaElements != 0;
  auto hint = [&](llvm::StringRef name) { // clusters of products are those of launches with roles
    return multiplies && name == "cluster" ? 0 : hintOf(kernel, name);
  };
  if (!hint("warps") && !hint("occupancy") && !hint("cluster"))
    return std::nullopt; // `stages` is for whoever makes them
  if (!hint("warps") && launchWithRoles(kernel, target))
    return std::nullopt; // `occupancy` is theirs
  if (unsigned warps = hint("warps")) {
    best.threads = warps * target.warpSize;
    best.blocks = 1;
    best.minCtas = 0;
  }
  if (unsigned occupancy = hint("occupancy"))
    best.minCtas = occupancy;
  if (unsigned cluster = hint("cluster"); cluster != 0 && best.blocks == 1)
    best.cluster = std::min(cluster, target.maxCluster);
  if (unsigned stages = hint("stages");
      stages != 0 && best.blocks == 1 && work.dotElements == 0 && work.mmaElements == 0) {
    best.persistent = !work.loops;
    best.stages = stages;
  } else if (best.blocks == 1) {
    best.stages = stagesOfLoop(work, target, best);
  }
  return best;
}
} // namespace

static bool overlapsOther(const Launch &launch, tile::KernelOp kernel, const Work &work, const TargetModel &target) {
  bool repeats = work.loops || launch.persistent || kernel.isPersistent();
  return target.hasDependentLaunch && (repeats || work.inputBytes * launch.blocks >= kOverlapBytes * launch.cluster);
}

llvm::SmallVector<Launch> candidates(tile::KernelOp kernel, const TargetModel &target) {
  Work work = measure(kernel, target);
  llvm::SmallVector<Launch> late = forWork(work, target), result;
  bool anyStrides = isForAnyStrides(kernel, work);
  std::optional<Early> early = anyStrides ? std::nullopt : withEarlyLoads(kernel, target);
  if (anyStrides)
    llvm::erase_if(late, [](const Launch &launch) { return launch.minCtas != 0; });
  if (std::optional<Launch> launch = launchWithRoles(kernel, target)) {
    if (hintOf(kernel, "peel")) {
      result.push_back(*launch);
      result.back().peels = true;
    }
    result.push_back(*launch);
    if (launch->producers != 0) {
      Launch two = *launch;
      two.producers = 0;
      two.threads -= kWarpgroupThreads;
      result.push_back(two);
    }
    if (launch->minCtas > 1) {
      Launch alone = *launch;
      alone.minCtas = 0;
      if (hintOf(kernel, "peel"))
        result.emplace_back(alone).peels = true;
      result.push_back(alone);
    }
    if (launch->producers == 0) { // where the producer's own registers spill, a few of the consumers' help
      Launch more = result.back();
      more.loadRegisters = kMoreLoadRegisters;
      result.push_back(more);
    }
  }
  if (std::optional<Launch> launch = early ? forWeights(work, target) : std::nullopt)
    early->mark(result.emplace_back(*launch));
  if (early)
    for (Launch launch : forWork(early->work, target)) {
      // Who stays on its SM finds weights in the first cache: where they do not all fit into registers, these are
      // better used for the row.
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
