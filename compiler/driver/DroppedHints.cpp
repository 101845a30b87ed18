// Writes notes on hints and launches that GPU code does not follow.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/DroppedHints.h"
#include "compiler/driver/DropAlternatives.h"
#include "compiler/driver/VariantNotes.h"
#include "compiler/source/Source.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <set>
#include <tuple>

using namespace llvm;

namespace kpkg::compiler {

bool isForVectors(StringRef variant) { return variant.starts_with("vector") && variant != "vector64"; }

namespace {

std::string nameOf(StringRef hint) { return hint.split('=').first.str(); }

/// The contents of one line.
struct Finding {
  size_t kernel = 0;
  std::string what, why, example; ///< of the first instance
  std::set<std::vector<std::string>> instances;
  std::set<std::string> targets;
};

class Collector {
public:
  Collector(const Program &program, ArrayRef<PackedInstance> instances) : program(program) {
    for (const PackedInstance &instance : instances)
      if (instance.launch && isForVectors(instance.variant))
        haveVectors.insert(keyOf(instance));
    for (const PackedInstance &instance : instances)
      if (counts(instance))
        addHonoured(instance);
    for (const PackedInstance &instance : instances)
      if (counts(instance))
        addFindings(instance);
  }

  std::vector<Finding> findings;
  size_t instancesOf(size_t kernel) const { return all.at(kernel).size(); }

private:
  using Key = std::tuple<size_t, std::vector<std::string>, std::string>;

  static std::vector<std::string> textOf(const PackedInstance &instance) {
    std::vector<std::string> values;
    for (const Value &value : instance.parameters)
      values.push_back(value.str());
    return values;
  }
  static Key keyOf(const PackedInstance &instance) { return {instance.kernel, textOf(instance), instance.target}; }

  bool counts(const PackedInstance &instance) const {
    return instance.launch && (isForVectors(instance.variant) || !haveVectors.count(keyOf(instance)));
  }

  const KernelInstance &recordOf(const PackedInstance &instance) const {
    return *find_if(program.kernels()[instance.kernel].instances,
                    [&](const KernelInstance &one) { return one.parameters == instance.parameters; });
  }

  void addHonoured(const PackedInstance &instance) {
    all[instance.kernel].insert(textOf(instance));
    for (const tile::HintRecord &record : tile::kHints) {
      bool isDropped = any_of(instance.launch->dropped,
                              [&](const manifest::DroppedHint &hint) { return nameOf(hint.hint) == record.name; });
      if (recordOf(instance).schedule[record.hint] != 0 && !isDropped)
        honoured.insert({instance.kernel, std::string(record.name)});
    }
  }

  void addFindings(const PackedInstance &instance) {
    MapVector<StringRef, std::string> hintsOf; // by reason
    for (const manifest::DroppedHint &hint : instance.launch->dropped)
      if (hint.isForWantOfRoom || !honoured.count({instance.kernel, nameOf(hint.hint)})) {
        std::string &hints = hintsOf[hint.why];
        hints += (hints.empty() ? "" : ", ") + hint.hint;
      }
    for (const auto &[why, hints] : hintsOf)
      add(instance, "`@schedule(" + hints + ")` is dropped", why.str());
    auto refused =
        find_if(instance.launch->refused, [](const manifest::RefusedLaunch &one) { return one.hadWarpgroups; });
    if (refused != instance.launch->refused.end())
      add(instance, "no warpgroups compute its products, since ptxas refuses that (" + refused->launch + ")",
          refused->why);
  }

  void add(const PackedInstance &instance, const std::string &what, const std::string &why) {
    auto [entry, isNew] =
        numbers.try_emplace({instance.kernel, withoutNumbers(what), withoutNumbers(why)}, findings.size());
    if (isNew) {
      size_t number = &recordOf(instance) - program.kernels()[instance.kernel].instances.data();
      findings.push_back(
          {instance.kernel, what, why, title(program, {instance.kernel, number}) + " " + instance.variant, {}, {}});
    }
    findings[entry->second].instances.insert(textOf(instance));
    findings[entry->second].targets.insert(instance.target);
  }

  const Program &program;
  std::set<Key> haveVectors;
  std::map<size_t, std::set<std::vector<std::string>>> all;
  std::set<std::pair<size_t, std::string>> honoured;
  std::map<std::tuple<size_t, std::string, std::string>, size_t> numbers;
};

} // namespace

std::vector<std::string> notesOnHints(const Program &program, const SourceManager &sources,
                                      ArrayRef<PackedInstance> instances) {
  std::vector<std::string> notes;
  Collector collector(program, instances);
  for (const Finding &one : collector.findings) {
    const KernelRecord &kernel = program.kernels()[one.kernel];
    notes.push_back(formatv("{0}: kernel `{1}`, in {2} of {3} instances for {4}: {5}: {6} (in {7})",
                            sources.describe(kernel.range), kernel.name, one.instances.size(),
                            collector.instancesOf(one.kernel), join(one.targets, ", "), one.what, one.why, one.example)
                        .str());
  }
  return notes;
}

} // namespace kpkg::compiler
