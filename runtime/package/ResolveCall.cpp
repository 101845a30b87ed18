// Resolves a call for a target that this process does not run, for a framework that does: `kpkg.jax` on TPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/CallableOp.h"
#include "runtime/package/Choice.h"
#include "runtime/package/Devices.h"
#include "runtime/package/Library.h"
#include "runtime/package/PlannedCall.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace kpkg::package {

using nlohmann::json;
using plan::LaunchArg;

static json describe(const plan::View &view) {
  if (view.buffer < 0)
    return nullptr;
  return {{"buffer", view.buffer},
          {"dtype", plan::dtypeName(view.dtype)},
          {"offset", view.offset},
          {"shape", view.shapeSpan()},
          {"strides", view.stridesSpan()}};
}

/// Writes a float exactly, with infinities and NaN, which JSON lacks.
static std::string hexadecimal(double value) {
  std::array<char, 64> digits = {};
  std::snprintf(digits.data(), digits.size(), "%a", value);
  return digits.data();
}

static json describe(const LaunchArg &argument) {
  switch (argument.kind) {
  case LaunchArg::Kind::View:
    return {{"view", describe(argument.view)}, {"mut", argument.isMut}};
  case LaunchArg::Kind::Int:
  case LaunchArg::Kind::Bool:
    return {{"int", argument.integer}};
  case LaunchArg::Kind::Float:
    return {{"float", hexadecimal(argument.real)}};
  case LaunchArg::Kind::PassThrough:
    return {{"argument", argument.integer}};
  }
  return nullptr;
}

static json describe(const plan::Buffer &buffer) {
  if (buffer.kind == plan::Buffer::Kind::Argument)
    return {{"argument", buffer.argument}};
  return {{"bytes", buffer.bytes}};
}

static Result<json> resolvePackage(const PackagedOp &op, std::string_view target, const Frame &frame) {
  auto program = op.program(device::PlanKind::Host);
  if (!program)
    return program.error();
  plan::Resolution resolution;
  if (auto refused = plan::evaluate(**program, frame.arguments, resolution))
    return toError(*refused, op.entry());
  auto device = findDevice(defaultDevice);
  if (!device)
    return device.error();
  std::vector<int64_t> alignments = alignmentsOf(resolution, frame);
  json record = {{"buffers", json::array()}, {"steps", json::array()}, {"outputs", json::array()}};
  for (const plan::Buffer &buffer : resolution.buffers)
    record["buffers"].push_back(describe(buffer));
  for (const plan::Step &step : resolution.steps) {
    if (const auto *copy = std::get_if<plan::CopyStep>(&step)) {
      record["steps"].push_back({{"from", describe(copy->source)}, {"to", describe(copy->destination)}});
      continue;
    }
    const auto &launch = std::get<plan::LaunchStep>(step);
    auto chosen = chooseInstance({op.library().tables(), launch, op.entry().name, **device, alignments,
                                  frame.restriction, frame.invariance, nullptr, target});
    if (!chosen)
      return chosen.error();
    json arguments = json::array();
    for (const LaunchArg &argument : launch.args)
      arguments.push_back(describe(argument));
    record["steps"].push_back({{"kernel", launch.kernel},
                               {"section", (*chosen)->section},
                               {"grid", launch.persistent ? json() : json(launch.grid)},
                               {"arguments", std::move(arguments)}});
  }
  for (const plan::View &view : resolution.outputs)
    record["outputs"].push_back(describe(view));
  return record;
}

Result<std::string> resolveCall(const CallableOp &op, const kpkg_call &call, std::string_view target) {
  const PackagedOp *packaged = op.first();
  if (!packaged)
    return noPackage(op.entry());
  FrameLease frame;
  if (Status status = frame->bind(op.entry(), call, op.currentRestriction()); !status)
    return status.error();
  auto record = resolvePackage(*packaged, target, *frame);
  return record ? Result<std::string>(record->dump()) : record.error();
}

} // namespace kpkg::package
