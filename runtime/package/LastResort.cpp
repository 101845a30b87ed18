// Runs a packaged reference as the last resort for calls that no instance and no fallback can run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/CallableOp.h"
#include "runtime/package/LastError.h"
#include "runtime/package/Library.h"

#include <algorithm>
#include <array>

namespace kpkg::package {

/// Returns the reference of an op; null if there is none, or if it takes other arguments than the op.
static const PackagedOp *referenceOf(const PackagedOp &op) {
  if (op.entry().reference.empty())
    return nullptr;
  for (const auto &other : op.library().ops())
    if (other->entry().name == op.entry().reference)
      return haveOneSignature(other->entry(), op.entry()) ? other.get() : nullptr;
  return nullptr;
}

std::vector<const PackagedOp *> CallableOp::references() const {
  std::vector<const PackagedOp *> found;
  for (const PackagedOp *candidate : packagedOps())
    if (const PackagedOp *reference = referenceOf(*candidate))
      found.push_back(reference);
  return found;
}

Status CallableOp::runReference(const Error &reason, Frame &frame, kpkg_call &call) const {
  Error error = reason;
  frame.restriction = nullptr; // restrictions are for the op's instances
  if (!frame.foreign.empty())
    return error;
  for (const PackagedOp *reference : references()) {
    auto planned = planFor(*reference, frame);
    if (!planned)
      return planned.error();
    if ((*planned)->refusal) {
      error.message += "; its reference: " + (*planned)->refusal->message;
      continue;
    }
    noteFallback(effectivePolicy(), "its last fallback, the reference '" + reference->entry().name + "', which is slow",
                 reason.message);
    counters.references.fetch_add(1, std::memory_order_relaxed);
    return executeReference(*reference, **planned, frame, call);
  }
  return error;
}

static bool haveOneLayout(const kpkg_result &a, const kpkg_result &b) {
  for (int32_t d = 0; d < a.rank; ++d)
    if (a.shape[d] > 1 && a.strides[d] != b.strides[d])
      return false;
  return true;
}

static bool isNew(const kpkg_result &result) {
  return result.kind == KPKG_TENSOR && result.source == KPKG_FROM_ALLOCATION;
}

/// Returns the results that the op itself would produce for the call.
static Result<std::vector<PlannedResult>> promised(const PackagedOp &op, const Frame &frame) {
  auto program = op.shapeProgram(frame.plans());
  if (!program)
    return program.error();
  plan::Resolution resolution;
  if (auto error = plan::evaluate(**program, frame.arguments, resolution))
    return Error{KPKG_ERROR_KERNEL, op.entry().name + ": " + error->message, op.entry().name, {}, {}};
  return describeResults(resolution, frame.device);
}

namespace {
/// Results of a call with other strides than its implementation would choose. They are passed as outputs.
struct Relaid {
  std::vector<kpkg_tensor> tensors;
  std::vector<const kpkg_tensor *> outputs;
  std::vector<kpkg_result> results;

  /// Allocates memory for each new result without memory of the caller.
  Status allocate(const std::vector<PlannedResult> &wanted, const OpEntry &op, const kpkg_call &call) {
    tensors.resize(wanted.size());
    outputs.assign(wanted.size(), nullptr);
    int32_t allocations = 0;
    for (const PlannedResult &next : wanted)
      results.push_back(next.result);
    for (size_t i = 0; i < wanted.size(); ++i) {
      kpkg_result &result = results[i];
      if (call.outputs && call.outputs[i]) {
        outputs[i] = call.outputs[i];
        continue;
      }
      if (!isNew(result))
        continue;
      if (!call.allocate)
        return Error{KPKG_ERROR_USE, op.name + ": the call has neither an allocator nor an output", op.name, {}, {}};
      kpkg_allocation asked = {sizeof asked,
                               allocations,
                               wanted[i].rank,
                               result.dtype,
                               result.device,
                               wanted[i].shape.data(),
                               wanted[i].strides.data(),
                               size_t(wanted[i].bytes)};
      void *data = nullptr;
      if (kpkg_status status = call.allocate(call.allocate_context, &asked, &data); status != KPKG_OK) {
        Error error = lastError();
        return error.status == status ? error : Error{status, "the allocator of the caller failed", {}, {}, {}};
      }
      result.index = allocations++;
      result.data = static_cast<std::byte *>(data) + plan::dtypeBytes(plan::DType(result.dtype), result.offset);
      tensors[i] = {result.data, result.shape, result.strides, result.rank, result.dtype, result.device};
      outputs[i] = &tensors[i];
    }
    return {};
  }
};
} // namespace

Status CallableOp::executeReference(const PackagedOp &reference, const PlannedCall &planned, Frame &frame,
                                    kpkg_call &call) const {
  auto program = reference.program(frame.plans());
  if (!program)
    return program.error();
  if ((*program)->hasMutArguments())
    if (auto error = plan::checkAliases(**program, frame.arguments, frame.addresses))
      return Error{KPKG_ERROR_KERNEL, entry().name + ": " + error->message, entry().name, {}, {}};
  auto wanted = promised(*first(), frame);
  if (!wanted)
    return wanted.error();
  bool relays = false;
  for (size_t i = 0; i < planned.results.size(); ++i) {
    const kpkg_result &made = planned.results[i].result, &expected = (*wanted)[i].result;
    if (made.kind != expected.kind || made.dtype != expected.dtype || made.rank != expected.rank ||
        !std::equal(made.shape, made.shape + made.rank, expected.shape))
      return Error{KPKG_ERROR_KERNEL,
                   entry().name + ": result " + std::to_string(i) + " of its reference has another shape or dtype",
                   entry().name,
                   {},
                   {}};
    relays |= isNew(made) && isNew(expected) && !haveOneLayout(made, expected);
  }
  kpkg_call inner = call;
  Relaid relaid;
  if (relays) {
    if (Status status = relaid.allocate(*wanted, entry(), call); !status)
      return status;
    inner.outputs = relaid.outputs.data();
  }
  CallCosts costs;
  Status status = execute(planned, reference.entry(), frame, inner, costs);
  counters.launches.fetch_add(planned.launches, std::memory_order_relaxed);
  counters.copies.fetch_add(costs.copies, std::memory_order_relaxed);
  counters.copiedBytes.fetch_add(costs.copiedBytes, std::memory_order_relaxed);
  for (size_t i = 0; relays && status && i < relaid.results.size(); ++i)
    if (relaid.outputs[i] == &relaid.tensors[i])
      call.results[i] = relaid.results[i];
  return status;
}

} // namespace kpkg::package
