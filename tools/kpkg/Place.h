// Selects where a command runs calls: the host or a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <kpkg/kpkg.hpp>
#include <string>

namespace kpkg::command {

struct Place {
  kpkg_device device = Cpu;
  /// Only for a GPU; the host has none.
  Stream stream;
  /// For example "cuda:0, NVIDIA H200 (sm_90, 132 multiprocessors)" or "CPU (x86-64-v3, 2 threads)".
  std::string name;
  /// Why this is the host, unless it was requested.
  std::string why;

  bool isCuda() const { return device.type == KPKG_DEVICE_CUDA; }
};

Result<Place> hostPlace();
/// Returns a GPU with a stream of its own.
Result<Place> cudaPlace(int32_t index);

/// Returns the place of `--device`: "cpu", "cuda" or "cuda:N". If empty, it is the first GPU if there is one that can
/// run the call, else the host.
Result<Place> choosePlace(const std::string &text, const Op &op, const std::vector<Named> &named);

/// Returns why the op has no code for this device and for arguments like these; empty if it has.
std::string whyNotOn(kpkg_device device, const Op &op, const std::vector<Named> &named);

/// Returns the arguments with their tensors at the place. On the host they are unchanged.
Result<std::vector<Named>> moveTo(const Place &place, const std::vector<Named> &named);
/// Returns the tensors on the host, once all queued work is done.
Result<std::vector<Tensor>> toHost(const Place &place, const std::vector<Tensor> &tensors);

} // namespace kpkg::command
