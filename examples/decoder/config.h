// Declares the shape of a model, as config.json of a checkpoint gives it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef DECODER_CONFIG_H
#define DECODER_CONFIG_H

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace decoder {

/// What differs between Llama, Qwen3, Qwen3-MoE and gpt-oss.
struct Config {
  std::string architecture;
  int64_t vocabulary = 0, hidden = 0, heads = 0, keyValueHeads = 0, headSize = 0;
  int64_t inner = 0;     ///< of a feed-forward layer
  int64_t positions = 0; ///< most tokens of a sequence
  double epsilon = 0;
  bool isGptOss = false;         ///< biases, sinks, and experts with clamped gates
  bool hasHeadNorms = false;     ///< norms of each head of queries and keys
  bool hasAttentionBias = false; ///< of queries, keys, values and the projection behind them
  bool isTied = false;           ///< the last projection is the embedding
  int64_t experts = 0, choices = 0, expertInner = 0;
  bool isNormalised = true;            ///< the weights of a token's experts add up to 1
  double gateAlpha = 0, gateLimit = 0; ///< of clamped gates
  struct Layer {
    int64_t window = 0; ///< keys that a query sees; 0: all
    bool isSparse = false;
  };
  std::vector<Layer> layers;
  std::vector<float> frequencies; ///< of rotary pairs, in radians for each position
  double rotaryScale = 1;         ///< of the tables
  std::vector<int64_t> ends;      ///< tokens that end a text
};

/// Reads and checks config.json. Throws std::runtime_error that names what is wrong.
Config parseConfig(const nlohmann::json &file);

/// Returns the JSON of a file. Throws std::runtime_error with the file and the place of the first mistake.
nlohmann::json readJson(const std::string &path);

} // namespace decoder
#endif
