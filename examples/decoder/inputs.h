// Declares what a step of the model reads beside weights and cache, and its results.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef DECODER_INPUTS_H
#define DECODER_INPUTS_H

#include "ops.h"

namespace decoder {

/// The inputs of one step: token by token, and sequence by sequence.
///
/// They lie in one block of memory, so that one copy brings them to the device. Its address stays, so that a graph
/// finds the inputs of each step.
class Inputs {
public:
  enum Field {
    Tokens,      ///< int64 [tokens]
    Positions,   ///< int64 [tokens]
    Slots,       ///< int64 [tokens]: place in the cache; -1: none
    Last,        ///< int64 [sequences]: the last token of each sequence
    Starts,      ///< int32 [sequences + 1]: the first token of each sequence, and the number of tokens
    Lengths,     ///< int32 [sequences]: keys in the cache
    Table,       ///< int32 [sequences, most pages]: pages in the order of keys
    Temperature, ///< float32 [sequences]; 0: greedy
    TopP,        ///< float32 [sequences]
    TopK,        ///< int32 [sequences]
    Seeds,       ///< int64 [sequences]
    Offsets,     ///< int64 [sequences]: the number of the draw
    Drawn,       ///< result, int64 [sequences]: tokens
    LogProbs,    ///< result, float32 [sequences]
    Count
  };

  /// All sequences are empty, and write nothing to the cache.
  Inputs(const Ops &ops, int64_t tokens, int64_t sequences, int64_t mostPages);

  template <typename T> T *host(Field field) { return reinterpret_cast<T *>(memory.as<char>() + offsets[field]); }
  /// Returns a field on the device.
  kpkg::Tensor operator[](Field field) const;
  int64_t tokens() const { return shapes[Tokens][0]; }
  int64_t sequences() const { return shapes[Last][0]; }
  /// Copies all inputs to the device.
  void upload();
  /// Waits for the step, and returns its tokens.
  const int64_t *drawn();

private:
  const Ops &ops;
  std::vector<int64_t> shapes[Count];
  int64_t offsets[Count + 1] = {};
  kpkg::Tensor memory, onDevice;
};

} // namespace decoder
#endif
