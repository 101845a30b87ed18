// Prepares the call of an op that a command line requests.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/RequestedCall.h"
#include "tools/kpkg/InputText.h"
#include "tools/kpkg/Report.h"

namespace kpkg::command {

Result<RequestedCall> RequestedCall::prepare(const CallRequest &request) {
  auto library = openPackage(request.package);
  if (!library)
    return library.error();
  auto op = library->op(request.op);
  if (!op)
    return op.error();
  auto given = parseInputs(request.inputs, request.seed);
  if (!given)
    return given.error();
  auto place = choosePlace(request.device, *op, *given);
  if (!place)
    return place.error();
  auto placed = moveTo(*place, *given);
  if (!placed)
    return placed.error();
  return RequestedCall{std::move(*library), std::move(*op), std::move(*place), std::move(*given), std::move(*placed)};
}

} // namespace kpkg::command
