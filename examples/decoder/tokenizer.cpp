// Reads tokenizer.model by SentencePiece, if the program is built with it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tokenizer.h"

#include <filesystem>
#include <stdexcept>

#ifdef DECODER_SENTENCEPIECE
#include <sentencepiece_processor.h>
#endif

namespace decoder {

#ifdef DECODER_SENTENCEPIECE
struct Tokenizer::State {
  sentencepiece::SentencePieceProcessor processor;
};
#else
struct Tokenizer::State {};
#endif

Tokenizer::~Tokenizer() = default;

Tokenizer::Tokenizer(const std::string &path) : state(std::make_unique<State>()) {
  if (!std::filesystem::exists(path))
    throw std::runtime_error(path + " does not exist. No C++ library reads tokenizer.json: give token ids with --ids");
#ifdef DECODER_SENTENCEPIECE
  if (auto status = state->processor.Load(path); !status.ok())
    throw std::runtime_error(path + " is no SentencePiece model: " + status.ToString());
#else
  throw std::runtime_error("this program is built without SentencePiece: give token ids with --ids");
#endif
}

#ifdef DECODER_SENTENCEPIECE
std::vector<int64_t> Tokenizer::encode(const std::string &text) const {
  std::vector<int> found;
  if (auto status = state->processor.Encode(text, &found); !status.ok())
    throw std::runtime_error("cannot encode the prompt: " + status.ToString());
  std::vector<int64_t> tokens(found.begin(), found.end());
  if (int first = state->processor.bos_id(); first >= 0)
    tokens.insert(tokens.begin(), first);
  return tokens;
}

std::string Tokenizer::decode(const std::vector<int64_t> &tokens) const {
  std::vector<int> known; // models may have tokens beyond those of the file
  for (int64_t token : tokens)
    if (token < state->processor.GetPieceSize())
      known.push_back(int(token));
  std::string text;
  if (auto status = state->processor.Decode(known, &text); !status.ok())
    throw std::runtime_error("cannot decode tokens: " + status.ToString());
  return text;
}
#else
std::vector<int64_t> Tokenizer::encode(const std::string &) const { return {}; }
std::string Tokenizer::decode(const std::vector<int64_t> &) const { return {}; }
#endif

} // namespace decoder
