// Draws random inputs of an op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/DrawnCase.h"
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>
#include <utility>

namespace kpkg::command {

namespace {

// Replaces the standard library's distributions, which differ between platforms, so that a seed has one meaning.
class Draw {
public:
  explicit Draw(std::mt19937_64 &random) : random(random) {}
  int64_t below(int64_t count) { return int64_t(random() % uint64_t(count)); }
  bool oneIn(int64_t count) { return below(count) == 0; }
  template <size_t N> int64_t of(const std::array<int64_t, N> &values) { return values[size_t(below(N))]; }

private:
  std::mt19937_64 &random;
};

/// Shapes of tensors that may belong together.
class Shapes {
public:
  explicit Shapes(Draw &draw) : draw(draw), kind(draw.below(3)), base(size_t(1 + draw.below(4))) {
    constexpr std::array<int64_t, 12> few = {1, 2, 3, 5, 7, 16, 33, 64, 100, 128, 257, 1000};
    constexpr std::array<int64_t, 7> many = {1, 2, 3, 5, 8, 16, 33};
    for (int64_t &extent : base)
      extent = base.size() < 3 ? draw.of(few) : draw.of(many);
  }

  std::vector<int64_t> next() {
    bool isFirst = std::exchange(first, false);
    if (kind == 0 || (isFirst && kind == 1))
      return base;
    if (kind == 1) // weights of the last dimensions
      return {base.end() - draw.below(int64_t(base.size())) - 1, base.end()};
    std::vector<int64_t> shape(base.size());
    for (int64_t &extent : shape)
      extent = base[size_t(draw.below(int64_t(base.size())))];
    return shape;
  }

private:
  Draw &draw;
  int64_t kind;
  std::vector<int64_t> base;
  bool first = true;
};

/// Draws a tensor of the dtype, or sometimes of another one, as indices and masks are. `hasDType` tells whether a
/// tensor of the case has the dtype, as the last one must if no other does.
std::string drawTensor(Draw &draw, const std::vector<int64_t> &shape, DType dtype, bool isLast, bool &hasDType) {
  constexpr std::array<int64_t, 3> others = {int64_t(DType::Int64), int64_t(DType::Int32), int64_t(DType::Bool)};
  if (draw.oneIn(8) && (hasDType || !isLast))
    dtype = DType(draw.of(others));
  else
    hasDType = true;
  bool isFloat = dtypeIsFloat(dtype);
  // Consecutive integers can also serve as indices.
  const char *generator = isFloat || draw.oneIn(2) ? "randn" : "arange";
  std::string text = fmt::format("{}({}", generator, fmt::join(shape, ","));
  text += fmt::format("{}{},seed={})", shape.empty() ? "" : ",", kpkg_dtype_name(int32_t(dtype)), draw.below(1 << 20));
  return text;
}

bool isTensor(const ArgumentInfo &argument) {
  return (argument.kind == KPKG_TENSOR || argument.kind == KPKG_TENSOR_LIST) && !argument.optional &&
         !argument.has_default;
}

} // namespace

std::vector<std::string> drawInputs(const Op &op, DType dtype, const std::vector<std::string> &fixed,
                                    std::mt19937_64 &random, std::string &why) {
  Draw draw(random);
  Shapes shapes(draw);
  std::vector<std::string> inputs;
  std::vector<std::vector<int64_t>> ofLists; // most ops want lists of one length, with tensors of the same shapes
  for (const ArgumentInfo &argument : op.arguments())
    if (argument.kind == KPKG_TENSOR_LIST && ofLists.empty())
      for (int64_t count = 1 + draw.below(4); count > 0; --count)
        ofLists.push_back(shapes.next());
  bool hasDType = false;
  size_t tensors = size_t(std::ranges::count_if(op.arguments(), isTensor));
  for (const ArgumentInfo &argument : op.arguments()) {
    tensors -= isTensor(argument);
    std::string_view type = argument.type;
    bool isLeft = argument.has_default && draw.oneIn(2);
    if (isLeft || std::find(fixed.begin(), fixed.end(), argument.name) != fixed.end())
      continue;
    std::string value;
    if (argument.optional && draw.oneIn(2))
      value = "none";
    else if (argument.kind == KPKG_TENSOR)
      value = drawTensor(draw, shapes.next(), dtype, tensors == 0, hasDType);
    else if (argument.kind == KPKG_TENSOR_LIST) {
      for (const std::vector<int64_t> &shape : ofLists)
        value += (value.empty() ? "" : ",") + drawTensor(draw, shape, dtype, tensors == 0, hasDType);
      value = "[" + value + "]";
    } else if (type.starts_with("int["))
      value = fmt::format("[{}]", fmt::join(std::vector<int64_t>(size_t(1 + draw.below(3)), 1 + draw.below(3)), ","));
    else if (type.starts_with("int"))
      value = fmt::format("{}", draw.below(5) - 1);
    else if (type.starts_with("float"))
      value = fmt::format("{:.3f}", double(1 + draw.below(16)) / 8);
    else if (type.starts_with("bool"))
      value = draw.oneIn(2) ? "true" : "false";
    else if (type.starts_with("ScalarType"))
      value = kpkg_dtype_name(int32_t(dtype));
    else if (argument.has_default)
      continue;
    else {
      why = fmt::format("`{}` is {}, which cannot be drawn; give it with --input", argument.name, type);
      return {};
    }
    inputs.push_back(fmt::format("{}={}", argument.name, value));
  }
  return inputs;
}

} // namespace kpkg::command
