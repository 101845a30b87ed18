// Makes a pass of a verifier of a kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace kpkg::kgpu {

/// A pass that changes nothing, and fails if `Verifier` finds an error. `Base` is the generated base of the pass.
template <typename Base, typename Verifier> struct VerifyingPass : Base {
  void runOnOperation() override {
    if (Verifier(this->getOperation()).run().failed())
      this->signalPassFailure();
    this->markAllAnalysesPreserved();
  }
};

} // namespace kpkg::kgpu
