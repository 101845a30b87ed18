// Enums of the kgpu dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_KGPU_IR_KGPUENUMS_TD
#define KPKG_DIALECT_KGPU_IR_KGPUENUMS_TD

include "mlir/IR/EnumAttr.td"

def Kgpu_RingKind : I32EnumAttr<"RingKind", "who fills the slots of a ring", [
  I32EnumAttrCase<"Copied", 0, "copied">, I32EnumAttrCase<"Cluster", 1, "cluster">,
  I32EnumAttrCase<"Shared", 2, "shared">, I32EnumAttrCase<"Channel", 3, "channel">,
  I32EnumAttrCase<"Published", 4, "published">
]> {
  let cppNamespace = "::kpkg::kgpu";
}

#endif
