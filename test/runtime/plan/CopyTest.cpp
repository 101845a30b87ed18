// Compares copies with views: runs steps on real memory, and in a model in which every view is a true view.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plan/Decoded.h"
#include "runtime/plan/Program.h"
#include "runtime/plan/Views.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace kpkg::plan;

namespace {

using Regs = std::vector<uint16_t>;
using Values = std::vector<int64_t>;

/// The launch function of both worlds.
///
/// Each written element depends on its old value, its position and all elements that were read. Every third element is
/// left unwritten, so that a missing copy into the temporary shows.
struct Kernel {
  static int64_t mix(int64_t a, int64_t b) {
    return static_cast<int64_t>((static_cast<uint64_t>(a) * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(b)) ^ 0x51ED27);
  }
  int64_t seed;
  void read(int64_t value) { seed = mix(seed, value); }
  bool writes(size_t place) const { return place % 3 != 1; }
  int64_t written(size_t place, int64_t old) const { return mix(mix(seed, old), static_cast<int64_t>(place)); }
};

/// In the model, a tensor is the row-major list of its elements' positions in one memory.
struct Model {
  std::vector<int64_t> shape;
  std::vector<size_t> places;
};

std::vector<size_t> indexOf(const std::vector<int64_t> &shape, size_t linear) {
  std::vector<size_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0; linear /= static_cast<size_t>(shape[i]))
    index[i] = linear % static_cast<size_t>(shape[i]);
  return index;
}

Model transposed(const Model &model, size_t a, size_t b) {
  Model result = model;
  std::swap(result.shape[a], result.shape[b]);
  for (size_t k = 0; k < result.places.size(); ++k) {
    auto index = indexOf(result.shape, k);
    std::swap(index[a], index[b]);
    size_t linear = 0;
    for (size_t i = 0; i < index.size(); ++i)
      linear = linear * static_cast<size_t>(model.shape[i]) + index[i];
    result.places[k] = model.places[linear];
  }
  return result;
}

Model withoutFirst(const Model &model, size_t dim) {
  Model result;
  result.shape = model.shape;
  --result.shape[dim];
  for (size_t k = 0; k < model.places.size(); ++k)
    if (indexOf(model.shape, k)[dim] > 0)
      result.places.push_back(model.places[k]);
  return result;
}

/// One random program, built and run in the model at once.
class Scenario {
public:
  explicit Scenario(uint64_t seed) : random(seed) {
    module.strings = {"ns::op", "x", "y", "k"};
    f.registerTypes = "tt";
    f.parameters = {{1, true}, {2, false}};
    argument(0);
    argument(1);
    for (int64_t value = -1; value <= 4; ++value)
      f.add(Opcode::const_int, Regs{number(value)}, {}, Values{value});
    f.registerTypes += "iiiiii";
    live = {0, 1};
    for (int k = 0; k < 12; ++k)
      step();
    results = {pick(), pick()};
    f.resultTypes = "tt";
    f.add(Opcode::ret, {}, results, {});
    module.functions.push_back(f);
  }

  /// Returns false if the call raises, for example because of an overlap; there is nothing to compare then.
  bool run() {
    Error error;
    auto program = Program::load(encode(module), error);
    EXPECT_TRUE(program) << error.message;
    Resolution resolution;
    if (evaluate(*program, call, resolution))
      return false;
    std::vector<std::vector<int64_t>> buffers;
    for (const Buffer &buffer : resolution.buffers)
      if (buffer.kind == Buffer::Kind::Argument)
        buffers.push_back(initial[static_cast<size_t>(buffer.argument)]);
      else
        buffers.emplace_back(static_cast<size_t>(buffer.bytes) / 4, 0);
    int64_t launches = 0;
    for (const Step &step : resolution.steps) {
      if (auto *copy = std::get_if<CopyStep>(&step)) {
        auto from = places(copy->source), to = places(copy->destination);
        for (size_t k = 0; k < from.size(); ++k)
          buffers[static_cast<size_t>(copy->destination.buffer)][to[k]] =
              buffers[static_cast<size_t>(copy->source.buffer)][from[k]];
        ++copies;
        continue;
      }
      auto &launch = std::get<LaunchStep>(step);
      Kernel kernel{launches++};
      for (const LaunchArg &arg : launch.args)
        if (!arg.isMut)
          for (size_t place : places(arg.view))
            kernel.read(buffers[static_cast<size_t>(arg.view.buffer)][place]);
      for (const LaunchArg &arg : launch.args) {
        if (!arg.isMut)
          continue;
        auto all = places(arg.view);
        for (size_t k = 0; k < all.size(); ++k)
          if (int64_t &value = buffers[static_cast<size_t>(arg.view.buffer)][all[k]]; kernel.writes(k))
            value = kernel.written(k, value);
      }
    }
    for (size_t k = 0; k < results.size(); ++k) {
      std::vector<int64_t> expected, actual;
      for (size_t place : models[results[k]].places)
        expected.push_back(memory[place]);
      for (size_t place : places(resolution.outputs[k]))
        actual.push_back(buffers[static_cast<size_t>(resolution.outputs[k].buffer)][place]);
      EXPECT_EQ(actual, expected) << describe(*program, resolution);
    }
    for (size_t b = 0; b < buffers.size(); ++b)
      if (resolution.buffers[b].argument == 0) {
        for (size_t k = 0; k < buffers[b].size(); ++k)
          EXPECT_EQ(buffers[b][k], memory[k]) << "argument x\n" << describe(*program, resolution);
      }
    return true;
  }
  int copies = 0;

private:
  size_t below(size_t n) { return random() % n; }
  uint16_t number(int64_t value) { return static_cast<uint16_t>(2 + value + 1); }

  std::vector<size_t> places(const View &view) {
    std::vector<size_t> result;
    for (int64_t k = 0; k < view.numel(); ++k) {
      auto index = indexOf({view.shapeSpan().begin(), view.shapeSpan().end()}, static_cast<size_t>(k));
      int64_t offset = view.offset;
      for (size_t i = 0; i < index.size(); ++i)
        offset += static_cast<int64_t>(index[i]) * view.strides[i];
      result.push_back(static_cast<size_t>(offset));
    }
    return result;
  }

  void argument(size_t which) {
    // Dense but permuted, so that some merges are views and some are not.
    auto &shape = shapes[which] = {static_cast<int64_t>(1 + below(3)), static_cast<int64_t>(1 + below(3)),
                                   static_cast<int64_t>(2 + below(2))};
    auto &strides = stridesOf[which];
    strides.resize(3);
    std::vector<size_t> order{0, 1, 2};
    std::shuffle(order.begin(), order.end(), random);
    int64_t stride = 1;
    for (size_t i : order) {
      strides[i] = stride;
      stride *= shape[i];
    }
    Argument value;
    value.kind = Argument::Kind::Tensor;
    value.tensor = {DType::Float32, 3, shape.data(), strides.data()};
    call.push_back(value);
    size_t first = memory.size();
    for (int64_t k = 0; k < stride; ++k) {
      memory.push_back(static_cast<int64_t>(1000 * (which + 1)) + k);
      initial[which].push_back(memory.back());
    }
    View view;
    view.rank = 3;
    std::copy(shape.begin(), shape.end(), view.shape.begin());
    std::copy(strides.begin(), strides.end(), view.strides.begin());
    Model model{shape, places(view)};
    for (size_t &place : model.places)
      place += first;
    models.push_back(model);
    models.resize(which == 0 ? 1 : 8); // registers 2 to 7 are numbers
  }

  uint16_t pick() { return live[below(live.size())]; }

  void define(Opcode op, Regs operands, Model model) {
    auto reg = static_cast<uint16_t>(f.registerTypes.size());
    f.registerTypes += 't';
    f.add(op, Regs{reg}, operands, {});
    models.resize(reg + 1u);
    models[reg] = std::move(model);
    live.push_back(reg);
  }

  void step() {
    uint16_t source = pick();
    const Model model = models[source];
    size_t rank = model.shape.size();
    switch (below(8)) {
    case 0:
      if (size_t a = below(rank), b = below(rank); true)
        define(Opcode::transpose, {source, number(static_cast<int64_t>(a)), number(static_cast<int64_t>(b))},
               transposed(model, a, b));
      break;
    case 1:
      define(Opcode::contiguous, {source}, model);
      break;
    case 2: {
      size_t dim = below(rank);
      std::vector<int64_t> shape{1, 1, 1};
      for (size_t i = 0; i < rank; ++i)
        shape[i < dim ? 0 : i == dim ? 1 : 2] *= model.shape[i];
      define(Opcode::fold, {source, number(static_cast<int64_t>(dim))}, {shape, model.places});
      break;
    }
    case 3: {
      auto list = static_cast<uint16_t>(f.registerTypes.size());
      f.registerTypes += 'l';
      f.add(Opcode::list, Regs{list}, Regs{number(-1)}, {});
      live.erase(std::remove(live.begin(), live.end(), list), live.end());
      define(Opcode::reshape, {source, list}, {{static_cast<int64_t>(model.places.size())}, model.places});
      break;
    }
    case 4: {
      size_t dim = below(rank);
      if (model.shape[dim] < 2)
        return;
      auto end = static_cast<uint16_t>(f.registerTypes.size());
      f.registerTypes += 'i';
      f.add(Opcode::const_int, Regs{end}, {}, Values{INT64_MAX});
      define(Opcode::slice, {source, number(static_cast<int64_t>(dim)), number(1), end, number(1)},
             withoutFirst(model, dim));
      break;
    }
    case 5: {
      Model fresh{model.shape, {}};
      for (size_t k = 0; k < model.places.size(); ++k) {
        fresh.places.push_back(memory.size());
        memory.push_back(0);
      }
      define(Opcode::empty_like, {source}, fresh);
      break;
    }
    default: {
      uint16_t read = pick();
      Kernel kernel{launches++};
      for (size_t place : models[read].places)
        kernel.read(memory[place]);
      for (size_t k = 0; k < model.places.size(); ++k)
        if (int64_t &value = memory[model.places[k]]; kernel.writes(k))
          value = kernel.written(k, value);
      f.add(Opcode::launch, {}, Regs{read, source}, Values{3, 0, 2, 0, 1});
    }
    }
  }

  std::mt19937_64 random;
  DecodedModule module;
  Function f;
  std::vector<int64_t> shapes[2], stridesOf[2], initial[2];
  std::vector<Argument> call;
  std::vector<int64_t> memory;
  std::vector<Model> models; ///< by register
  Regs live, results;
  int64_t launches = 0;
};

TEST(PlanCopies, BehaveAsViews) {
  int compared = 0, copies = 0;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    Scenario scenario(seed);
    compared += scenario.run();
    copies += scenario.copies;
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(compared, 2000);
  EXPECT_GT(copies, compared / 2);
}

} // namespace
