// Looks up the names of a module: own ones, imported ones, those of the prelude.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Module.h"
#include "compiler/check/Observer.h"
#include "compiler/comptime/Fold.h"

#include <charconv>

namespace kpkg::compiler {

/// Returns the value of `-D NAME=text`: a Bool, Int, Float or DType if the text is one, else a String.
static Value valueOfText(const std::string &text) {
  if (text == "True" || text == "False")
    return Value(text == "True");
  if (auto known = builtinConstant(text))
    return *known;
  const char *end = text.data() + text.size();
  int64_t integer = 0;
  if (auto parsed = std::from_chars(text.data(), end, integer); parsed.ec == std::errc() && parsed.ptr == end)
    return Value(integer);
  double number = 0;
  if (auto parsed = std::from_chars(text.data(), end, number); parsed.ec == std::errc() && parsed.ptr == end)
    return Value(number);
  return Value(text);
}

Meaning ModuleScope::own(const std::string &name, SourceRange range) const {
  auto found = entries.find(name);
  if (found == entries.end())
    return {};
  Entry &entry = found->second;
  switch (entry.kind) {
  case Entry::Function:
    return {Meaning::Known, Value(entry.function)};
  case Entry::Struct:
    return {Meaning::Known, Value(entry.structure)};
  case Entry::Imported:
    return entry.module ? entry.module->own(entry.importedName, range) : Meaning{Meaning::Reported, {}};
  case Entry::Module:
    context.diags.report(diag::ModuleAsValue, range, name);
    return {Meaning::Reported, {}};
  case Entry::Constant:
    break;
  }
  if (entry.state == Entry::Running) {
    context.diags.report(diag::CyclicConstant, entry.range, name);
    entry.state = Entry::Failed;
  }
  if (entry.state == Entry::Waiting) {
    entry.state = Entry::Running;
    const std::string *given = isRoot ? context.defined(name) : nullptr;
    auto value = given ? std::optional(valueOfText(*given)) : context.evaluator.evaluate(*entry.constant->value, *this);
    if (entry.state == Entry::Running)
      entry.state = value ? Entry::Done : Entry::Failed;
    if (value)
      entry.value = std::move(*value);
    if (value && context.observer)
      context.observer->typed(entry.range, *context.types.none, &entry.value);
  }
  if (entry.state == Entry::Failed)
    return {Meaning::Reported, {}};
  return {Meaning::Known, entry.value};
}

Meaning ModuleScope::lookup(const std::string &name, SourceRange range) const {
  if (entries.count(name))
    return own(name, range);
  if (name == targetName)
    return {Meaning::Known, Value(context.options.targetKind)};
  if (context.prelude && context.prelude != this)
    return context.prelude->own(name, range);
  return {};
}

Meaning ModuleScope::lookupMember(const std::string &module, const std::string &name, SourceRange range) const {
  auto found = entries.find(module);
  if (found == entries.end() || found->second.kind != Entry::Module)
    return {};
  if (!found->second.module)
    return {Meaning::Reported, {}};
  Meaning meaning = found->second.module->own(name, range);
  if (meaning.kind == Meaning::Unknown) {
    context.diags.report(diag::UnknownMember, range, module, name);
    meaning.kind = Meaning::Reported;
  }
  return meaning;
}

void ModuleScope::addNames(std::vector<std::string> &names) const {
  for (const auto &[name, entry] : entries)
    names.push_back(name);
  if (context.prelude && context.prelude != this)
    context.prelude->addNames(names);
}

SourceRange ModuleScope::declaration(const std::string &name) const {
  auto found = entries.find(name);
  return found == entries.end() ? SourceRange{} : found->second.range;
}

} // namespace kpkg::compiler
