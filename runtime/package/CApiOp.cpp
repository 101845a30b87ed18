// Implements the C ABI of schemas, calls, explanations and counters of ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/CApi.h"
#include "runtime/package/Profile.h"
#include "runtime/plan/Decoded.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

using namespace kpkg;
using namespace kpkg::package;

static kpkg_status giveString(std::string text, kpkg_string **out) {
  *out = new kpkg_string{std::move(text)};
  return KPKG_OK;
}

kpkg_status kpkg_op_describe(const kpkg_op *op, kpkg_op_info *info) {
  return guarded([&] {
    if (!op || !info)
      return nullPointer("op or info");
    const OpEntry &entry = op->entry();
    kpkg_op_info value = {sizeof value,
                          entry.name.c_str(),
                          entry.schema.c_str(),
                          entry.doc.c_str(),
                          entry.reference.c_str(),
                          entry.plan.c_str(),
                          entry.shapePlan.c_str(),
                          int32_t(entry.arguments.size()),
                          int32_t(entry.results.size()),
                          entry.backward ? entry.backward->op.c_str() : "",
                          entry.torchText.c_str()};
    return giveStruct(value, info);
  });
}

kpkg_status kpkg_op_argument(const kpkg_op *op, int32_t index, kpkg_argument_info *info) {
  return guarded([&] {
    if (!op || !info)
      return nullPointer("op or info");
    const OpEntry &entry = op->entry();
    if (index < 0 || size_t(index) >= entry.arguments.size())
      return fail(Error{KPKG_ERROR_USE, entry.name + " has no argument " + std::to_string(index), entry.name, {}, {}});
    const OpArgument &argument = entry.arguments[size_t(index)];
    kpkg_argument_info value = {sizeof value,
                                argument.name.c_str(),
                                argument.type.c_str(),
                                argument.kind,
                                argument.optional,
                                argument.mutates,
                                argument.defaultValue.kind != KPKG_DEFAULT,
                                argument.defaultValue};
    return giveStruct(value, info);
  });
}

kpkg_status kpkg_op_result_type(const kpkg_op *op, int32_t index, const char **type) {
  return guarded([&] {
    if (!op || !type)
      return nullPointer("op or type");
    const OpEntry &entry = op->entry();
    if (index < 0 || size_t(index) >= entry.results.size())
      return fail(Error{KPKG_ERROR_USE, entry.name + " has no result " + std::to_string(index), entry.name, {}, {}});
    *type = entry.results[size_t(index)].c_str();
    return KPKG_OK;
  });
}

kpkg_status kpkg_op_plan_json(const kpkg_op *op, int32_t which, kpkg_string **json) {
  return guarded([&] {
    if (!op || !json)
      return nullPointer("op or json");
    const PackagedOp *packaged = op->first();
    if (!packaged)
      return fail(noPackage(op->entry()));
    device::PlanKind kind = which & KPKG_PLAN_ON_GPU ? device::PlanKind::Gpu : device::PlanKind::Host;
    auto program = which & KPKG_PLAN_SHAPES ? packaged->shapeProgram(kind) : packaged->program(kind);
    if (!program)
      return fail(program.error());
    return giveString(plan::dumpJson((*program)->decoded()), json);
  });
}

/// The size of the struct's first version. Later versions only add fields at its end.
static constexpr size_t firstCallSize = offsetof(kpkg_call, precision);

/// Returns `call` with defaults for fields that its caller does not know.
static kpkg_call completed(const kpkg_call &call) {
  kpkg_call complete = {};
  std::memcpy(&complete, &call, std::min(call.struct_size, sizeof complete));
  return complete;
}

static kpkg_status withCall(const kpkg_op *op, kpkg_call *call, Status (CallableOp::*entry)(kpkg_call &) const) {
  return guarded([&] {
    if (!op || !call)
      return nullPointer("op or call");
    if (call->struct_size < firstCallSize)
      return fail(Error{KPKG_ERROR_USE, "kpkg_call.struct_size is too small", {}, {}, {}});
    kpkg_call complete = completed(*call);
    return fail((op->*entry)(complete));
  });
}

kpkg_status kpkg_op_call(const kpkg_op *op, kpkg_call *call) { return withCall(op, call, &CallableOp::call); }
kpkg_status kpkg_op_call_packaged(const kpkg_op *op, kpkg_call *call) {
  return withCall(op, call, &CallableOp::callPackaged);
}
kpkg_status kpkg_op_infer(const kpkg_op *op, kpkg_call *call) { return withCall(op, call, &CallableOp::infer); }

kpkg_status kpkg_op_explain(const kpkg_op *op, const kpkg_call *call, kpkg_text_format format, kpkg_string **text) {
  return guarded([&] {
    if (!op || !call || !text)
      return nullPointer("op, call or text");
    if (call->struct_size < firstCallSize)
      return fail(Error{KPKG_ERROR_USE, "kpkg_call.struct_size is too small", {}, {}, {}});
    auto explained = explainCall(*op, completed(*call), format);
    return explained ? giveString(std::move(*explained), text) : fail(explained.error());
  });
}

kpkg_status kpkg_op_resolve(const kpkg_op *op, const kpkg_call *call, const char *target, kpkg_string **json) {
  return guarded([&] {
    if (!op || !call || !target || !json)
      return nullPointer("op, call, target or json");
    if (call->struct_size < firstCallSize)
      return fail(Error{KPKG_ERROR_USE, "kpkg_call.struct_size is too small", {}, {}, {}});
    auto resolved = resolveCall(*op, completed(*call), target);
    return resolved ? giveString(std::move(*resolved), json) : fail(resolved.error());
  });
}

kpkg_status kpkg_op_get_stats(const kpkg_op *op, kpkg_op_stats *stats) {
  return guarded([&] { return op && stats ? giveStruct(op->stats(), stats) : nullPointer("op or stats"); });
}

kpkg_status kpkg_op_kernel_info(const kpkg_op *op, kpkg_string **json) {
  return guarded([&] { return op && json ? giveString(describeUse(*op), json) : nullPointer("op or json"); });
}

kpkg_status kpkg_op_count_fallback(const kpkg_op *op, const char *reason) {
  return guarded([&] { return op && reason ? fail(op->countFallback(reason)) : nullPointer("op or reason"); });
}

kpkg_status kpkg_profile_start(uint32_t flags) {
  return guarded([&] {
    if (uint32_t unknown = flags & ~uint32_t(KPKG_PROFILE_RANGES | KPKG_PROFILE_EVENTS))
      return fail(
          Error{KPKG_ERROR_USE, "kpkg_profile_start does not know the flags " + std::to_string(unknown), {}, {}, {}});
    return fail(startProfile(flags & KPKG_PROFILE_RANGES, flags & KPKG_PROFILE_EVENTS));
  });
}

kpkg_status kpkg_profile_stop(kpkg_string **json) {
  return guarded([&] { return json ? giveString(stopProfile(), json) : nullPointer("json"); });
}
