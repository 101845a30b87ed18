// Declares requests, pages of the cache, and the scheduler that runs requests together.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef DECODER_SCHEDULER_H
#define DECODER_SCHEDULER_H

#include "graph.h"
#include "model.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>

namespace decoder {

/// A prompt, and how to go on from it.
struct Request {
  size_t number = 0; ///< for the caller
  std::vector<int64_t> prompt;
  int64_t mostTokens = 64; ///< that are drawn
  float temperature = 0;   ///< 0: greedy
  float topP = 1;
  int32_t topK = 0; ///< 0: all
  int64_t seed = 0;
};

/// Runs many requests on one model: continuous batching over a paged cache.
///
/// A request waits until there is a row for it in the batch, and pages for all of its tokens. It is prefilled, together
/// with others that are admitted at the same time, and then decoded with all that are running.
class Scheduler {
public:
  struct Limits {
    int64_t rows;          ///< requests that run at once
    int64_t prefillTokens; ///< of a step, beyond which prompts wait; a longer prompt has a step of its own
    bool useGraphs;
  };
  /// Gets a token as soon as it is drawn. `isLast`: the request is done.
  using Listener = std::function<void(const Request &request, int64_t token, bool isLast)>;

  /// Records a graph for each size of a batch.
  Scheduler(const Ops &ops, const Config &config, const Model &model, const CacheSize &cache, const Limits &limits,
            bool stopsAtEnds, Listener listener);

  /// Throws std::runtime_error for a request that can never run.
  void add(Request request);
  /// Admits and decodes until all requests are done.
  void run();

  /// Seconds of each prefill with its tokens, and of each decoding step with its requests.
  struct Time {
    int64_t count;
    double seconds;
  };
  const std::vector<Time> &prefills() const { return prefillTimes; }
  const std::vector<Time> &decodes() const { return decodeTimes; }

private:
  struct Running {
    Request request;
    std::vector<int32_t> pages;
    int64_t length = 0;  ///< tokens in the cache
    int64_t drawn = 0;   ///< tokens so far
    int64_t newest = -1; ///< the last one, which is not in the cache yet
  };
  /// A decoding step of a number of rows.
  struct Batch {
    std::unique_ptr<Inputs> inputs;
    std::unique_ptr<Graph> greedy, filtered;
  };

  int64_t pagesOf(const Request &request) const;
  int64_t slotOf(const Running &row, int64_t position) const;
  Batch &batchOf(int64_t rows);
  void writeSampling(Inputs &in, int64_t place, const Running &row) const;
  std::vector<Running> admit();
  void prefill(std::vector<Running> admitted);
  void decode();
  void take(Running &row, int64_t token);
  void dropFinished();

  const Ops &ops;
  const Config &config;
  const Model &model;
  CacheSize cache;
  Limits limits;
  bool stopsAtEnds;
  Listener listener;
  std::vector<int32_t> freePages;
  std::deque<Request> waiting;
  std::vector<Running> running;
  std::map<int64_t, Batch> batches;
  std::vector<Time> prefillTimes, decodeTimes;
};

} // namespace decoder
#endif
