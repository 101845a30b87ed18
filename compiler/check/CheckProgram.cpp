// Loads and checks a whole program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Checker.h"
#include "compiler/check/Elaborator.h"
#include "compiler/check/Program.h"

#include <algorithm>
#include <functional>

namespace kpkg::compiler {

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
    function->threads = record.instances[i].threads;
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
    std::optional<DiagnosticEngine::InstanceScope> context; // says which of several ops of a function is wrong
    if (!opInfos[o].parameters.empty())
      context.emplace(diags, function->name, function->range);
    Elaborator elaborator(*this, BodyKind::Op, *function);
    if (elaborator.elaborate(*opInfos[o].function, opInfos[o].parameters, &opInfos[o]))
      opBodies[o] = std::move(function);
  }
}

size_t Checker::fillOfShadows() const {
  size_t k = 0;
  while (!isOfPrelude(k) || program.kernelRecords[k].ownName != "fill_shadow")
    ++k;
  return k;
}

void Checker::addShadowArguments() {
  size_t fill = fillOfShadows();
  for (size_t k = 0; k < kernels.size(); ++k) {
    std::vector<KernelArgument> &arguments = program.kernelRecords[k].arguments, added;
    if (k == fill)
      continue;
    for (const KernelArgument &argument : arguments)
      for (const std::string &shadow : options.shadows)
        if (argument.isView)
          added.push_back({argument.name + "." + shadow, /*isView=*/true, argument.rank, "int32", argument.isMut,
                           /*isOptional=*/true, /*mayBeNone=*/true});
    arguments.insert(arguments.end(), added.begin(), added.end());
  }
}

void Checker::check(const Program::InstanceFilter &keep) {
  for (size_t k = 0; k < kernels.size(); ++k)
    if (!isOfPrelude(k))
      checkInstances(k, keep);
  checkOps();
  if (!options.shadows.empty()) {
    noteLaunch(fillOfShadows());
    noteRequest(fillOfShadows(), 0);
    addShadowArguments();
  }
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

const std::vector<std::string> &Program::shadows() const { return checker->options.shadows; }
const KernelRecord &Program::fillOfShadows() const { return kernelRecords[checker->fillOfShadows()]; }

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
