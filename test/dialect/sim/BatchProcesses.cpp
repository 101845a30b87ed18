// Runs batches of seeds in child processes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "BatchProcesses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <csignal>
#include <cstring>
#include <deque>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace kpkg::sim::test;

void kpkg::sim::test::runBatches(const Batches &batches, const std::function<void(uint64_t, int64_t)> &work,
                                 const std::function<void(uint64_t, const std::string &)> &crashed) {
  struct Job {
    uint64_t seed;
    int64_t count;
    pid_t process = 0;
  };
  std::vector<Job> slots(std::clamp(batches.jobs, 1, 64));
  std::deque<Job> waiting;
  int64_t size = std::max<int64_t>(1, batches.size);
  for (int64_t done = 0; done < batches.count; done += size)
    waiting.push_back({batches.firstSeed + done, std::min(size, batches.count - done)});
  auto finish = [&](Job &job) {
    int status = 0;
    waitpid(job.process, &status, 0);
    job.process = 0;
    if (!WIFSIGNALED(status))
      return;
    if (job.count == 1)
      return crashed(job.seed, strsignal(WTERMSIG(status)));
    for (int64_t i = 0; i < job.count; ++i)
      waiting.push_back({job.seed + i, 1});
  };
  bool busy = true;
  for (size_t slot = 0; busy || !waiting.empty(); slot = (slot + 1) % slots.size()) {
    Job &job = slots[slot];
    if (job.process)
      finish(job);
    if (!waiting.empty()) {
      job = waiting.front();
      waiting.pop_front();
      llvm::outs().flush();
      job.process = fork();
      if (job.process == 0) {
        work(job.seed, job.count);
        llvm::outs().flush();
        _exit(0);
      }
    }
    busy = llvm::any_of(slots, [](const Job &other) { return other.process != 0; });
  }
}
