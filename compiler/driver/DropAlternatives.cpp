// Drops the alternatives that a target does not need.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/DropAlternatives.h"
#include "compiler/source/Source.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include <map>

using namespace llvm;

namespace kpkg::compiler {

bool hasAlternatives(const KernelRecord &kernel) {
  return any_of(kernel.parameters, [](const KernelParameter &parameter) { return parameter.isTuned; });
}

/// Returns a key that the alternatives of an instance share.
static std::string groupOf(const Program &program, InstanceRef ref) {
  const KernelRecord &kernel = program.kernels()[ref.kernel];
  std::string text = kernel.name;
  for (auto [parameter, value] : zip(kernel.parameters, kernel.instances[ref.instance].parameters))
    if (!parameter.isTuned)
      text += "," + value.str();
  return text;
}

std::vector<bool> lastAlternatives(const Program &program, ArrayRef<InstanceRef> refs) {
  std::vector<bool> last(refs.size());
  StringSet<> seen;
  for (size_t i = refs.size(); i-- > 0;)
    last[i] = seen.insert(groupOf(program, refs[i])).second;
  return last;
}

std::vector<bool> haveOthers(const Program &program, ArrayRef<InstanceRef> refs) {
  std::map<std::string, size_t> sizes;
  for (InstanceRef ref : refs)
    ++sizes[groupOf(program, ref)];
  std::vector<bool> others;
  for (InstanceRef ref : refs)
    others.push_back(sizes[groupOf(program, ref)] > 1);
  return others;
}

static std::optional<bool> saysGeneral(const Program &program, InstanceRef ref) {
  return program.kernels()[ref.kernel].instances[ref.instance].isGeneral;
}

std::vector<bool> generalAlternatives(const Program &program, ArrayRef<InstanceRef> refs) {
  std::vector<bool> general = lastAlternatives(program, refs);
  for (auto [i, ref] : enumerate(refs))
    general[i] = saysGeneral(program, ref).value_or(general[i]);
  return general;
}

std::vector<bool> haveGeneralAlternatives(const Program &program, ArrayRef<InstanceRef> refs) {
  std::vector<bool> general = generalAlternatives(program, refs);
  StringSet<> served;
  for (auto [i, ref] : enumerate(refs))
    if (general[i])
      served.insert(groupOf(program, ref));
  std::vector<bool> have;
  for (InstanceRef ref : refs)
    have.push_back(served.contains(groupOf(program, ref)));
  return have;
}

bool hasVectors(const Program &program, InstanceRef ref) {
  return program.kernels()[ref.kernel].instances[ref.instance].hasVectors.value_or(true);
}

static bool fails(const JobResult &result, StringRef target) {
  return any_of(result.failures, [&](const auto &failure) { return failure.target == target; });
}

/// Returns the error for a kernel that has no code for a target: the kernel, its place, and the reason.
static Error refuse(const Program &program, const SourceManager &sources, InstanceRef ref, const std::string &why) {
  return make_error<KernelRefused>(sources.describe(program.kernels()[ref.kernel].range) + ": in " +
                                   title(program, ref) + ": " + why);
}

static Error excuse(const Program &program, const SourceManager &sources, ArrayRef<InstanceRef> refs,
                    MutableArrayRef<JobResult> results, ArrayRef<size_t> group) {
  for (size_t i : group)
    for (const auto &[target, why, brief] : results[i].failures) {
      StringRef name = target;
      if (all_of(group, [&](size_t other) { return fails(results[other], name); }))
        return refuse(program, sources, refs[i],
                      why +
                          (StringRef(why).contains("spills registers") ? "\nsmaller tiles need fewer registers" : ""));
      results[i].notes.push_back({VariantNote::LeftOut, target, {}, brief});
    }
  return Error::success();
}

static void dropSlow(MutableArrayRef<JobResult> results, ArrayRef<size_t> group) {
  std::map<std::pair<std::string, std::string>, bool> isFastSomewhere;
  for (size_t i : group)
    for (const PackedInstance &instance : results[i].instances)
      isFastSomewhere[{instance.target, instance.variant}] |= !instance.isSlow;
  for (size_t i : group) {
    JobResult &result = results[i];
    erase_if(result.instances, [&](const PackedInstance &instance) {
      if (!instance.isSlow || !isFastSomewhere[{instance.target, instance.variant}])
        return false;
      for (VariantNote &note : result.notes)
        if (note.kind == VariantNote::Slow && note.target == instance.target && note.variant == instance.variant)
          note.kind = VariantNote::Outperformed;
      erase_if(result.gpuObjects, [&](const PackedObject &object) { return object.section == instance.section; });
      return true;
    });
  }
}

static std::string whyLeftOut(const JobResult &result, StringRef target) {
  std::string text;
  for (const VariantNote &note : result.notes)
    if (note.target == target)
      text += (text.empty() ? "" : "; ") + note.variant + ": " + note.why;
  return text;
}

/// Checks that an alternative has the variant for any arguments. If `@tune(general=)` excludes all, launches were
/// proven to find others.
static Error checkGeneral(const Program &program, const SourceManager &sources, ArrayRef<InstanceRef> refs,
                          ArrayRef<JobResult> results, ArrayRef<size_t> group) {
  if (all_of(group, [&](size_t i) { return !saysGeneral(program, refs[i]).value_or(true); }))
    return Error::success();
  std::map<std::string, bool> isServed;
  for (size_t i : group)
    for (const PackedInstance &instance : results[i].instances)
      if (instance.launch)
        isServed[instance.target] |= instance.variant == "any";
  for (const auto &[target, served] : isServed)
    if (!served)
      return refuse(program, sources, refs[group.back()],
                    "no code for " + target +
                        " that takes any arguments: " + whyLeftOut(results[group.back()], target));
  return Error::success();
}

Error dropAlternatives(const Program &program, const SourceManager &sources, ArrayRef<InstanceRef> refs,
                       MutableArrayRef<JobResult> results) {
  std::map<std::string, std::vector<size_t>> groups;
  for (auto [i, ref] : enumerate(refs))
    groups[groupOf(program, ref)].push_back(i);
  // Proceeds in the order of instances, so that the error is always the same.
  for (auto [i, ref] : enumerate(refs)) {
    const std::vector<size_t> &group = groups[groupOf(program, ref)];
    if (group.front() != i)
      continue;
    if (Error error = excuse(program, sources, refs, results, group))
      return error;
    if (Error error = checkGeneral(program, sources, refs, results, group))
      return error;
    dropSlow(results, group);
  }
  return Error::success();
}

} // namespace kpkg::compiler
