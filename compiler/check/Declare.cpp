// Declares the kernels, ops and tests of a program by their decorators.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Checker.h"
#include "compiler/check/Decorators.h"
#include "compiler/diag/ForeignNames.h"
#include "compiler/diag/NearestName.h"

#include <map>
#include <set>

namespace kpkg::compiler {

/// Reports an unknown decorator, and suggests one with a similar name.
static void reportUnknownDecorator(DiagnosticEngine &diags, const ast::Decorator &decorator,
                                   const std::vector<std::string> &known) {
  DiagnosticBuilder report = diags.report(diag::UnknownDecorator, decorator.nameRange, decorator.name);
  report.note(diag::KnownDecorators, {});
  std::string meant = isForeignKernelDecorator(decorator.name) ? "kernel" : nearestName(decorator.name, known);
  for (const std::string &one : known)
    if (meant.empty() && decorator.name.find(one) != std::string::npos)
      meant = one;
  if (!meant.empty())
    report.fix(decorator.nameRange, meant);
}

void Checker::declareFunction(FunctionEntity &function) {
  /// Maps decorators of later language versions to advice for the current one.
  static const std::map<std::string, std::string> later = {
      {"target", "write kernels that suit every target"},
  };
  static const std::set<std::string> known(std::begin(decoratorNames), std::end(decoratorNames));
  bool isKernel = false;
  const ast::Decorator *op = nullptr;
  for (const ast::Decorator &decorator : function.syntax->decorators) {
    if (auto found = later.find(decorator.name); found != later.end())
      diags.report(diag::NotSupportedYet, decorator.range, "`@" + decorator.name + "`", found->second);
    else if (!known.count(decorator.name))
      reportUnknownDecorator(diags, decorator, {known.begin(), known.end()});
    isKernel |= decorator.name == "kernel";
    if (decorator.name == "register.op" || decorator.name == "register.reference" ||
        decorator.name == "register.backward" || decorator.name == "register.test") {
      if (op)
        diags.report(diag::UnknownDecorator, decorator.nameRange, decorator.name + "` beside `@" + op->name);
      op = &decorator;
    }
  }
  for (const ast::Decorator &decorator : function.syntax->decorators)
    if ((decorator.name == "tune" && !isKernel) ||
        (decorator.name == "register.torch" &&
         (!op || op->name == "register.reference" || op->name == "register.test")))
      diags.report(diag::UnknownDecorator, decorator.nameRange, decorator.name);
  if (isKernel && op)
    diags.report(diag::KernelAndOp, op->range, function.name());
  else if (isKernel)
    declareKernel(function);
  else if (op && op->name == "register.test")
    testFunctions.emplace_back(&function, op);
  else if (op)
    declareOps(function, *op,
               op->name == "register.op"          ? OpUse::Public
               : op->name == "register.reference" ? OpUse::Reference
                                                  : OpUse::Backward);
}

void Checker::declare() {
  if (!diags.hasErrors())
    checkDefines();
  bool isRecursive = false;
  for (ModuleScope *module : loadOrder)
    for (const StructEntity &structure : module->structs)
      isRecursive |= !declareStruct(structure);
  if (isRecursive) // such a struct has no type
    return;
  nameKernels();
  for (ModuleScope *module : loadOrder)
    for (FunctionEntity &function : module->functions)
      declareFunction(function);
  linkReferences();
  linkBackwards();
  declareTests();
  for (ModuleScope *module : loadOrder) {
    for (const auto &[name, entry] : module->entries)
      if (entry.kind == ModuleScope::Entry::Constant)
        module->own(name, entry.range);
    for (const ast::StmtPtr &stmt : module->tree->body)
      if (auto *assertion = stmt->as<ast::ComptimeAssertStmt>()) {
        auto holds = evaluator.evaluate(*assertion->condition, *module);
        if (holds && holds->isBool() && !holds->asBool()) {
          auto message = assertion->message ? evaluator.evaluate(*assertion->message, *module) : std::nullopt;
          diags.report(diag::AssertFailed, assertion->condition->range,
                       message && message->isString() ? message->asString() : "");
        }
      }
  }
}

} // namespace kpkg::compiler
