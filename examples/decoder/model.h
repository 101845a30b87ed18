// Declares the model: its weights, its cache of keys and values, and a step of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef DECODER_MODEL_H
#define DECODER_MODEL_H

#include "config.h"
#include "inputs.h"
#include "weights.h"

namespace decoder {

/// Sizes of the cache that all sequences share.
struct CacheSize {
  int64_t pages;   ///< of all sequences together
  int64_t page;    ///< keys of a page
  int64_t context; ///< most tokens of a sequence
};

/// A decoder-only transformer.
class Model {
public:
  Model(const Ops &ops, const Config &config, Weights &weights, kpkg::DType dtype, const CacheSize &size);

  enum class Phase {
    Prefill, ///< whole prompts, one after the other
    Decode   ///< one token of each sequence
  };
  /// Computes the keys and values of the tokens, and draws the next token of each sequence. Queues the work on the
  /// stream. `isFiltered`: some sequences have limits by top-k or top-p.
  void step(const Inputs &in, Phase phase, bool isFiltered) const;

private:
  struct Layer {
    kpkg::Tensor attentionNorm, qkv, qkvBias, queryNorm, keyNorm, projection, projectionBias, sinks;
    kpkg::Tensor feedNorm, gateUp, down;                   // of a feed-forward layer, or of all experts
    kpkg::Tensor router, routerBias, gateUpBias, downBias; // of experts
    kpkg::Tensor keys, values;                             // [pages, heads, page, head size]
    int64_t window = 0;
    bool isSparse = false;
  };

  void loadAttention(Layer &layer, Weights &weights, const std::string &prefix);
  void loadExperts(Layer &layer, Weights &weights, const std::string &prefix);
  void makeTables(int64_t context);
  kpkg::Tensor linear(const kpkg::Tensor &x, const kpkg::Tensor &weight, const kpkg::Tensor &bias = {}) const;
  kpkg::Tensor attend(const Layer &layer, const kpkg::Tensor &x, const Inputs &in, Phase phase) const;
  kpkg::Tensor feed(const Layer &layer, const kpkg::Tensor &x) const;

  const Ops &ops;
  Config config;
  std::vector<Layer> layers;
  kpkg::Tensor embedding, lastNorm, head, cosines, sines;
};

} // namespace decoder
#endif
