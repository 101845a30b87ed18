// Loads and checks a whole program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Program.h"
#include "compiler/check/Checker.h"
#include "compiler/check/Decorators.h"
#include "compiler/check/Elaborator.h"
#include "compiler/check/ReadBack.h"
#include "compiler/diag/ForeignNames.h"
#include "compiler/diag/NearestName.h"

#include <algorithm>
#include <functional>
#include <map>

namespace kpkg::compiler {

Checker::Checker(Program &program, const ProgramOptions &options, SourceManager &sources, DiagnosticEngine &diags)
    : program(program), options(options), sources(sources), diags(diags), evaluator(diags, [&] {
        ComptimeLimits limits;
        limits.steps = options.maxComptimeSteps;
        return limits;
      }()) {}

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
    if (decorator.name == "kernel" && !decorator.arguments.empty())
      diags.report(diag::TooManyArguments, decorator.arguments.front().range, "@kernel", 0);
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
    declareOp(function, *op,
              op->name == "register.op"          ? OpUse::Public
              : op->name == "register.reference" ? OpUse::Reference
                                                 : OpUse::Backward);
}

void Checker::declare() {
  if (!diags.hasErrors())
    checkDefines();
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

bool Checker::isOfPrelude(size_t kernel) const { return kernels[kernel].function->module == prelude; }

void Checker::checkInstances(size_t kernel, const Program::InstanceFilter &keep) {
  const KernelRecord &record = program.kernelRecords[kernel];
  for (size_t i = 0; i < record.instances.size(); ++i) {
    if (kernelChecked[kernel][i] || (keep && !keep(record, record.instances[i])) ||
        (isOfPrelude(kernel) && !requestedInstances.count({kernel, i})))
      continue;
    kernelChecked[kernel][i] = true;
    std::string description = record.name;
    for (size_t p = 0; p < record.parameters.size(); ++p)
      description += (p ? ", " : "[") + record.parameters[p].name + "=" + record.instances[i].parameters[p].str();
    if (!record.parameters.empty())
      description += "]";
    DiagnosticEngine::InstanceScope context(diags, description, record.range);
    auto function = std::make_unique<hir::Function>();
    function->name = record.instances[i].symbol;
    function->range = record.range;
    Elaborator elaborator(*this, BodyKind::Kernel, *function);
    if (elaborator.elaborate(*kernels[kernel].function, record.instances[i].parameters))
      kernelBodies[kernel][i] = std::move(function);
  }
}

void Checker::checkOps() {
  for (size_t o = 0; o < opInfos.size(); ++o) {
    if (opBodies[o] || opInfos[o].isWrong || opInfos[o].isChecked)
      continue;
    opInfos[o].isChecked = true;
    auto function = std::make_unique<hir::Function>();
    function->name = program.opRecords[o].name;
    function->range = program.opRecords[o].range;
    Elaborator elaborator(*this, BodyKind::Op, *function);
    if (elaborator.elaborate(*opInfos[o].function, {}))
      opBodies[o] = std::move(function);
  }
}

void Checker::check(const Program::InstanceFilter &keep) {
  for (size_t k = 0; k < kernels.size(); ++k)
    if (!isOfPrelude(k))
      checkInstances(k, keep);
  checkOps();
  for (size_t k = 0; k < kernels.size(); ++k) // the ops have told what they request
    if (isOfPrelude(k))
      checkInstances(k, keep);
  findRecursiveOps();
}

void Checker::findRecursiveOps() {
  enum class State : uint8_t { Unseen, Active, Done };
  std::vector<State> states(opInfos.size(), State::Unseen);
  std::function<void(size_t)> visit = [&](size_t op) {
    states[op] = State::Active;
    for (const auto &[callee, range] : opCalls[op])
      if (states[callee] == State::Active)
        diags.report(diag::RecursiveOp, range, program.opRecords[callee].name);
      else if (states[callee] == State::Unseen)
        visit(callee);
    states[op] = State::Done;
  };
  for (size_t op = 0; op < opInfos.size(); ++op)
    if (states[op] == State::Unseen)
      visit(op);
}

bool Elaborator::elaborate(const FunctionEntity &entity, const std::vector<Value> &comptimeArguments) {
  uint32_t errorsBefore = diags.errorCount();
  opName = function.name;
  if (opName.size() > 10 && opName.ends_with("_reference"))
    opName.resize(opName.size() - 10);
  block = &function.body;
  BodyScope names(*entity.module);
  for (size_t i = 0; i < comptimeArguments.size(); ++i) {
    Binding binding;
    binding.operand = constant(comptimeArguments[i], entity.syntax->comptimeParameters[i].range);
    names.declare(entity.syntax->comptimeParameters[i].name.text, std::move(binding));
  }
  std::vector<Operand> arguments;
  for (size_t i = 0; i < entity.syntax->parameters.size(); ++i) {
    const ast::Parameter &parameter = entity.syntax->parameters[i];
    const Type *type = kind == BodyKind::Op ? checker.opInfo(entity.index).argumentTypes[i]
                                            : checker.resolveType(*parameter.type, names, parameter.isMut).exact;
    function.parameters.push_back({parameter.name.text, type, parameter.isMut, parameter.range});
    arguments.push_back(runTime(emit(Kind::Parameter, type, parameter.name.range, {}, {static_cast<int64_t>(i)})));
  }
  Operand value = inlineCall(entity, comptimeArguments, std::move(arguments), entity.syntax->signatureRange);
  if (diags.errorCount() != errorsBefore)
    return false;
  if (kind == BodyKind::Op)
    function.results = checker.opInfo(entity.index).resultTypes;
  if (value.isError()) // every path raises, so that no value is returned
    return kind == BodyKind::Op;
  std::vector<Node *> results;
  if (kind == BodyKind::Op) {
    std::vector<Operand> items = {value};
    if (value.isTuple())
      items = value.items;
    else if (value.constant && value.type->kind == TypeKind::Tuple) { // only None is a constant result
      items.clear();
      for (const Value &item : value.constant->asSequence().items)
        items.push_back(constant(item, value.range));
    }
    for (size_t i = 0; i < function.results.size(); ++i)
      results.push_back(convert(items[i], function.results[i], "the result"));
  }
  emit(Kind::Return, types.none, entity.syntax->range, std::move(results));
  if (kind == BodyKind::Kernel)
    checkReadBack(function, diags);
  return diags.errorCount() == errorsBefore;
}

Program::Program() = default;
Program::~Program() = default;

std::unique_ptr<Program> Program::load(const std::vector<std::string> &paths, const ProgramOptions &options,
                                       SourceManager &sources, DiagnosticEngine &diags) {
  return Checker::load(paths, options, sources, diags, nullptr);
}

std::unique_ptr<Program> Checker::load(const std::vector<std::string> &paths, const ProgramOptions &options,
                                       SourceManager &sources, DiagnosticEngine &diags, Observer *observer) {
  std::unique_ptr<Program> program(new Program());
  program->checker = std::make_unique<Checker>(*program, options, sources, diags);
  program->checker->observer = observer;
  for (const std::string &path : paths)
    program->checker->loadRoot(path);
  program->checker->declare();
  return program;
}

std::unique_ptr<Program> Program::loadSources(const std::vector<const SourceFile *> &files,
                                              const ProgramOptions &options, SourceManager &sources,
                                              DiagnosticEngine &diags) {
  std::unique_ptr<Program> program(new Program());
  program->checker = std::make_unique<Checker>(*program, options, sources, diags);
  for (const SourceFile *file : files)
    program->checker->loadRoot(*file);
  program->checker->declare();
  return program;
}

void Program::check(const InstanceFilter &keep) { checker->check(keep); }

std::vector<IdleLaunch> Program::idleLaunches() const {
  std::vector<IdleLaunch> idle;
  for (const auto &[stmt, known] : checker->idleLaunches)
    if (!checker->usedLaunches.count(stmt))
      idle.push_back({stmt->range, known.first, known.second});
  std::sort(idle.begin(), idle.end(), [](const IdleLaunch &a, const IdleLaunch &b) {
    return std::pair(a.range.file, a.range.begin) < std::pair(b.range.file, b.range.begin);
  });
  return idle;
}

const hir::Function *Program::kernel(size_t kernelIndex, size_t instanceIndex) const {
  return checker->kernelBodies[kernelIndex][instanceIndex].get();
}

const hir::Function *Program::op(size_t opIndex) const { return checker->opBodies[opIndex].get(); }

} // namespace kpkg::compiler
