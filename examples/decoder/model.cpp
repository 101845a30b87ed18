// Loads the weights of Llama, Qwen3, Qwen3-MoE and gpt-oss, and computes a step.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "model.h"

#include <cmath>
#include <stdexcept>

namespace decoder {

using kpkg::DType;
using kpkg::Tensor;

static bool isThere(const Tensor &tensor) { return tensor.dtype() != DType::None; }

Model::Model(const Ops &ops, const Config &config, Weights &weights, DType dtype, const CacheSize &size)
    : ops(ops), config(config) {
  embedding = weights.tensor("model.embed_tokens.weight", {config.vocabulary, config.hidden});
  lastNorm = weights.tensor("model.norm.weight", {config.hidden});
  head = config.isTied ? embedding : weights.tensor("lm_head.weight", {config.vocabulary, config.hidden});
  for (size_t i = 0; i < config.layers.size(); ++i) {
    std::string prefix = "model.layers." + std::to_string(i) + ".";
    Layer &layer = layers.emplace_back();
    layer.window = config.layers[i].window;
    layer.isSparse = config.layers[i].isSparse;
    layer.attentionNorm = weights.tensor(prefix + "input_layernorm.weight", {config.hidden});
    layer.feedNorm = weights.tensor(prefix + "post_attention_layernorm.weight", {config.hidden});
    loadAttention(layer, weights, prefix + "self_attn.");
    if (layer.isSparse) {
      loadExperts(layer, weights, prefix + "mlp.");
    } else {
      layer.gateUp = weights.joined(
          {{prefix + "mlp.gate_proj.weight", config.inner}, {prefix + "mlp.up_proj.weight", config.inner}},
          {config.hidden});
      layer.down = weights.tensor(prefix + "mlp.down_proj.weight", {config.hidden, config.inner});
    }
  }
  for (Layer &layer : layers) {
    layer.keys = ops.empty(dtype, {size.pages, config.keyValueHeads, size.page, config.headSize});
    layer.values = ops.empty(dtype, layer.keys.shape());
  }
  makeTables(size.context);
}

void Model::loadAttention(Layer &layer, Weights &weights, const std::string &prefix) {
  int64_t queries = config.heads * config.headSize, keys = config.keyValueHeads * config.headSize;
  auto joined = [&](const std::string &kind, const std::vector<int64_t> &rest) {
    return weights.joined(
        {{prefix + "q_proj." + kind, queries}, {prefix + "k_proj." + kind, keys}, {prefix + "v_proj." + kind, keys}},
        rest);
  };
  layer.qkv = joined("weight", {config.hidden});
  layer.projection = weights.tensor(prefix + "o_proj.weight", {config.hidden, queries});
  if (config.hasAttentionBias) {
    layer.qkvBias = joined("bias", {});
    layer.projectionBias = weights.tensor(prefix + "o_proj.bias", {config.hidden});
  }
  if (config.hasHeadNorms) {
    layer.queryNorm = weights.tensor(prefix + "q_norm.weight", {config.headSize});
    layer.keyNorm = weights.tensor(prefix + "k_norm.weight", {config.headSize});
  }
  if (config.isGptOss)
    layer.sinks = weights.tensor(prefix + "sinks", {config.heads});
}

void Model::loadExperts(Layer &layer, Weights &weights, const std::string &prefix) {
  if (config.isGptOss) {
    std::string experts = prefix + "experts.";
    if (weights.has(experts + "gate_up_proj_blocks"))
      throw std::runtime_error("experts in MXFP4 are not supported: save the checkpoint in bfloat16");
    layer.router = weights.tensor(prefix + "router.weight", {config.experts, config.hidden});
    layer.routerBias = weights.tensor(prefix + "router.bias", {config.experts});
    // Matrices lie [input, output], gates and the elements that they gate are neighbours.
    layer.gateUp =
        transposed(weights.tensor(experts + "gate_up_proj", {config.experts, config.hidden, 2 * config.expertInner}));
    layer.gateUpBias = weights.tensor(experts + "gate_up_proj_bias", {config.experts, 2 * config.expertInner});
    layer.down = transposed(weights.tensor(experts + "down_proj", {config.experts, config.expertInner, config.hidden}));
    layer.downBias = weights.tensor(experts + "down_proj_bias", {config.experts, config.hidden});
    return;
  }
  std::vector<Weights::Part> gateUp, down;
  for (int64_t i = 0; i < config.experts; ++i) {
    std::string expert = prefix + "experts." + std::to_string(i) + ".";
    gateUp.push_back({expert + "gate_proj.weight", config.expertInner});
    gateUp.push_back({expert + "up_proj.weight", config.expertInner});
    down.push_back({expert + "down_proj.weight", config.hidden});
  }
  layer.router = weights.tensor(prefix + "gate.weight", {config.experts, config.hidden});
  layer.gateUp =
      reshaped(weights.joined(gateUp, {config.hidden}), {config.experts, 2 * config.expertInner, config.hidden});
  layer.down =
      reshaped(weights.joined(down, {config.expertInner}), {config.experts, config.hidden, config.expertInner});
}

/// Makes tables of cosines and sines [context, pairs] in float32.
void Model::makeTables(int64_t context) {
  int64_t pairs = int64_t(config.frequencies.size());
  Tensor cosine = Tensor::empty(DType::Float32, {context, pairs});
  Tensor sine = Tensor::empty(DType::Float32, {context, pairs});
  for (int64_t position = 0; position < context; ++position)
    for (int64_t pair = 0; pair < pairs; ++pair) {
      float angle = float(position) * config.frequencies[size_t(pair)];
      cosine.as<float>()[position * pairs + pair] = float(std::cos(double(angle)) * config.rotaryScale);
      sine.as<float>()[position * pairs + pair] = float(std::sin(double(angle)) * config.rotaryScale);
    }
  cosines = cosine.to(ops.device, ops.stream).value();
  sines = sine.to(ops.device, ops.stream).value();
}

Tensor Model::linear(const Tensor &x, const Tensor &weight, const Tensor &bias) const {
  return isThere(bias) ? ops("linear", {x, weight, bias}) : ops("linear", {x, weight});
}

Tensor Model::attend(const Layer &layer, const Tensor &x, const Inputs &in, Phase phase) const {
  int64_t tokens = in.tokens(), size = config.headSize, heads = config.heads, others = config.keyValueHeads;
  Tensor qkv = linear(x, layer.qkv, layer.qkvBias);
  Tensor q = columns(qkv, 0, {heads, size}), k = columns(qkv, heads * size, {others, size});
  Tensor v = columns(qkv, (heads + others) * size, {others, size});
  Tensor slots = in[Inputs::Slots], positions = in[Inputs::Positions], out, lse;
  // The ops that write take caches [pages, keys of a page, heads, head size].
  Tensor keys = transposed(layer.keys), values = transposed(layer.values);
  if (phase == Phase::Prefill) {
    if (isThere(layer.queryNorm)) {
      q = ops("rms_norm", {q, layer.queryNorm}, {{"normalized_shape", {size}}, {"eps", config.epsilon}});
      k = ops("rms_norm", {k, layer.keyNorm}, {{"normalized_shape", {size}}, {"eps", config.epsilon}});
    }
    ops.all("rotary_embedding_", {q, k, cosines, sines, positions});
    ops.all("cache_write_", {k, v, keys, values, slots});
    Tensor starts = in[Inputs::Starts];
    auto found =
        ops.all("attention_varlen", {q, k, v, starts, starts}, {{"is_causal", true}, {"window", layer.window}});
    out = found[0];
    lse = Tensor(found[1].data(), DType::Float32, {tokens, heads}, {1, tokens}, q.device(), found[1].owner());
  } else {
    std::vector<Tensor> tensors = {q, k, v, cosines, sines, positions, keys, values, slots};
    if (isThere(layer.queryNorm))
      tensors.insert(tensors.end(), {layer.queryNorm, layer.keyNorm});
    ops.all("rotary_cache_", tensors, {{"eps", config.epsilon}});
    const auto &s = q.strides();
    Tensor alone(q.data(), q.dtype(), {tokens, heads, 1, size}, {s[0], s[1], s[1], s[2]}, q.device(), q.owner());
    auto found = ops.all("attention_decode", {alone, layer.keys, layer.values, in[Inputs::Lengths], in[Inputs::Table]},
                         {{"window", layer.window}});
    out = reshaped(found[0], {tokens, heads, size});
    lse = Tensor(found[1].data(), DType::Float32, {tokens, heads}, {found[1].strides()[0], found[1].strides()[1]},
                 q.device(), found[1].owner());
  }
  if (isThere(layer.sinks))
    ops.all("decoder::apply_sinks_", {lse, layer.sinks, out});
  return linear(reshaped(out, {tokens, heads * size}), layer.projection, layer.projectionBias);
}

Tensor Model::feed(const Layer &layer, const Tensor &x) const {
  if (!layer.isSparse)
    return linear(ops("silu_and_mul", {linear(x, layer.gateUp)}), layer.down);
  auto choice = ops.all("moe_routing", {linear(x, layer.router, layer.routerBias)},
                        {{"top_k", config.choices}, {"normalised", config.isNormalised}});
  if (!config.isGptOss)
    return ops("moe", {x, layer.gateUp, layer.down, choice[0], choice[1]});
  return ops("moe", {x, layer.gateUp, layer.down, choice[0], choice[1], layer.gateUpBias, layer.downBias},
             {{"activation", "clamped_swiglu"},
              {"interleaved", true},
              {"alpha", config.gateAlpha},
              {"limit", config.gateLimit}});
}

void Model::step(const Inputs &in, Phase phase, bool isFiltered) const {
  kpkg::Named epsilon = {"eps", config.epsilon};
  Tensor sum = ops("embedding", {embedding, in[Inputs::Tokens]});
  Tensor x = ops("rms_norm", {sum, layers[0].attentionNorm}, {{"normalized_shape", {config.hidden}}, epsilon});
  for (size_t i = 0; i < layers.size(); ++i) {
    auto joined = ops.all("residual_rms_norm", {attend(layers[i], x, in, phase), sum, layers[i].feedNorm}, {epsilon});
    const Tensor &next = i + 1 < layers.size() ? layers[i + 1].attentionNorm : lastNorm;
    joined = ops.all("residual_rms_norm", {feed(layers[i], joined[0]), joined[1], next}, {epsilon});
    x = joined[0], sum = joined[1];
  }
  if (phase == Phase::Prefill)
    x = ops("embedding", {x, in[Inputs::Last]}); // the rows of the last tokens
  std::vector<Tensor> arguments = {linear(x, head), in[Inputs::Temperature]};
  std::vector<kpkg::Named> draws = {{"seeds", in[Inputs::Seeds]}, {"offsets", in[Inputs::Offsets]}};
  if (isFiltered)
    arguments.insert(arguments.end(), {in[Inputs::TopK], in[Inputs::TopP]});
  ops.into("sample", arguments, {in[Inputs::Drawn], in[Inputs::LogProbs]}, draws);
}

} // namespace decoder
