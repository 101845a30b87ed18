// Checks the invariants of a resolution, for any program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/plan/CheckResolution.h"
#include "runtime/plan/Memory.h"
#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace kpkg::plan {

namespace {

class Checker {
public:
  Checker(const Program &program, CallSignature call, const Resolution &resolution)
      : program(program), call(call), resolution(resolution) {}

  std::string run() {
    int64_t end = 0;
    for (const Buffer &buffer : resolution.buffers) {
      if (buffer.bytes < 0)
        fail("negative size");
      if (buffer.kind != Buffer::Kind::Temporary)
        continue;
      if (buffer.offset < end || buffer.offset % 64)
        fail("temporaries overlap or are not aligned");
      end = buffer.offset + buffer.bytes;
    }
    if (end > resolution.temporaryBytes)
      fail("temporaries leave their block");
    for (const Step &step : resolution.steps)
      std::visit([&](const auto &s) { check(s); }, step);
    std::set<int32_t> returned;
    for (const View &view : resolution.outputs) {
      if (view.buffer < 0)
        continue;
      check(view);
      if (resolution.buffers[static_cast<size_t>(view.buffer)].kind != Buffer::Kind::Result)
        fail("an output is no result");
      if (!returned.insert(view.buffer).second)
        fail("two outputs share a buffer");
    }
    if (resolution.outputs.size() != static_cast<size_t>(program.resultCount()))
      fail("wrong number of outputs");
    return why;
  }

private:
  void fail(std::string text) {
    if (why.empty())
      why = std::move(text);
  }

  void check(const View &view) {
    if (view.buffer < 0 || static_cast<size_t>(view.buffer) >= resolution.buffers.size())
      return fail("a view of no buffer");
    if (view.rank < 0 || view.rank > maxRank || dtypeBytes(view.dtype) == 0)
      return fail("a view without rank or dtype");
    if (view.numel() == 0)
      return;
    const Buffer &buffer = resolution.buffers[static_cast<size_t>(view.buffer)];
    int64_t least, greatest, first = 0, last = buffer.bytes / dtypeBytes(view.dtype) - 1;
    if (buffer.kind == Buffer::Kind::Argument) {
      View whole;
      std::string text;
      if (!viewOfArgument(call[static_cast<size_t>(buffer.argument)].tensor, whole, text) ||
          !offsetRange(whole, first, last))
        return fail("an argument that cannot be");
      if (whole.dtype != view.dtype)
        return fail("an argument's dtype changed");
    }
    if (!offsetRange(view, least, greatest) || least < first || greatest > last)
      fail(fmt::format("{} reaches from {} to {}, its memory from {} to {}", describeView(view), least, greatest, first,
                       last));
  }

  void check(const CopyStep &step) {
    check(step.source);
    check(step.destination);
    if (!std::ranges::equal(step.source.shapeSpan(), step.destination.shapeSpan()) ||
        step.source.dtype != step.destination.dtype)
      fail("a copy between different shapes or dtypes");
    if (step.source.buffer == step.destination.buffer)
      fail("a copy within a buffer");
    if (mayOverlapItself(step.destination))
      fail("a copy to elements that share memory");
  }

  void check(const LaunchStep &step) {
    for (int64_t extent : step.grid)
      if (extent < 1)
        fail("an empty grid");
    for (const LaunchArg &arg : step.args) {
      if (arg.kind == LaunchArg::Kind::View && arg.view.buffer >= 0)
        check(arg.view);
      if (arg.kind == LaunchArg::Kind::PassThrough &&
          (arg.integer < 0 || static_cast<size_t>(arg.integer) >= call.size() ||
           !program.arguments()[static_cast<size_t>(arg.integer)].passThrough))
        fail("a pass-through argument that is none");
      if (!arg.isMut || arg.view.buffer < 0)
        continue;
      const Buffer &buffer = resolution.buffers[static_cast<size_t>(arg.view.buffer)];
      const int32_t declared = buffer.list >= 0 ? buffer.list : buffer.argument;
      if (buffer.kind == Buffer::Kind::Argument && !program.arguments()[static_cast<size_t>(declared)].isMut)
        fail("a launch writes an argument that is not mut");
      if (mayOverlapItself(arg.view))
        fail("a launch writes elements that share memory");
    }
  }

  const Program &program;
  CallSignature call;
  const Resolution &resolution;
  std::string why;
};

} // namespace

std::string checkResolution(const Program &program, CallSignature call, const Resolution &resolution) {
  return Checker(program, call, resolution).run();
}

static TensorMeta randomTensor(RandomCall &call, std::mt19937_64 &random) {
  auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  TensorMeta meta;
  // Mostly one of those with tensors, which have the lower numbers.
  meta.dtype = static_cast<DType>(1 + below(below(16) ? int32_t(DType::Float8_e8m0fnu) : dtypeCount - 1));
  meta.rank = static_cast<int32_t>(below(8) ? 1 + below(4) : 0);
  std::vector<int64_t> &shape = call.numbers.emplace_back(), &strides = call.numbers.emplace_back();
  for (int i = 0; i < meta.rank; ++i) {
    constexpr int64_t extents[] = {0, 1, 1, 2, 3, 4, 8, 64, 1000};
    shape.push_back(extents[below(std::size(extents))]);
    strides.push_back(below(40) - 4);
  }
  if (below(2)) { // dense with permuted strides
    int64_t stride = 1;
    std::vector<size_t> order(static_cast<size_t>(meta.rank));
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    if (below(2))
      std::shuffle(order.begin(), order.end(), random);
    for (size_t i = order.size(); i-- > 0;) {
      strides[order[i]] = stride;
      stride *= std::max<int64_t>(shape[order[i]], 1);
    }
  }
  meta.shape = shape.data();
  meta.strides = below(4) ? strides.data() : nullptr;
  return meta;
}

RandomCall randomCall(const Program &program, std::mt19937_64 &random) {
  RandomCall call;
  auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  auto integer = [&] {
    constexpr int64_t values[] = {0, 1, -1, 2, 3, -2, 5, 16, 1000, INT64_MAX, INT64_MIN};
    return below(4) ? values[below(8)] : values[below(std::size(values))];
  };
  for (const Program::ArgumentInfo &info : program.arguments()) {
    Argument &argument = call.arguments.emplace_back();
    argument.kind = info.kind;
    switch (info.kind) {
    case Argument::Kind::Tensor:
      if (below(8) == 0)
        argument.kind = Argument::Kind::None;
      else
        argument.tensor = randomTensor(call, random);
      break;
    case Argument::Kind::Int:
      argument.integer = integer();
      break;
    case Argument::Kind::Bool:
      argument.integer = below(2);
      break;
    case Argument::Kind::Float:
      argument.real = static_cast<double>(integer()) / 4;
      break;
    case Argument::Kind::DType:
      argument.integer = 1 + below(dtypeCount - 1);
      break;
    case Argument::Kind::String:
      argument.string = below(2) ? "mean" : "";
      break;
    case Argument::Kind::List: {
      std::vector<int64_t> &list = call.numbers.emplace_back();
      for (int64_t n = below(5); n > 0; --n)
        list.push_back(integer());
      argument.list = list;
      break;
    }
    case Argument::Kind::TensorList:
      argument.count = static_cast<size_t>(below(4));
      break;
    case Argument::Kind::None:
      break;
    }
  }
  for (size_t k = 0; k < program.arguments().size(); ++k) {
    call.arguments[k].first = call.arguments.size();
    for (size_t n = call.arguments[k].count; n > 0; --n) {
      Argument &tensor = call.arguments.emplace_back();
      tensor.kind = Argument::Kind::Tensor;
      tensor.tensor = randomTensor(call, random);
    }
  }
  return call;
}

} // namespace kpkg::plan
