// Computes properties of a call without its plan: the cache key, and whether written memory is shared.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plan/Memory.h"
#include "runtime/plan/Program.h"
#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace kpkg::plan {

static void appendTensor(const TensorMeta &meta, std::vector<uint64_t> &key) {
  int32_t rank = meta.rank < 0 || meta.rank > maxRank ? 0 : meta.rank;
  for (int i = 0; i < rank; ++i)
    key.push_back(static_cast<uint64_t>(meta.shape[i]));
  if (meta.strides) {
    for (int i = 0; i < rank; ++i)
      key.push_back(static_cast<uint64_t>(meta.strides[i]));
    return;
  }
  // Appends dense strides in full, so that a call has the same key with and without them.
  size_t first = key.size();
  key.resize(first + static_cast<size_t>(rank));
  uint64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    key[first + static_cast<size_t>(i)] = stride;
    stride *= meta.shape[i] > 1 ? static_cast<uint64_t>(meta.shape[i]) : 1;
  }
}

void appendKey(const Program &program, CallSignature call, std::vector<uint64_t> &key) {
  auto infos = program.arguments();
  for (size_t k = 0; k < call.size(); ++k) {
    const Argument &argument = call[k];
    // Kind, dtype and the number of following words make the encoding prefix-free.
    auto head = [&](uint64_t count) {
      key.push_back(static_cast<uint64_t>(argument.kind) | static_cast<uint64_t>(argument.tensor.dtype) << 8 |
                    count << 16);
    };
    bool passes = k < infos.size() && infos[k].passThrough && argument.kind == infos[k].kind;
    switch (argument.kind) {
    case Argument::Kind::None:
      head(0);
      break;
    case Argument::Kind::Tensor:
      head(static_cast<uint32_t>(argument.tensor.rank));
      appendTensor(argument.tensor, key);
      break;
    case Argument::Kind::Int:
    case Argument::Kind::Bool:
    case Argument::Kind::DType:
      head(!passes);
      if (!passes)
        key.push_back(static_cast<uint64_t>(argument.integer));
      break;
    case Argument::Kind::Float:
      head(!passes);
      if (!passes)
        key.push_back(std::bit_cast<uint64_t>(argument.real));
      break;
    case Argument::Kind::List:
      head(argument.list.size());
      for (int64_t entry : argument.list)
        key.push_back(static_cast<uint64_t>(entry));
      break;
    case Argument::Kind::String:
      head(argument.string.size());
      for (size_t i = 0; i < argument.string.size(); i += 8) {
        uint64_t word = 0;
        for (size_t b = i; b < i + 8 && b < argument.string.size(); ++b)
          word |= static_cast<uint64_t>(static_cast<unsigned char>(argument.string[b])) << (8 * (b - i));
        key.push_back(word);
      }
      break;
    }
  }
}

std::optional<Error> checkAliases(const Program &program, CallSignature call, std::span<const uint64_t> addresses) {
  if (!program.hasMutArguments())
    return std::nullopt;
  auto infos = program.arguments();
  size_t count = std::min({infos.size(), call.size(), addresses.size()});
  auto error = [&](size_t k, std::string message) {
    return Error{Error::Kind::Argument, std::move(message), std::string(program.name()), static_cast<int32_t>(k)};
  };
  std::string why;
  for (size_t k = 0; k < count; ++k) {
    View written;
    if (!infos[k].isMut || call[k].kind != Argument::Kind::Tensor)
      continue;
    if (!viewOfArgument(call[k].tensor, written, why))
      return error(k, fmt::format("argument `{}`: {}", infos[k].name, why));
    if (mayOverlapItself(written))
      return error(k, fmt::format("argument `{}` is written, but its elements share memory: shape {}, strides {}",
                                  infos[k].name, describeShape(written.shapeSpan()),
                                  describeShape(written.stridesSpan())));
    for (size_t other = 0; other < count; ++other) {
      View read;
      if (other == k || call[other].kind != Argument::Kind::Tensor || (infos[other].isMut && other < k))
        continue;
      if (!viewOfArgument(call[other].tensor, read, why))
        return error(other, fmt::format("argument `{}`: {}", infos[other].name, why));
      if (mayOverlap(written, read, static_cast<int64_t>(addresses[other] - addresses[k])))
        return error(k, fmt::format("argument `{}` is written and shares memory with argument `{}`", infos[k].name,
                                    infos[other].name));
    }
  }
  return std::nullopt;
}

} // namespace kpkg::plan
