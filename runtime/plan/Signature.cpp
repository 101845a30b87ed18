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
    case Argument::Kind::TensorList: // its tensors follow behind the arguments
      head(argument.count);
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

namespace {
/// The bytes that a tensor argument may reach.
struct Reach {
  int64_t begin, end;
  uint32_t index;       ///< among the arguments of the call
  uint32_t declared;    ///< in the schema
  int32_t element = -1; ///< in a list, or -1
  bool isMut;
};
} // namespace

static std::string nameOf(const Program &program, const Reach &reach) {
  std::string_view name = program.arguments()[reach.declared].name;
  return reach.element < 0 ? std::string(name) : fmt::format("{}[{}]", name, reach.element);
}

/// Sets begin and end. An argument whose addresses do not fit 64 bits reaches all of them.
static void setBytes(const View &view, uint64_t address, Reach &reach) {
  int64_t size = dtypeBytes(view.dtype), least = 0, greatest = -1;
  if (view.numel() > 0 && !offsetRange(view, least, greatest))
    greatest = INT64_MAX;
  auto base = static_cast<int64_t>(address);
  int64_t from, to;
  if (__builtin_mul_overflow(least, size, &from) || __builtin_add_overflow(from, base, &reach.begin) ||
      __builtin_add_overflow(greatest, 1, &to) || __builtin_mul_overflow(to, size, &to) ||
      __builtin_add_overflow(to, base, &reach.end)) {
    reach.begin = INT64_MIN;
    reach.end = INT64_MAX;
  }
}

std::optional<Error> checkAliases(const Program &program, CallSignature call, std::span<const uint64_t> addresses) {
  if (!program.hasMutArguments())
    return std::nullopt;
  auto infos = program.arguments();
  size_t declared = std::min({infos.size(), call.size(), addresses.size()});
  auto error = [&](const Reach &reach, const std::string &message) {
    return Error{Error::Kind::Argument, fmt::format("argument `{}`{}", nameOf(program, reach), message),
                 std::string(program.name()), static_cast<int32_t>(reach.declared)};
  };
  static thread_local std::vector<Reach> reaches;
  reaches.clear();
  std::string why;
  for (size_t k = 0; k < declared; ++k) {
    bool isList = call[k].kind == Argument::Kind::TensorList;
    size_t count = isList ? call[k].count : call[k].kind == Argument::Kind::Tensor;
    for (size_t e = 0; e < count; ++e) {
      size_t index = isList ? call[k].first + e : k;
      Reach reach{0,
                  0,
                  static_cast<uint32_t>(index),
                  static_cast<uint32_t>(k),
                  isList ? static_cast<int32_t>(e) : -1,
                  infos[k].isMut};
      View view;
      if (!viewOfArgument(call[index].tensor, view, why))
        return error(reach, ": " + why);
      if (reach.isMut && mayOverlapItself(view))
        return error(reach, fmt::format(" is written, but its elements share memory: shape {}, strides {}",
                                        describeShape(view.shapeSpan()), describeShape(view.stridesSpan())));
      setBytes(view, addresses[index], reach);
      reaches.push_back(reach);
    }
  }
  // Compares only arguments whose bytes may meet, because lists may have thousands of tensors. Of all conflicts, the
  // first one in the order of arguments is reported.
  std::ranges::sort(reaches, {}, &Reach::begin);
  const Reach *written = nullptr, *other = nullptr;
  for (size_t i = 0; i < reaches.size(); ++i)
    for (size_t j = i + 1; j < reaches.size() && reaches[j].begin < reaches[i].end; ++j) {
      const Reach *a = &reaches[i], *b = &reaches[j];
      if (!a->isMut && !b->isMut)
        continue;
      if (!a->isMut || (b->isMut && b->index < a->index))
        std::swap(a, b);
      View first, second;
      viewOfArgument(call[a->index].tensor, first, why);
      viewOfArgument(call[b->index].tensor, second, why);
      auto distance = static_cast<int64_t>(addresses[b->index] - addresses[a->index]);
      bool isFirst = !written || std::pair(a->index, b->index) < std::pair(written->index, other->index);
      if (isFirst && mayOverlap(first, second, distance))
        written = a, other = b;
    }
  if (!written)
    return std::nullopt;
  return error(*written, fmt::format(" is written and shares memory with argument `{}`", nameOf(program, *other)));
}

} // namespace kpkg::plan
