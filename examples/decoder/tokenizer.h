// Declares the tokenizer of a checkpoint, by SentencePiece.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef DECODER_TOKENIZER_H
#define DECODER_TOKENIZER_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace decoder {

/// Text to tokens and back, by a file tokenizer.model.
class Tokenizer {
public:
  /// Throws std::runtime_error that says why there is no tokenizer: no file, another format, or no SentencePiece.
  explicit Tokenizer(const std::string &path);
  ~Tokenizer();

  /// Returns the tokens of a text, after the one that begins texts if the file has one.
  std::vector<int64_t> encode(const std::string &text) const;
  /// Returns the text of tokens.
  std::string decode(const std::vector<int64_t> &tokens) const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace decoder
#endif
