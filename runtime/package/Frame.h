// Declares the working memory of a running call, which its thread keeps for the next call.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_FRAME_H
#define KPKG_PACKAGE_FRAME_H

#include "runtime/package/BatchInvariance.h"
#include "runtime/package/Devices.h"
#include "runtime/package/Restriction.h"
#include "runtime/package/Tables.h"
#include "runtime/plan/Evaluate.h"

#include <kpkg/kpkg.h>
#include <kpkg/result.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kpkg::package {

/// Grow-only, 64-byte aligned.
class AlignedBlock {
public:
  AlignedBlock() = default;
  AlignedBlock(const AlignedBlock &) = delete;
  AlignedBlock &operator=(const AlignedBlock &) = delete;
  ~AlignedBlock();
  /// Null only if memory is exhausted.
  std::byte *get(size_t bytes);

private:
  std::byte *memory = nullptr;
  size_t size = 0;
};

/// The alignment of allocated memory, and of outputs that are written in place on devices with
/// Traits::plansByAlignment. Facts never require more.
inline constexpr int64_t addressAlignment = 16;

struct Frame {
  /// The call's arguments with defaults filled in, in the C format and in the plan's. The tensors of lists follow
  /// behind the arguments of the schema.
  std::vector<kpkg_value> values;
  std::vector<plan::Argument> arguments;
  /// Data pointers of tensor arguments.
  std::vector<uint64_t> addresses;
  size_t declared = 0;          ///< how many of them the schema has
  std::vector<int64_t> singles; ///< by argument: the entry of a list that was given as an int
  /// The reason, if an argument's dtype or device rules out every package.
  std::string foreign;
  /// The device of the tensor arguments, and the call's stream there.
  kpkg_device device = defaultDevice;
  device::Driver *driver = nullptr; ///< null: there is no code for such devices
  void *stream = nullptr;

  /// Who ensures that the call is batch invariant.
  BatchInvariance invariance = BatchInvariance::NotWanted;
  /// The instances that the call may use; null: all.
  const Restriction *restriction = nullptr;

  std::vector<uint64_t> key;
  /// For planning a new call.
  plan::Resolution resolution;
  std::vector<int64_t> words;
  std::vector<std::byte *> bases;
  AlignedBlock temporaries;
  /// For outputs that cannot be written in place.
  AlignedBlock detour;

  /// Checks the number and kinds of the call's arguments against the schema, and fills the fields above. `allowed` may
  /// be null.
  Status bind(const OpEntry &op, const kpkg_call &call, const Restriction *allowed);
  /// Binds a tensor, which must be on the device of `placed`, the previous tensor; it becomes `placed`.
  Status bindTensor(const OpEntry &op, size_t index, std::optional<size_t> &placed);
  /// Binds the tensors of a list, which get the indices from `next` on.
  Status bindTensorList(const OpEntry &op, size_t number, size_t &next, std::optional<size_t> &placed);
  /// Returns the argument of the schema that `values[index]` is, or the list that it is in.
  size_t declaredIndex(size_t index) const;
  /// Returns how callers know `values[index]`: "x", or "params[3]".
  std::string nameOf(const OpEntry &op, size_t index) const;
  Error argumentError(const OpEntry &op, size_t index, const std::string &what) const;
  /// Sets `device` and `driver`.
  void placeOn(kpkg_device where);
  /// Takes the arguments as they are, for an op without a known schema.
  void bindAsGiven(const kpkg_call &call);
  /// Appends the other properties that determine how a call is planned: the device, and the alignment of each address,
  /// where they matter.
  void appendDeviceKey();
  /// Returns the plans for its device.
  device::PlanKind plans() const { return driver ? driver->traits.plans : device::PlanKind::Host; }
};

/// Borrows a frame of this thread. Nested calls get another one.
class FrameLease {
public:
  FrameLease();
  FrameLease(const FrameLease &) = delete;
  FrameLease &operator=(const FrameLease &) = delete;
  ~FrameLease();
  Frame &operator*() const { return *frame; }
  Frame *operator->() const { return frame; }

private:
  Frame *frame;
};

} // namespace kpkg::package
#endif
