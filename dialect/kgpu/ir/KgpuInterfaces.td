// Interfaces of the kgpu ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_KGPU_IR_KGPUINTERFACES_TD
#define KPKG_DIALECT_KGPU_IR_KGPUINTERFACES_TD

include "mlir/IR/OpBase.td"

def Kgpu_SharedAccessOpInterface : OpInterface<"SharedAccessOpInterface"> {
  let description = [{
    Describes the accesses of an op to shared memory. Allocation and the insertion of barriers rely only on this
    interface, so an op that implements it needs no change there.
  }];
  let cppNamespace = "::kpkg::kgpu";
  let methods = [
    InterfaceMethod<"Appends every access of this op to shared memory.", "void", "getSharedAccesses",
                    (ins "::llvm::SmallVectorImpl<::kpkg::kgpu::SharedMemoryAccess> &":$accesses)>
  ];
}

#endif
