// Runs ops that have an argument `batch_invariant`, and checks that a row's results do not depend on the other rows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/verify/BatchCheck.h"
#include "tools/kpkg/CheckedCall.h"
#include "tools/kpkg/Report.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace kpkg::command::verify {

namespace {

constexpr int64_t others[] = {1, 7, 64, 300};

bool hasRows(const Tensor &tensor, int64_t rows) {
  return tensor.dtype() != DType::None && !tensor.shape().empty() && tensor.shape()[0] == rows &&
         dtypeBits(tensor.dtype()) % 8 == 0;
}

/// Returns a dense tensor of these rows of a dense host tensor.
Tensor takeRows(const Tensor &from, const std::vector<int64_t> &rows) {
  std::vector<int64_t> shape = from.shape();
  int64_t bytes = int64_t(dtypeBits(from.dtype())) / 8;
  for (size_t i = 1; i < shape.size(); ++i)
    bytes *= shape[i];
  shape[0] = int64_t(rows.size());
  Tensor taken = Tensor::empty(from.dtype(), shape);
  for (size_t i = 0; i < rows.size(); ++i)
    std::memcpy(static_cast<char *>(taken.data()) + int64_t(i) * bytes,
                static_cast<const char *>(from.data()) + rows[i] * bytes, size_t(bytes));
  return taken;
}

/// A call, and which of its arguments have rows.
struct Batch {
  std::vector<Named> named;
  std::vector<size_t> arguments;
  int64_t rows = 0;

  std::vector<Named> with(const std::vector<int64_t> &taken) const {
    std::vector<Named> result = named;
    for (size_t i : arguments)
      result[i].second = Value(takeRows(named[i].second.asTensor(), taken));
    return result;
  }
};

/// Returns whether all results have `count` rows, and otherwise the shapes of `before`.
bool grewTo(int64_t count, const std::vector<Tensor> &results, const std::vector<Tensor> &before) {
  return std::equal(results.begin(), results.end(), before.begin(), before.end(),
                    [&](const Tensor &a, const Tensor &b) {
                      return hasRows(a, count) && a.shape().size() == b.shape().size() &&
                             std::equal(a.shape().begin() + 1, a.shape().end(), b.shape().begin() + 1);
                    });
}

/// Finds the fewest arguments whose rows are those of all results. The batch has no rows if there are none.
Batch findRows(const Op &op, std::vector<Named> named) {
  Batch batch = {std::move(named), {}, 0};
  std::vector<size_t> tensors;
  int64_t rows = 0;
  for (size_t i = 0; i < batch.named.size() && tensors.size() < 8; ++i) {
    const Tensor &tensor = batch.named[i].second.asTensor();
    if (tensors.empty() && tensor.dtype() != DType::None && !tensor.shape().empty())
      rows = tensor.shape()[0];
    if (rows > 0 && hasRows(tensor, rows))
      tensors.push_back(i);
  }
  auto before = op.infer({}, batch.named);
  if (tensors.empty() || !before || before->empty())
    return batch;
  const int64_t count = 2 * rows + 1; // no extent of the call by chance
  std::vector<int64_t> taken(size_t(count), 0);
  for (size_t set = 1; set < size_t(1) << tensors.size(); set += 2) {
    batch.arguments.clear();
    for (size_t i = 0; i < tensors.size(); ++i)
      if (set >> i & 1)
        batch.arguments.push_back(tensors[i]);
    auto grown = op.infer({}, batch.with(taken));
    if (grown && grewTo(count, *grown, *before)) {
      batch.rows = rows;
      return batch;
    }
  }
  return batch;
}

/// Returns `row` in the middle of `count` other rows, and sets its place.
std::vector<int64_t> among(int64_t row, int64_t count, const Batch &batch, int64_t &place) {
  std::vector<int64_t> rows;
  place = count / 2;
  for (int64_t i = 0; i <= count; ++i)
    rows.push_back(i == place ? row : (row + 1 + i) % batch.rows);
  return rows;
}

std::vector<Tensor> rowOf(const std::vector<Tensor> &results, int64_t row) {
  std::vector<Tensor> taken;
  for (const Tensor &result : results)
    taken.push_back(takeRows(result, {row}));
  return taken;
}

} // namespace

Status BatchCheck::run(const Op &op, const Op &reference, const Place &place, const TestedCall &call) {
  bool isChoice = std::ranges::any_of(op.arguments(), [](const ArgumentInfo &argument) {
    return std::string_view(argument.name) == "batch_invariant" && argument.kind == KPKG_BOOLEAN;
  });
  auto named = call.make();
  if (!named)
    return named.error();
  if (!isChoice)
    return {};
  std::erase_if(*named, [](const Named &argument) { return argument.first == "batch_invariant"; });
  named->emplace_back("batch_invariant", true);
  Batch batch = findRows(op, std::move(*named));
  if (batch.rows == 0)
    return {};
  Record &record = records[op.name()];
  auto host = hostPlace();
  if (!host)
    return host.error();
  for (int64_t row : {int64_t(0), batch.rows - 1}) {
    auto alone = outcome(op, batch.with({row}), place);
    auto expected = outcome(reference, batch.with({row}), *host);
    if (!alone || !expected)
      return {}; // refused, which is no wrong result
    bool isCounted = false;
    for (int64_t count : others) {
      int64_t at = 0;
      std::vector<Named> given = batch.with(among(row, count, batch, at));
      if (!isCounted) {
        auto formula = outcome(reference, given, *host);
        if (!formula || !firstDisagreement(rowOf(*formula, at), *expected, 0).empty())
          return {};
        isCounted = true;
        ++record.rows;
      }
      auto together = outcome(op, given, place);
      std::vector<Tensor> taken = together ? rowOf(*together, at) : std::vector<Tensor>{};
      bool isSame = std::equal(taken.begin(), taken.end(), alone->begin(), alone->end(), sameBits);
      if (!isSame && record.wrong.empty()) {
        record.wrong = together ? fmt::format("row {} has other bits among {} others than alone", row, count)
                                : printableLines(together.error().message);
        record.lines = call.lines;
      }
    }
  }
  return {};
}

bool BatchCheck::print() const {
  bool isGood = true;
  for (const auto &[op, record] : records) {
    isGood &= record.wrong.empty();
    if (!record.wrong.empty()) {
      fmt::print("WRONG      {}: it is said to be batch invariant, and {}\n", op, record.wrong);
      for (const std::string &line : record.lines)
        fmt::print("           {}\n", printableLines(line));
    } else if (record.rows > 0) {
      fmt::print("ok         {}: batch invariant, {} rows alone and among 1, 7, 64 and 300 others\n", op, record.rows);
    } else {
      fmt::print(
          "unchecked  {}: whether it is batch invariant, since no drawn call has rows; give inputs with --input\n", op);
    }
  }
  return isGood;
}

} // namespace kpkg::command::verify
