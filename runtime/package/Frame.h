// The working memory of one running call, kept by its thread for the next one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_FRAME_H
#define KPKG_PACKAGE_FRAME_H

#include "runtime/package/Restriction.h"
#include "runtime/package/Tables.h"
#include "runtime/plan/Evaluate.h"

#include <kpkg/kpkg.h>
#include <kpkg/result.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kpkg::package {

/// Grow-only, 64-byte aligned.
class AlignedBlock {
public:
  AlignedBlock() = default;
  AlignedBlock(const AlignedBlock &) = delete;
  AlignedBlock &operator=(const AlignedBlock &) = delete;
  ~AlignedBlock();
  /// Null only when there is no memory.
  std::byte *get(size_t bytes);

private:
  std::byte *memory = nullptr;
  size_t size = 0;
};

/// What the addresses of allocated memory, and of outputs that are written in place on a GPU, are multiples of; facts
/// never ask for more.
inline constexpr int64_t addressAlignment = 16;

struct Frame {
  /// The call's arguments with defaults filled in, in the C form and in the plan's.
  std::vector<kpkg_value> values;
  std::vector<plan::Argument> arguments;
  /// Data pointers of tensor arguments.
  std::vector<uint64_t> addresses;
  std::vector<int64_t> singles; ///< by argument: the entry of a list that was given as an int
  /// Set when an argument's dtype or device rules out every package: why.
  std::string foreign;
  /// Where the tensor arguments are, and the call's stream there.
  kpkg_device device = {KPKG_DEVICE_CPU, 0};
  void *stream = nullptr;

  /// Which instances the call may use; null: all.
  const Restriction *restriction = nullptr;

  std::vector<uint64_t> key;
  /// Of a call that was not seen before, while it is planned.
  plan::Resolution resolution;
  std::vector<int64_t> words;
  std::vector<std::byte *> bases;
  AlignedBlock temporaries;
  /// For outputs that cannot be written in place.
  AlignedBlock detour;

  /// Checks the number and kinds of the call's arguments against the schema and fills the fields above. `allowed` may
  /// be null.
  Status bind(const OpEntry &op, const kpkg_call &call, const Restriction *allowed);
  /// Takes the arguments as they are, for an op whose schema nobody has told.
  void bindAsGiven(const kpkg_call &call);
  /// What else decides how a call is planned: on a GPU the device and the alignment of each address.
  void appendDeviceKey();
};

/// Borrows a frame of this thread; a call inside a call gets another one.
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
