// Reads config.json: sizes, layer types and rotary frequencies.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "config.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <stdexcept>

namespace decoder {

using nlohmann::json;

namespace {

constexpr int64_t mostOfAnything = int64_t(1) << 24; // layers, heads, elements of rows: products fit in 64 bits
constexpr int64_t mostExperts = 512;                 // as moe_routing
constexpr double pi = 3.14159265358979323846;

[[noreturn]] void refuse(const std::string &what) { throw std::runtime_error("config.json: " + what); }

bool has(const json &from, const char *key) { return from.contains(key) && !from[key].is_null(); }

int64_t count(const json &from, const char *key, std::optional<int64_t> otherwise = {}) {
  if (!has(from, key)) {
    if (otherwise)
      return *otherwise;
    refuse(std::string("'") + key + "' is missing");
  }
  if (!from[key].is_number_integer() || from[key] < 1 || from[key] > mostOfAnything)
    refuse(std::string("'") + key + "' is " + from[key].dump() + ", expected an integer from 1 to 16777216");
  return from[key].get<int64_t>();
}

double number(const json &from, const char *key, std::optional<double> otherwise = {}) {
  if (!has(from, key)) {
    if (otherwise)
      return *otherwise;
    refuse(std::string("'") + key + "' is missing");
  }
  if (!from[key].is_number() || !(from[key].get<double>() > 0))
    refuse(std::string("'") + key + "' is " + from[key].dump() + ", expected a positive number");
  return from[key].get<double>();
}

bool flag(const json &from, const char *key, bool otherwise) {
  if (!has(from, key))
    return otherwise;
  if (!from[key].is_boolean())
    refuse(std::string("'") + key + "' is " + from[key].dump() + ", expected true or false");
  return from[key].get<bool>();
}

std::string text(const json &from, const char *key, const std::string &otherwise) {
  if (!has(from, key))
    return otherwise;
  if (!from[key].is_string())
    refuse(std::string("'") + key + "' is " + from[key].dump() + ", expected text");
  return from[key].get<std::string>();
}

/// Llama 3.1: long waves are stretched by `factor`, short ones stay, and those between are joined linearly.
void stretchLongWaves(const json &rope, std::vector<double> &frequencies) {
  double factor = number(rope, "factor"), low = number(rope, "low_freq_factor"),
         high = number(rope, "high_freq_factor"), before = number(rope, "original_max_position_embeddings");
  for (double &frequency : frequencies) {
    double waves = before * frequency / (2 * pi);
    double share = std::clamp((waves - low) / (high - low), 0.0, 1.0);
    frequency *= (1 - share) / factor + share;
  }
}

/// YaRN: B. Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models", 2023, section 3.2.
/// Returns the scale of the tables.
double stretchByRamp(const json &rope, double base, std::vector<double> &frequencies) {
  double factor = number(rope, "factor"), before = number(rope, "original_max_position_embeddings");
  if (has(rope, "mscale") || has(rope, "mscale_all_dim"))
    refuse("rotary embedding with 'mscale' is not supported");
  double dim = 2 * double(frequencies.size());
  auto place = [&](double turns) { return dim * std::log(before / (turns * 2 * pi)) / (2 * std::log(base)); };
  double low = place(number(rope, "beta_fast", 32)), high = place(number(rope, "beta_slow", 1));
  if (flag(rope, "truncate", true))
    low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, dim - 1);
  if (low == high)
    high += 0.001;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    double stretched = std::clamp((double(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] *= stretched / factor + 1 - stretched;
  }
  return number(rope, "attention_factor", factor <= 1 ? 1.0 : 0.1 * std::log(factor) + 1);
}

void readRotary(const json &file, Config &config) {
  // Newer files have everything in rope_parameters, older ones the base beside rope_scaling.
  json rope = has(file, "rope_parameters") ? file["rope_parameters"]
              : has(file, "rope_scaling")  ? file["rope_scaling"]
                                           : json::object();
  if (!rope.is_object())
    refuse("rotary parameters are " + rope.dump() + ", expected an object");
  double base = has(rope, "rope_theta") ? number(rope, "rope_theta") : number(file, "rope_theta", 10000);
  if (number(rope, "partial_rotary_factor", number(file, "partial_rotary_factor", 1)) != 1)
    refuse("rotary embedding of a part of each head is not supported");
  std::vector<double> frequencies;
  for (int64_t i = 0; i < config.headSize / 2; ++i)
    frequencies.push_back(std::pow(base, -2.0 * double(i) / double(config.headSize)));
  std::string type = text(rope, "rope_type", text(rope, "type", "default"));
  if (type == "llama3")
    stretchLongWaves(rope, frequencies);
  else if (type == "yarn")
    config.rotaryScale = stretchByRamp(rope, base, frequencies);
  else if (type == "linear")
    for (double &frequency : frequencies)
      frequency /= number(rope, "factor");
  else if (type != "default")
    refuse("rotary embedding of type '" + type + "' is not supported, expected default, linear, llama3 or yarn");
  config.frequencies.assign(frequencies.begin(), frequencies.end());
}

void readLayers(const json &file, Config &config) {
  config.layers.resize(size_t(count(file, "num_hidden_layers")));
  bool slides = config.isGptOss || flag(file, "use_sliding_window", false);
  if (slides && has(file, "sliding_window")) {
    if (!has(file, "layer_types") || !file["layer_types"].is_array() ||
        file["layer_types"].size() != config.layers.size())
      refuse("'layer_types' must name the attention of each of " + std::to_string(config.layers.size()) + " layers");
    for (size_t i = 0; i < config.layers.size(); ++i)
      if (file["layer_types"][i] == "sliding_attention")
        config.layers[i].window = count(file, "sliding_window");
  }
  if (!config.experts)
    return;
  int64_t step = count(file, "decoder_sparse_step", 1);
  for (size_t i = 0; i < config.layers.size(); ++i)
    config.layers[i].isSparse = (int64_t(i) + 1) % step == 0;
  if (has(file, "mlp_only_layers"))
    for (const json &layer : file["mlp_only_layers"])
      if (layer.is_number_unsigned() && layer < config.layers.size())
        config.layers[layer.get<size_t>()].isSparse = false;
}

void readExperts(const json &file, Config &config) {
  config.experts = has(file, "num_experts") ? count(file, "num_experts") : count(file, "num_local_experts");
  config.choices = count(file, "num_experts_per_tok");
  if (config.experts > mostExperts || config.choices > config.experts)
    refuse(std::to_string(config.choices) + " of " + std::to_string(config.experts) +
           " experts for each token are not possible, expected at most " + std::to_string(mostExperts) + " experts");
  config.expertInner = config.isGptOss ? config.inner : count(file, "moe_intermediate_size");
  config.isNormalised = config.isGptOss || flag(file, "norm_topk_prob", false);
  config.gateAlpha = number(file, "swiglu_alpha", 1.702);
  config.gateLimit = number(file, "swiglu_limit", 7);
}

void readEnds(const json &file, Config &config) {
  if (!has(file, "eos_token_id"))
    return;
  const json &end = file["eos_token_id"];
  for (const json &token : end.is_array() ? end : json::array({end})) {
    if (!token.is_number_integer())
      refuse("'eos_token_id' is " + end.dump() + ", expected an integer or a list of them");
    config.ends.push_back(token.get<int64_t>());
  }
}

} // namespace

json readJson(const std::string &path) {
  std::ifstream stream(path);
  if (!stream)
    throw std::runtime_error("cannot open " + path);
  try {
    return json::parse(stream);
  } catch (const json::exception &error) {
    throw std::runtime_error(path + " is no JSON: " + error.what());
  }
}

Config parseConfig(const json &file) {
  if (!file.is_object() || !has(file, "architectures") || !file["architectures"].is_array() ||
      file["architectures"].empty() || !file["architectures"][0].is_string())
    refuse("'architectures' must be a list with the name of a model class");
  Config config;
  config.architecture = file["architectures"][0].get<std::string>();
  const std::string &name = config.architecture;
  if (name != "LlamaForCausalLM" && name != "Qwen3ForCausalLM" && name != "Qwen3MoeForCausalLM" &&
      name != "GptOssForCausalLM")
    refuse("architecture " + name +
           " is not supported, expected LlamaForCausalLM, Qwen3ForCausalLM, Qwen3MoeForCausalLM or GptOssForCausalLM");
  config.isGptOss = name == "GptOssForCausalLM";
  config.hasHeadNorms = name == "Qwen3ForCausalLM" || name == "Qwen3MoeForCausalLM";
  config.hasAttentionBias = flag(file, "attention_bias", config.isGptOss);
  config.vocabulary = count(file, "vocab_size");
  config.hidden = count(file, "hidden_size");
  config.heads = count(file, "num_attention_heads");
  config.keyValueHeads = count(file, "num_key_value_heads", config.heads);
  config.headSize = count(file, "head_dim", std::max<int64_t>(config.hidden / config.heads, 1));
  config.inner = count(file, "intermediate_size");
  config.positions = count(file, "max_position_embeddings");
  config.epsilon = number(file, "rms_norm_eps", 1e-6);
  config.isTied = flag(file, "tie_word_embeddings", false);
  if (config.heads % config.keyValueHeads != 0)
    refuse(std::to_string(config.heads) + " heads of queries cannot share " + std::to_string(config.keyValueHeads) +
           " heads of keys");
  if (config.headSize % 2 != 0 || config.headSize > 256)
    refuse("'head_dim' is " + std::to_string(config.headSize) + ", expected an even number up to 256");
  if (text(file, "hidden_act", "silu") != "silu" || flag(file, "mlp_bias", false))
    refuse("feed-forward layers must have silu gates and no biases");
  if (config.isGptOss || name == "Qwen3MoeForCausalLM")
    readExperts(file, config);
  readLayers(file, config);
  readRotary(file, config);
  readEnds(file, config);
  return config;
}

} // namespace decoder
