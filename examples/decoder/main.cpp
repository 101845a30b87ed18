// The decoder's command line: reads requests, runs them, and streams their tokens.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "scheduler.h"
#include "tokenizer.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>

namespace {

using namespace decoder;

/// What the user asked for.
struct Options {
  std::string packages, model, random, tokenizer, requests, device = "auto", dtype = "auto", profile;
  std::vector<std::string> prompts, ids;
  Request sampling;
  int64_t rows = 8, context = 2048, page = 64, pages = 0, prefillTokens = 8192;
  int threads = 0;
  bool ignoreEnds = false, noGraphs = false, showTimes = false;
};

int parse(int count, char **arguments, Options &o) {
  CLI::App app("Runs language models on the packages of kpkg: Llama, Qwen3, Qwen3-MoE and gpt-oss.");
  app.add_option("--packages", o.packages, "folder with the .kpkg files")->required()->check(CLI::ExistingDirectory);
  auto *source = app.add_option_group("model")->require_option(1);
  source->add_option("--model", o.model, "folder of a checkpoint: config.json and safetensors files");
  source->add_option("--random-weights", o.random, "a config.json: weights are random");
  app.add_option("--tokenizer", o.tokenizer, "SentencePiece model; default: tokenizer.model of the checkpoint");
  app.add_option("--prompt", o.prompts, "a prompt as text; may be repeated");
  app.add_option("--ids", o.ids, "a prompt as token ids, such as 1,2,3; may be repeated");
  app.add_option("--requests", o.requests, "a file with a JSON object per line: README.md has its keys");
  app.add_option("--max-tokens", o.sampling.mostTokens, "tokens to draw for a prompt")->capture_default_str();
  app.add_option("--temperature", o.sampling.temperature, "0: the most probable token")->check(CLI::NonNegativeNumber);
  app.add_option("--top-k", o.sampling.topK, "draw from the k most probable tokens; 0: from all");
  app.add_option("--top-p", o.sampling.topP, "draw from the fewest tokens of this probability")
      ->check(CLI::Range(0., 1.));
  app.add_option("--seed", o.sampling.seed, "of the draws");
  app.add_option("--batch", o.rows, "requests that run at once")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--context", o.context, "most tokens of a request")
      ->check(CLI::Range(1, 1 << 22))
      ->capture_default_str();
  app.add_option("--page", o.page, "tokens of a page of the cache")->check(CLI::Range(16, 4096))->capture_default_str();
  app.add_option("--pages", o.pages, "pages of the cache; 0: enough for all requests")->check(CLI::Range(0, 1 << 24));
  app.add_option("--prefill-tokens", o.prefillTokens, "tokens of prompts in a step")->capture_default_str();
  app.add_option("--device", o.device, "auto, cpu or cuda")->check(CLI::IsMember({"auto", "cpu", "cuda"}));
  app.add_option("--dtype", o.dtype, "auto: float32 on the CPU, else bfloat16")
      ->check(CLI::IsMember({"auto", "float32", "bfloat16", "float16"}));
  app.add_option("--threads", o.threads, "on the CPU")->check(CLI::Range(1, 1024));
  app.add_option("--profile", o.profile, "a file for the times of ops, as JSON");
  app.add_flag("--ignore-eos", o.ignoreEnds, "go on behind the token that ends texts");
  app.add_flag("--no-graphs", o.noGraphs, "do not record CUDA graphs");
  app.add_flag("--times", o.showTimes, "print times of steps at the end");
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? -1 : 2;
  }
  return 0;
}

kpkg_device deviceOf(const Options &o) {
  auto gpus = kpkg::cudaDeviceCount();
  bool isThere = gpus && *gpus > 0;
  if (o.device == "cuda" && !isThere)
    throw std::runtime_error(gpus ? "there is no GPU" : gpus.error().message);
  return isThere && o.device != "cpu" ? kpkg::cudaDevice() : kpkg::Cpu;
}

kpkg::DType dtypeOf(const Options &o, const kpkg_device &device) {
  if (o.dtype == "auto")
    return device.type == KPKG_DEVICE_CUDA ? kpkg::DType::BFloat16 : kpkg::DType::Float32;
  return o.dtype == "float32"    ? kpkg::DType::Float32
         : o.dtype == "bfloat16" ? kpkg::DType::BFloat16
                                 : kpkg::DType::Float16;
}

std::vector<int64_t> parseIds(const std::string &text) {
  std::vector<int64_t> ids;
  std::istringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) {
    size_t end = 0;
    try {
      ids.push_back(std::stoll(item, &end));
    } catch (const std::exception &) {
      end = std::string::npos;
    }
    if (end != item.size())
      throw std::runtime_error("--ids " + text + ": '" + item + "' is no token id");
  }
  return ids;
}

/// Reads a line of the file of requests. Keys that are not there have the values of the command line.
Request parseRequest(const std::string &line, const Options &o, const std::optional<Tokenizer> &tokenizer) {
  Request request = o.sampling;
  nlohmann::json json = nlohmann::json::parse(line);
  for (const auto &[key, value] : json.items()) {
    if (key == "ids")
      request.prompt = value.get<std::vector<int64_t>>();
    else if (key == "prompt" && tokenizer)
      request.prompt = tokenizer->encode(value.get<std::string>());
    else if (key == "max_tokens")
      request.mostTokens = value.get<int64_t>();
    else if (key == "temperature")
      request.temperature = value.get<float>();
    else if (key == "top_p")
      request.topP = value.get<float>();
    else if (key == "top_k")
      request.topK = value.get<int32_t>();
    else if (key == "seed")
      request.seed = value.get<int64_t>();
    else
      throw std::runtime_error("key '" + key + "' is unknown, or needs a tokenizer");
  }
  return request;
}

std::vector<Request> readRequests(const Options &o, const std::optional<Tokenizer> &tokenizer) {
  std::vector<Request> requests;
  for (const std::string &text : o.prompts)
    requests.emplace_back(o.sampling).prompt = tokenizer.value().encode(text);
  for (const std::string &ids : o.ids)
    requests.emplace_back(o.sampling).prompt = parseIds(ids);
  if (!o.requests.empty()) {
    std::ifstream file(o.requests);
    if (!file)
      throw std::runtime_error("cannot open " + o.requests);
    int64_t number = 1;
    for (std::string line; std::getline(file, line); ++number) {
      try {
        requests.push_back(parseRequest(line, o, tokenizer));
      } catch (const std::exception &error) {
        throw std::runtime_error(o.requests + ", line " + std::to_string(number) + ": " + error.what());
      }
    }
  }
  if (requests.empty())
    throw std::runtime_error("there is no request: give --prompt, --ids or --requests");
  for (size_t i = 0; i < requests.size(); ++i)
    requests[i].number = i;
  return requests;
}

/// Prints each token as soon as it is drawn: the request, the token, and the text that it adds.
class Printer {
public:
  explicit Printer(const Tokenizer *tokenizer) : tokenizer(tokenizer) {}

  void operator()(const Request &request, int64_t token, bool isLast) {
    std::printf("%zu\t%lld", request.number, static_cast<long long>(token));
    if (tokenizer) {
      auto &[tokens, printed] = texts[request.number];
      tokens.push_back(token);
      std::string text = tokenizer->decode(tokens);
      // A character of several tokens waits for the last one.
      bool isWhole = text.size() < 3 || text.compare(text.size() - 3, 3, "\xef\xbf\xbd") != 0;
      if (isWhole || isLast) {
        std::printf("\t%s", nlohmann::json(text.substr(std::min(printed, text.size())))
                                .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                                .c_str());
        printed = text.size();
      }
    }
    std::printf("\n");
    std::fflush(stdout);
  }

private:
  const Tokenizer *tokenizer;
  std::map<size_t, std::pair<std::vector<int64_t>, size_t>> texts;
};

void printTimes(const char *kind, const char *unit, const std::vector<Scheduler::Time> &times) {
  std::map<int64_t, std::vector<double>> byCount;
  for (const Scheduler::Time &time : times)
    byCount[time.count].push_back(time.seconds);
  for (auto &[count, seconds] : byCount) {
    std::sort(seconds.begin(), seconds.end());
    std::fprintf(stderr, "%s of %lld %s: %zu times, median %.4f ms, least %.4f ms\n", kind,
                 static_cast<long long>(count), unit, seconds.size(), 1e3 * seconds[seconds.size() / 2],
                 1e3 * seconds[0]);
  }
}

void run(const Options &o) {
  if (o.threads)
    kpkg::setCpuThreads(o.threads).value();
  Config config = parseConfig(readJson(o.random.empty() ? o.model + "/config.json" : o.random));
  std::optional<Tokenizer> tokenizer;
  std::string usual = o.model + "/tokenizer.model";
  if (!o.tokenizer.empty() || !o.prompts.empty() || std::ifstream(usual))
    tokenizer.emplace(o.tokenizer.empty() ? usual : o.tokenizer);
  std::vector<Request> requests = readRequests(o, tokenizer);
  std::optional<Checkpoint> checkpoint;
  if (o.random.empty())
    checkpoint.emplace(o.model);

  kpkg_device device = deviceOf(o);
  kpkg::DType dtype = dtypeOf(o, device);
  Ops ops(o.packages, device, config.experts > 0);
  CacheSize cache = {o.pages, o.page, std::min(o.context, config.positions)};
  if (cache.pages == 0)
    cache.pages = o.rows * ((cache.context + cache.page - 1) / cache.page);
  Weights weights(ops, checkpoint ? &*checkpoint : nullptr, dtype);
  Model model(ops, config, weights, dtype, cache);
  Scheduler::Limits limits = {o.rows, o.prefillTokens, ops.isOnGpu() && !o.noGraphs};
  Scheduler scheduler(ops, config, model, cache, limits, !o.ignoreEnds, Printer(tokenizer ? &*tokenizer : nullptr));
  for (Request &request : requests)
    scheduler.add(std::move(request));
  if (!o.profile.empty())
    kpkg::Status::from(kpkg_profile_start(0)).value();
  scheduler.run();
  if (!o.profile.empty()) {
    kpkg_string *json = nullptr;
    kpkg::Status::from(kpkg_profile_stop(&json)).value();
    std::ofstream(o.profile) << kpkg::takeString(json);
  }
  if (o.showTimes) {
    std::fprintf(stderr, "weights: %.3f GB\n", 1e-9 * double(weights.bytes()));
    printTimes("prefill", "tokens", scheduler.prefills());
    printTimes("decode", "requests", scheduler.decodes());
  }
}

} // namespace

int main(int count, char **arguments) {
  Options options;
  if (int code = parse(count, arguments, options); code != 0)
    return code < 0 ? 0 : code;
  try {
    run(options);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
