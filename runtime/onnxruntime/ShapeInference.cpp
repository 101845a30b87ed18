// Implements the inference of dtypes and shapes for the graphs of ONNX Runtime.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/onnxruntime/ShapeInference.h"
#include "runtime/onnxruntime/Arguments.h"
#include "runtime/onnxruntime/ElementTypes.h"
#include "runtime/onnxruntime/Errors.h"

#include <algorithm>
#include <atomic>
#include <memory>

namespace kpkg::ort {
namespace {

/// An extent of an input: a number, or a symbol by its place in `Inputs::symbols`.
struct Extent {
  int64_t number;
  size_t symbol;
};

struct Input {
  bool isThere = false;
  int32_t dtype = KPKG_NO_DTYPE;
  std::vector<Extent> extents;
};

struct Inputs {
  std::vector<Input> all;
  std::vector<std::string> symbols; ///< "" for an extent that has neither a number nor a name
};

/// The numbers that stand for the symbols: one for each, or one for all of them.
struct Probe {
  int64_t factor;
  bool isOneForAll;

  int64_t at(size_t symbol) const {
    constexpr int64_t primes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
    return factor * (isOneForAll ? 2 : primes[symbol % std::size(primes)] + 40 * int64_t(symbol / std::size(primes)));
  }
};
/// From small to large, since extents of results may depend on thresholds.
constexpr int64_t factors[] = {1, 64, 4096};

using Results = std::vector<kpkg_result>;

class Inference {
public:
  Inference(const Api &api, const Op &op, ShapeContext *context)
      : api(api), op(op), context(context), arguments(op, ShapeAttributes(api, context)) {}

  void run() {
    if (!readInputs())
      return;
    // Symbols that must be equal, as those of a sum's operands, have one number.
    for (bool isOneForAll : {false, true}) {
      std::vector<std::pair<Probe, Results>> probed;
      for (int64_t factor : factors)
        if (auto results = infer({factor, isOneForAll}))
          probed.emplace_back(Probe{factor, isOneForAll}, std::move(*results));
      size_t enough = inputs.symbols.empty() ? 1 : 2;
      if (probed.size() < enough)
        continue;
      for (size_t i = 0; i < probed[0].second.size(); ++i)
        setOutput(i, probed);
      return;
    }
  }

private:
  /// Returns false if the rank or the dtype of an input is unknown.
  bool readInputs() {
    size_t count = 0;
    check(api, api.getInferInputCount(context, &count));
    for (size_t i = 0; i < count; ++i) {
      Input &input = inputs.all.emplace_back();
      ShapeInfo *info = nullptr;
      if (!succeeds(api, api.getInferInput(context, i, &info)))
        continue;
      ElementType type = ElementType::Undefined;
      check(api, api.getElementType(info, &type));
      if (type == ElementType::Undefined)
        continue; // an optional input that the node leaves out
      input.isThere = true;
      input.dtype = int32_t(dtypeOf(type));
      if (input.dtype == KPKG_NO_DTYPE || !api.hasShape(info))
        return false;
      readExtents(info, input);
    }
    return true;
  }

  void readExtents(const ShapeInfo *info, Input &input) {
    size_t rank = 0;
    check(api, api.getDimensionsCount(info, &rank));
    std::vector<int64_t> numbers(rank);
    std::vector<const char *> names(rank);
    check(api, api.getDimensions(info, numbers.data(), rank));
    check(api, api.getSymbolicDimensions(info, names.data(), rank));
    for (size_t d = 0; d < rank; ++d) {
      Extent extent = {numbers[d], 0};
      if (extent.number < 0)
        extent.symbol = symbol(names[d]);
      input.extents.push_back(extent);
    }
  }

  size_t symbol(const std::string &name) {
    auto known = name.empty() ? inputs.symbols.end() : std::find(inputs.symbols.begin(), inputs.symbols.end(), name);
    if (known == inputs.symbols.end())
      known = inputs.symbols.insert(known, name);
    return size_t(known - inputs.symbols.begin());
  }

  /// Returns the results for the numbers of the probe, or nothing if the op refuses the inputs.
  std::optional<Results> infer(Probe probe) const {
    std::vector<kpkg_value> values = arguments.values();
    std::vector<std::vector<int64_t>> shapes;
    std::vector<kpkg_tensor> tensors(inputs.all.size());
    shapes.reserve(inputs.all.size());
    size_t next = 0;
    for (size_t i = 0; i < values.size() && next < inputs.all.size(); ++i) {
      if (op.arguments()[i].kind != KPKG_TENSOR)
        continue;
      const Input &input = inputs.all[next];
      std::vector<int64_t> &shape = shapes.emplace_back();
      for (Extent extent : input.extents)
        shape.push_back(extent.number < 0 ? probe.at(extent.symbol) : extent.number);
      kpkg_tensor &tensor = tensors[next++];
      tensor = {nullptr, shape.data(), nullptr, int32_t(shape.size()), input.dtype, {KPKG_DEVICE_CPU, 0}};
      if (!input.isThere)
        continue;
      values[i].kind = KPKG_TENSOR;
      values[i].as.tensor = &tensor;
    }
    Results results(size_t(op.info().result_count));
    kpkg_call call = {};
    call.struct_size = sizeof call;
    call.arguments = values.data();
    call.argument_count = int32_t(values.size());
    call.results = results.data();
    call.result_capacity = int32_t(results.size());
    return kpkg_op_infer(op.get(), &call) == KPKG_OK ? std::optional(results) : std::nullopt;
  }

  void setOutput(size_t index, const std::vector<std::pair<Probe, Results>> &probed) const {
    const kpkg_result &first = probed[0].second[index];
    ElementType type = elementTypeOf(DType(first.dtype));
    if (first.kind != KPKG_TENSOR || type == ElementType::Undefined)
      return;
    for (const auto &[probe, results] : probed)
      if (results[index].rank != first.rank)
        return;
    std::vector<int64_t> numbers;
    std::vector<std::string> names;
    for (int32_t d = 0; d < first.rank; ++d) {
      auto isConstant = [&](const auto &one) { return one.second[index].shape[d] == first.shape[d]; };
      bool isNumber = std::all_of(probed.begin(), probed.end(), isConstant);
      numbers.push_back(isNumber ? first.shape[d] : -1);
      names.push_back(isNumber ? std::string() : nameOf(index, d, probed));
    }
    std::vector<const char *> pointers;
    for (const std::string &name : names)
      pointers.push_back(name.c_str());
    ShapeInfo *made = nullptr;
    check(api, api.createShapeInfo(&made));
    std::unique_ptr<ShapeInfo, void (*)(ShapeInfo *)> info(made, api.releaseShapeInfo);
    check(api, api.setElementType(made, type));
    check(api, api.setDimensions(made, numbers.data(), numbers.size()));
    check(api, api.setSymbolicDimensions(made, pointers.data(), pointers.size()));
    succeeds(api, api.setInferOutput(context, index, made)); // fails for a result that the node leaves out
  }

  std::string nameOf(size_t index, int32_t d, const std::vector<std::pair<Probe, Results>> &probed) const {
    for (size_t s = 0; s < inputs.symbols.size(); ++s) {
      auto follows = [&](const auto &one) { return one.second[index].shape[d] == one.first.at(s); };
      if (!inputs.symbols[s].empty() && !probed[0].first.isOneForAll &&
          std::all_of(probed.begin(), probed.end(), follows))
        return inputs.symbols[s];
    }
    // ONNX Runtime takes extents of one name for equal.
    static std::atomic<uint64_t> next = 0;
    return "kpkg_extent_" + std::to_string(next++);
  }

  const Api &api;
  const Op &op;
  ShapeContext *context;
  Arguments arguments;
  Inputs inputs;
};

} // namespace

void inferShapes(const Api &api, const Op &op, ShapeContext *context) { Inference(api, op, context).run(); }

} // namespace kpkg::ort
