// Evaluates the level of a kernel, and the threads of its blocks, for one instance.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Checker.h"
#include "compiler/comptime/Fold.h"

namespace kpkg::compiler {

namespace {
/// The most threads of a block, and blocks of a cluster, on every GPU that has them.
constexpr int64_t maxThreads = 1024, maxCluster = 8;

/// Returns the extents that an Int or a tuple of up to three gives; nothing for other values.
std::optional<std::array<int64_t, 3>> extentsOf(const Value &value) {
  std::vector<Value> items = {value};
  if (value.isSequence())
    items = value.asSequence().items;
  std::array<int64_t, 3> extents = {1, 1, 1};
  if (items.empty() || items.size() > extents.size())
    return std::nullopt;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].isInt() || items[i].asInt() < 1 || items[i].asInt() > maxThreads)
      return std::nullopt;
    extents[i] = items[i].asInt();
  }
  if (extents[0] * extents[1] * extents[2] > maxThreads)
    return std::nullopt;
  return extents;
}
} // namespace

bool Checker::evaluateLevel(const FunctionEntity &function, const Environment &values, KernelInstance &instance) {
  const ast::Argument *level = nullptr, *threads = nullptr, *cluster = nullptr;
  const ast::Decorator *kernel = nullptr;
  for (const ast::Decorator &decorator : function.syntax->decorators) {
    if (decorator.name != "kernel")
      continue;
    kernel = &decorator;
    for (const ast::Argument &argument : decorator.arguments) {
      const std::string name = argument.name ? argument.name.text : "(by position)";
      const ast::Argument **place = name == "level"     ? &level
                                    : name == "threads" ? &threads
                                    : name == "cluster" ? &cluster
                                                        : nullptr;
      if (!place) {
        diags.report(diag::UnknownArgument, argument.range, "@kernel", name);
        return false;
      }
      *place = &argument;
    }
  }
  auto mismatch = [&](const ast::Argument &argument, const Value &value, const std::string &wanted) {
    diags.report(diag::TypeMismatch, argument.value->range, fmt::format("`{}`", argument.name.text),
                 value.isInt() || value.isString() || value.isSequence() ? value.str() : kindName(value), wanted);
    return false;
  };
  bool isOfThreads = false;
  if (level) {
    auto value = evaluator.evaluate(*level->value, values);
    if (!value)
      return false;
    if (!value->isString() || (value->asString() != "threads" && value->asString() != "tiles"))
      return mismatch(*level, *value, "\"tiles\" or \"threads\"");
    isOfThreads = value->asString() == "threads";
  }
  for (const ast::Argument *argument : {threads, cluster})
    if (argument && !isOfThreads) {
      diags.report(diag::OnlyAtThreadLevel, argument->range, argument->name.text,
                   "`@schedule` has hints for kernels of tiles");
      return false;
    }
  if (!isOfThreads)
    return true;
  if (!threads) {
    diags.report(diag::MissingArgument, kernel->range, "@kernel(level=\"threads\")", "threads");
    return false;
  }
  auto block = evaluator.evaluate(*threads->value, values);
  if (!block)
    return false;
  std::optional<std::array<int64_t, 3>> extents = extentsOf(*block);
  if (!extents)
    return mismatch(*threads, *block,
                    fmt::format("one to three positive Ints whose product is at most {}", maxThreads));
  instance.threads.extents = *extents;
  if (cluster) {
    auto blocks = evaluator.evaluate(*cluster->value, values);
    if (!blocks)
      return false;
    int64_t count = blocks->isInt() ? blocks->asInt() : 0;
    if (count < 1 || count > maxCluster || (count & (count - 1)) != 0)
      return mismatch(*cluster, *blocks, fmt::format("a power of two up to {}", maxCluster));
    instance.threads.cluster = blocks->asInt();
  }
  return true;
}

} // namespace kpkg::compiler
