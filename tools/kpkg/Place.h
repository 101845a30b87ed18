// Where a command runs calls: the host or a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <kpkg/kpkg.hpp>
#include <string>

namespace kpkg::command {

struct Place {
  kpkg_device device = Cpu;
  /// Of a GPU; the host has none.
  Stream stream;
  /// "cuda:0, NVIDIA H200 (sm_90, 132 multiprocessors)" or "CPU (x86-64-v3, 2 threads)"
  std::string name;
  /// Why this is the host, where nobody asked for it.
  std::string why;

  bool isCuda() const { return device.type == KPKG_DEVICE_CUDA; }
};

Result<Place> hostPlace();
/// With a stream of its own.
Result<Place> cudaPlace(int32_t index);

/// What `--device` says: "cpu", "cuda" or "cuda:N". Empty: the first GPU when there is one and the call can run there,
/// else the host.
Result<Place> choosePlace(const std::string &text, const Op &op, const std::vector<Named> &named);

/// Empty when the op has code for this device and for arguments like these; else the reason.
std::string whyNotOn(kpkg_device device, const Op &op, const std::vector<Named> &named);

/// The same arguments with their tensors there; on the host they are those given.
Result<std::vector<Named>> moveTo(const Place &place, const std::vector<Named> &named);
/// On the host, once all that is queued is done.
Result<std::vector<Tensor>> toHost(const Place &place, const std::vector<Tensor> &tensors);

} // namespace kpkg::command
