// Ops of the kgpu dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_KGPU_IR_KGPUOPS_TD
#define KPKG_DIALECT_KGPU_IR_KGPUOPS_TD

include "dialect/kgpu/ir/KgpuAttributes.td"
include "dialect/kgpu/ir/KgpuEnums.td"
include "dialect/kgpu/ir/KgpuInterfaces.td"
include "dialect/kgpu/ir/KgpuTypes.td"
include "dialect/tile/ir/TileOps.td"
include "mlir/Interfaces/InferIntRangeInterface.td"

class Kgpu_Op<string mnemonic, list<Trait> traits = []> : Op<Kgpu_Dialect, mnemonic, traits>;

// An op that accesses shared memory.
class Kgpu_SharedOp<string mnemonic, list<Trait> traits = []> : Kgpu_Op<mnemonic, traits # [
    DeclareOpInterfaceMethods<Kgpu_SharedAccessOpInterface>]>;

include "dialect/kgpu/ir/LayoutOps.td"
include "dialect/kgpu/ir/SharedMemoryOps.td"
include "dialect/kgpu/ir/AsyncCopyOps.td"
include "dialect/kgpu/ir/MmaOps.td"
include "dialect/kgpu/ir/SyncOps.td"
include "dialect/kgpu/ir/ExchangeOps.td"
include "dialect/kgpu/ir/AsyncOps.td"

#endif
