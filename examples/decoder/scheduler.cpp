// Admits requests, prefills them, and decodes those that run in batches of recorded sizes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "scheduler.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace decoder {

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Returns whether a draw needs the limits of top-k and top-p.
static bool isFiltered(const Request &request) {
  return request.temperature > 0 && (request.topK > 0 || request.topP < 1);
}

Scheduler::Scheduler(const Ops &ops, const Config &config, const Model &model, const CacheSize &cache,
                     const Limits &limits, bool stopsAtEnds, Listener listener)
    : ops(ops), config(config), model(model), cache(cache), limits(limits), stopsAtEnds(stopsAtEnds),
      listener(std::move(listener)) {
  for (int64_t page = cache.pages; page-- > 0;)
    freePages.push_back(int32_t(page));
  for (int64_t rows = 1;; rows = std::min(2 * rows, limits.rows)) {
    Batch &batch = batches[rows];
    batch.inputs = std::make_unique<Inputs>(ops, rows, rows, pagesOf({}));
    batch.inputs->upload();
    auto record = [&](bool filtered) -> std::unique_ptr<Graph> {
      if (!limits.useGraphs)
        return nullptr;
      auto step = [&] { model.step(*batch.inputs, Model::Phase::Decode, filtered); };
      step(); // a first run, of rows without tokens, loads what a recording must not load
      ops.stream.synchronize().value();
      return std::make_unique<Graph>(ops.stream, step);
    };
    batch.greedy = record(false), batch.filtered = record(true);
    if (rows == limits.rows)
      break;
  }
}

int64_t Scheduler::pagesOf(const Request &request) const {
  int64_t tokens = request.prompt.empty() ? cache.context : int64_t(request.prompt.size()) + request.mostTokens;
  return (tokens + cache.page - 1) / cache.page;
}

int64_t Scheduler::slotOf(const Running &row, int64_t position) const {
  return row.pages[size_t(position / cache.page)] * cache.page + position % cache.page;
}

void Scheduler::add(Request request) {
  std::string name = "request " + std::to_string(request.number);
  int64_t tokens = int64_t(request.prompt.size());
  if (tokens == 0)
    throw std::runtime_error(name + " has no prompt");
  if (request.mostTokens < 1)
    throw std::runtime_error(name + " asks for " + std::to_string(request.mostTokens) + " tokens, expected 1 or more");
  for (int64_t token : request.prompt)
    if (token < 0 || token >= config.vocabulary)
      throw std::runtime_error(name + " has the token " + std::to_string(token) + ", expected 0 to " +
                               std::to_string(config.vocabulary - 1));
  if (request.mostTokens > cache.context - tokens)
    throw std::runtime_error(name + " has a prompt of " + std::to_string(tokens) + " tokens and asks for " +
                             std::to_string(request.mostTokens) + " more: the context has " +
                             std::to_string(cache.context));
  if (pagesOf(request) > cache.pages)
    throw std::runtime_error(name + " needs " + std::to_string(pagesOf(request)) + " pages, the cache has " +
                             std::to_string(cache.pages));
  waiting.push_back(std::move(request));
}

void Scheduler::run() {
  while (!waiting.empty() || !running.empty()) {
    if (std::vector<Running> admitted = admit(); !admitted.empty())
      prefill(std::move(admitted));
    if (!running.empty())
      decode();
  }
}

/// Takes waiting requests, first come first served, while there are rows and pages for them.
std::vector<Scheduler::Running> Scheduler::admit() {
  std::vector<Running> admitted;
  int64_t tokens = 0;
  while (!waiting.empty() && int64_t(running.size() + admitted.size()) < limits.rows) {
    Request &next = waiting.front();
    size_t pages = size_t(pagesOf(next));
    tokens += int64_t(next.prompt.size());
    if (pages > freePages.size() || (!admitted.empty() && tokens > limits.prefillTokens))
      break;
    Running row;
    row.request = std::move(next);
    row.pages.assign(freePages.end() - int64_t(pages), freePages.end());
    freePages.resize(freePages.size() - pages);
    admitted.push_back(std::move(row));
    waiting.pop_front();
  }
  return admitted;
}

void Scheduler::writeSampling(Inputs &in, int64_t place, const Running &row) const {
  in.host<float>(Inputs::Temperature)[place] = row.request.temperature;
  in.host<float>(Inputs::TopP)[place] = row.request.topP;
  in.host<int32_t>(Inputs::TopK)[place] = row.request.topK;
  in.host<int64_t>(Inputs::Seeds)[place] = row.request.seed;
  in.host<int64_t>(Inputs::Offsets)[place] = row.drawn;
}

void Scheduler::prefill(std::vector<Running> admitted) {
  auto start = Clock::now();
  int64_t tokens = 0;
  for (const Running &row : admitted)
    tokens += int64_t(row.request.prompt.size());
  Inputs in(ops, tokens, int64_t(admitted.size()), 1);
  bool filtered = false;
  int64_t at = 0;
  for (size_t i = 0; i < admitted.size(); ++i) {
    Running &row = admitted[i];
    filtered |= isFiltered(row.request);
    for (int64_t token : row.request.prompt) {
      in.host<int64_t>(Inputs::Tokens)[at] = token;
      in.host<int64_t>(Inputs::Positions)[at] = row.length;
      in.host<int64_t>(Inputs::Slots)[at++] = slotOf(row, row.length);
      ++row.length;
    }
    in.host<int64_t>(Inputs::Last)[i] = at - 1;
    in.host<int32_t>(Inputs::Starts)[i + 1] = int32_t(at);
    writeSampling(in, int64_t(i), row);
  }
  in.upload();
  model.step(in, Model::Phase::Prefill, filtered);
  const int64_t *drawn = in.drawn();
  prefillTimes.push_back({tokens, secondsSince(start)});
  for (size_t i = 0; i < admitted.size(); ++i) {
    take(admitted[i], drawn[i]);
    running.push_back(std::move(admitted[i]));
  }
  dropFinished();
}

void Scheduler::decode() {
  auto start = Clock::now();
  // The smallest batch with enough rows; further rows stay empty.
  auto &[rows, batch] = *batches.lower_bound(int64_t(running.size()));
  Inputs &in = *batch.inputs;
  int64_t width = pagesOf({});
  bool filtered = false;
  for (size_t i = 0; i < size_t(rows); ++i) {
    bool isEmpty = i >= running.size();
    in.host<int32_t>(Inputs::Lengths)[i] = isEmpty ? 0 : int32_t(running[i].length + 1);
    in.host<int64_t>(Inputs::Slots)[i] = isEmpty ? -1 : slotOf(running[i], running[i].length);
    if (isEmpty)
      continue;
    const Running &row = running[i];
    filtered |= isFiltered(row.request);
    in.host<int64_t>(Inputs::Tokens)[i] = row.newest;
    in.host<int64_t>(Inputs::Positions)[i] = row.length;
    std::copy(row.pages.begin(), row.pages.end(), in.host<int32_t>(Inputs::Table) + int64_t(i) * width);
    writeSampling(in, int64_t(i), row);
  }
  in.upload();
  if (const auto &graph = filtered ? batch.filtered : batch.greedy)
    graph->replay();
  else
    model.step(in, Model::Phase::Decode, filtered);
  const int64_t *drawn = in.drawn();
  decodeTimes.push_back({int64_t(running.size()), secondsSince(start)});
  for (size_t i = 0; i < running.size(); ++i) {
    ++running[i].length;
    take(running[i], drawn[i]);
  }
  dropFinished();
}

/// Hands a token on. Finished requests have no newest token.
void Scheduler::take(Running &row, int64_t token) {
  if (token < 0)
    throw std::runtime_error("request " + std::to_string(row.request.number) +
                             " has no token to draw: its logits are not finite");
  bool isEnd = stopsAtEnds && std::count(config.ends.begin(), config.ends.end(), token) != 0;
  bool isLast = isEnd || ++row.drawn == row.request.mostTokens;
  row.newest = isLast ? -1 : token;
  listener(row.request, token, isLast);
}

void Scheduler::dropFinished() {
  for (Running &row : running)
    if (row.newest < 0)
      freePages.insert(freePages.end(), row.pages.begin(), row.pages.end());
  auto isDone = [](const Running &row) { return row.newest < 0; };
  running.erase(std::remove_if(running.begin(), running.end(), isDone), running.end());
}

} // namespace decoder
