// Implements an op of one package: its plan, and its planned calls by signature.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/CallCache.h"
#include "runtime/package/Library.h"

#include <algorithm>

namespace kpkg::package {

/// Limit of signatures per op. A server with dynamic batch and sequence lengths needs some hundreds.
static constexpr size_t keptCalls = 4096;

PackagedOp::PackagedOp(const Library &library, const OpEntry &entry) : owner(library), description(entry) {
  static std::atomic<uint64_t> next = 1;
  number = next.fetch_add(1, std::memory_order_relaxed);
}

PackagedOp::~PackagedOp() { forgetPlannedCalls(); }

Error toError(const plan::Error &error, const OpEntry &op) {
  Error result{error.kind == plan::Error::Kind::Malformed ? KPKG_ERROR_FORMAT : KPKG_ERROR_KERNEL,
               op.name + ": " + error.message,
               op.name,
               {},
               {}};
  if (error.argument >= 0 && size_t(error.argument) < op.arguments.size())
    result.argument = op.arguments[size_t(error.argument)].name;
  return result;
}

/// Checks that the plan takes the arguments of the manifest's schema.
static std::optional<std::string> mismatch(const plan::Program &program, const OpEntry &op) {
  auto infos = program.arguments();
  if (infos.size() != op.arguments.size())
    return "takes " + std::to_string(infos.size()) + " arguments, its schema has " +
           std::to_string(op.arguments.size());
  if (program.resultCount() != int(op.results.size()))
    return "gives " + std::to_string(program.resultCount()) + " results, its schema has " +
           std::to_string(op.results.size());
  for (size_t i = 0; i < infos.size(); ++i) {
    plan::Argument::Kind expected = plan::Argument::Kind::Tensor;
    switch (op.arguments[i].kind) {
    case KPKG_INT:
      expected = plan::Argument::Kind::Int;
      break;
    case KPKG_FLOAT:
      expected = plan::Argument::Kind::Float;
      break;
    case KPKG_BOOLEAN:
      expected = plan::Argument::Kind::Bool;
      break;
    case KPKG_INT_LIST:
      expected = plan::Argument::Kind::List;
      break;
    case KPKG_DTYPE:
      expected = plan::Argument::Kind::DType;
      break;
    case KPKG_STRING:
      expected = plan::Argument::Kind::String;
      break;
    case KPKG_TENSOR_LIST:
      expected = plan::Argument::Kind::TensorList;
      break;
    default:
      break;
    }
    if (infos[i].kind != expected)
      return "takes another kind of argument '" + op.arguments[i].name + "' than its schema";
    if (infos[i].isMut && !op.arguments[i].mutates)
      return "writes argument '" + op.arguments[i].name + "', which its schema does not say";
  }
  return std::nullopt;
}

Result<const plan::Program *> PackagedOp::load(Plan &plan, const std::string &section) const {
  if (const plan::Program *program = plan.loaded.load(std::memory_order_acquire))
    return program;
  auto bytes = owner.section(section);
  if (!bytes)
    return bytes.error();
  std::lock_guard guard(lock);
  if (const plan::Program *program = plan.loaded.load(std::memory_order_relaxed))
    return program;
  plan::Error error;
  auto program = plan::Program::load({reinterpret_cast<const uint8_t *>(bytes->data()), bytes->size()}, error);
  auto refuse = [&](const std::string &why) {
    return Error{KPKG_ERROR_FORMAT,
                 "'" + owner.name() + "' is refused: section '" + section + "': " + why,
                 description.name,
                 {},
                 {}};
  };
  if (!program)
    return refuse(error.message);
  if (auto why = mismatch(*program, description))
    return refuse("the plan of " + description.name + " " + *why);
  plan.program.emplace(std::move(*program));
  plan.loaded.store(&*plan.program, std::memory_order_release);
  return &*plan.program;
}

Result<const plan::Program *> PackagedOp::program(device::PlanKind kind) const {
  if (kind == device::PlanKind::Gpu && !description.gpuPlan.empty())
    return load(gpuFull, description.gpuPlan);
  return load(full, description.plan);
}

Result<const plan::Program *> PackagedOp::shapeProgram(device::PlanKind kind) const {
  if (kind == device::PlanKind::Gpu && !description.gpuShapePlan.empty())
    return load(gpuShape, description.gpuShapePlan);
  return description.shapePlan.empty() ? program(kind) : load(shape, description.shapePlan);
}

Status PackagedOp::loadPrograms() const {
  for (device::PlanKind kind : {device::PlanKind::Host, device::PlanKind::Gpu}) {
    if (auto loaded = program(kind); !loaded)
      return loaded.error();
    if (auto loaded = shapeProgram(kind); !loaded)
      return loaded.error();
  }
  return {};
}

InstanceUse *PackagedOp::counterOf(void *op, const Instance &instance) {
  auto &self = *static_cast<PackagedOp *>(op);
  std::lock_guard guard(self.lock);
  for (InstanceUse &use : self.counters)
    if (use.instance == &instance)
      return &use;
  return &self.counters.emplace_back(&instance);
}

Result<std::shared_ptr<const PlannedCall>> PackagedOp::plan(Frame &frame, uint64_t hash, bool &made) const {
  made = false;
  {
    std::lock_guard guard(lock);
    auto [begin, end] = calls.equal_range(hash);
    for (auto found = begin; found != end; ++found)
      if (found->second->key == frame.key)
        return found->second;
  }
  made = true;
  auto program = this->program(frame.plans());
  if (!program)
    return program.error();
  auto planned = std::make_shared<PlannedCall>();
  planned->op = number;
  planned->hash = hash;
  planned->key = frame.key;
  auto processors = processorsFor(**program, frame);
  if (!processors)
    return processors.error();
  if (auto error = plan::evaluate(**program, frame.arguments, frame.resolution, *processors))
    return toError(*error, description);
  if (Status status = finishPlan(*planned, owner, description, frame, counterOf, const_cast<PackagedOp *>(this));
      !status)
    return status.error();

  std::lock_guard guard(lock);
  if (order.size() >= keptCalls) {
    auto [begin, end] = calls.equal_range(order.front()->hash);
    auto oldest = std::find_if(begin, end, [&](const auto &entry) { return entry.second == order.front(); });
    if (oldest != end)
      calls.erase(oldest);
    order.pop_front();
  }
  calls.emplace(hash, planned);
  order.push_back(planned);
  return std::shared_ptr<const PlannedCall>(std::move(planned));
}

std::vector<std::pair<const Instance *, uint64_t>> PackagedOp::uses() const {
  std::lock_guard guard(lock);
  std::vector<std::pair<const Instance *, uint64_t>> result;
  for (const InstanceUse &use : counters)
    result.emplace_back(use.instance, use.launches.load(std::memory_order_relaxed));
  return result;
}

} // namespace kpkg::package
