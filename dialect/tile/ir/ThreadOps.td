// Defines the ops of kernels at thread level: ids, synchronisation, exchange within a warp, updates, copies, products.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// They have headers of their own (ThreadOps.h), which kernels of tiles do not need.
#ifndef KPKG_DIALECT_TILE_IR_THREADOPS_TD
#define KPKG_DIALECT_TILE_IR_THREADOPS_TD

include "dialect/tile/ir/TileTypes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Tile_ThreadEnum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::kpkg::tile";
}

def Tile_ThreadScope : Tile_ThreadEnum<"ThreadScope", "which threads take part", [
  I32EnumAttrCase<"Warp", 1, "warp">, I32EnumAttrCase<"Block", 2, "block">, I32EnumAttrCase<"Cluster", 3, "cluster">
]>;

def Tile_ShuffleKind : Tile_ThreadEnum<"ShuffleKind", "the lane of which a lane gets the value", [
  I32EnumAttrCase<"Idx", 0, "idx">, I32EnumAttrCase<"Up", 1, "up">,
  I32EnumAttrCase<"Down", 2, "down">, I32EnumAttrCase<"Xor", 3, "xor">
]>;

def Tile_VoteKind : Tile_ThreadEnum<"VoteKind", "what the lanes of a warp learn of their conditions", [
  I32EnumAttrCase<"Ballot", 0, "ballot">, I32EnumAttrCase<"Any", 1, "any">, I32EnumAttrCase<"All", 2, "all">
]>;

// The kind of tile.atomic.
def Tile_UpdateKind : Attr<CPred<"::llvm::isa<::kpkg::tile::AtomicKindAttr>($_self)">, "kind of an atomic update"> {
  let storageType = "::kpkg::tile::AtomicKindAttr";
  let returnType = "::kpkg::tile::AtomicKind";
  let convertFromStorage = "$_self.getValue()";
  let constBuilderCall = "::kpkg::tile::AtomicKindAttr::get($_builder.getContext(), $0)";
}

def Tile_OfThreads : NativeOpTrait<"OfThreads"> {
  let cppNamespace = "::kpkg::tile";
}

// An op for kernels with the attribute `tile.threads`, whose values belong to one thread.
class Tile_ThreadOp<string mnemonic, list<Trait> traits = []> :
    Op<Tile_Dialect, mnemonic, !listconcat(traits, [Tile_OfThreads])>;
// An op that waits for other threads, so that no access to memory moves across it.
class Tile_CollectiveOp<string mnemonic, list<Trait> traits = []> :
    Tile_ThreadOp<mnemonic, !listconcat(traits, [MemoryEffects<[MemRead, MemWrite]>])>;

def Tile_ThreadIdOp : Tile_ThreadOp<"thread_id", [Pure]> {
  let summary = "returns the number of this thread in its block, 0 <= id < threads";
  let description = [{
    ```mlir
    %thread = tile.thread_id
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_ClusterRankOp : Tile_ThreadOp<"cluster_rank", [Pure]> {
  let summary = "returns the number of this block in its cluster, 0 <= rank < cluster";
  let description = [{
    ```mlir
    %own = tile.cluster_rank
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_SharedOfRankOp : Tile_ThreadOp<"shared_of_rank", [
    Pure, TypesMatchWith<"the result has the type of the memory", "view", "result", "$_self">]> {
  let summary = "returns the same shared memory of another block of the cluster";
  let description = [{
    `view` is a whole memory of `tile.scratch`. A rank outside of the cluster is undefined behaviour of the GPU, so that
    the front end makes it one of the cluster.

    ```mlir
    %other = tile.shared_of_rank %memory, %rank : !tile.view<1xf32, mut, unit = 0, align = 16, index = 32>
    ```
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$rank);
  let results = (outs Tile_ViewType:$result);
  let assemblyFormat = "$view `,` $rank attr-dict `:` qualified(type($view))";
}

def Tile_BarrierOp : Tile_CollectiveOp<"barrier"> {
  let summary = "waits for the threads of the scope, and makes their earlier writes visible to each other";
  let description = [{
    All threads of the scope execute the same barrier.

    ```mlir
    tile.barrier block
    ```
  }];
  let arguments = (ins Tile_ThreadScope:$scope);
  let assemblyFormat = "$scope attr-dict";
}

def Tile_ShuffleOp : Tile_CollectiveOp<"shuffle", [AllTypesMatch<["value", "result"]>]> {
  let summary = "returns the value of another lane of the warp";
  let description = [{
    All lanes of the warp execute the same op. The source of `idx` is lane `by`, modulo 32. That of `up` is the lane `by`
    below, and that of `down` the lane `by` above. The number of that of `xor` differs in the bits of `by`. A lane whose
    source does not exist keeps its value.

    ```mlir
    %other = tile.shuffle down %value, %distance : f32
    ```
  }];
  let arguments = (ins Tile_ShuffleKind:$kind, Tile_Element:$value, I32:$by);
  let results = (outs Tile_Element:$result);
  let assemblyFormat = "$kind $value `,` $by attr-dict `:` type($value)";
}

def Tile_VoteOp : Tile_CollectiveOp<"vote"> {
  let summary = "combines a condition over the lanes of the warp";
  let description = [{
    All lanes of the warp execute the same op. `ballot` returns an i32 with bit i for lane i, `any` and `all` an i1.

    ```mlir
    %mask = tile.vote ballot %condition : i32
    ```
  }];
  let arguments = (ins Tile_VoteKind:$kind, I1:$condition);
  let results = (outs AnyTypeOf<[I1, I32]>:$result);
  let assemblyFormat = "$kind $condition attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_AtomicElementOp : Tile_ThreadOp<"atomic_element"> {
  let summary = "updates one element atomically";
  let description = [{
    The view has rank 0. Where it has no element, nothing happens and the old value is 0. Otherwise it is `tile.atomic` of
    one thread.

    ```mlir
    %old = tile.atomic_element add %value, %element : f32, !tile.view<0xf32, mut> -> f32
    ```
  }];
  let arguments = (ins Tile_UpdateKind:$kind, Tile_Element:$value, Arg<Tile_ViewType, "", [MemRead, MemWrite]>:$view,
                       Optional<Tile_Element>:$expected);
  let results = (outs Optional<Tile_Element>:$old);
  let assemblyFormat = [{
    custom<AtomicKind>($kind) $value `,` $view (`expected` $expected^ `:` type($expected))? attr-dict `:` type($value) `,`
    qualified(type($view)) (`->` type($old)^)?
  }];
  let hasVerifier = 1;
}

def Tile_CopyAsyncOp : Tile_ThreadOp<"copy_async", [AttrSizedOperandSegments]> {
  let summary = "starts a copy of adjacent elements to shared memory";
  let description = [{
    Element `from + i` along the last dimension of the source becomes element `to + i` of the target, for `count` elements.
    Elements outside of the source are 0, and those outside of the target are not written. The copy is complete after a
    `tile.copy_wait` of the same thread.

    ```mlir
    tile.copy_async 4 %x[%i, %j], %m[%k] : !tile.view<2xf32>, !tile.view<1xf32, mut>
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntPositive]>:$count, Arg<Tile_ViewType, "", [MemRead]>:$source,
                       Variadic<Index>:$from, Arg<Tile_ViewType, "", [MemWrite]>:$target, Variadic<Index>:$to);
  let assemblyFormat = [{
    $count $source `[` $from `]` `,` $target `[` $to `]` attr-dict `:` qualified(type($source)) `,`
    qualified(type($target))
  }];
  let hasVerifier = 1;
}

def Tile_CopyCommitOp : Tile_CollectiveOp<"copy_commit"> {
  let summary = "makes the copies of this thread since the last commit a group";
  let description = [{
    ```mlir
    tile.copy_commit
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_CopyWaitOp : Tile_CollectiveOp<"copy_wait"> {
  let summary = "waits for all but the latest `pending` groups of copies of this thread";
  let description = [{
    ```mlir
    tile.copy_wait 1
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$pending);
  let assemblyFormat = "$pending attr-dict";
}

def Tile_Factor : AnyTypeOf<[F16, BF16, F32], "f16, bf16 or f32">;

def Tile_ThreadMmaOp : Tile_CollectiveOp<"thread_mma", [AttrSizedOperandSegments]> {
  let summary = "multiplies a 16 x k matrix by a k x 8 matrix whose elements the lanes of a warp hold";
  let description = [{
    The depth k is 16 for f16 and bf16, and 8 for f32, which are read as tf32. Each lane has 8 or 4 elements of `a`, 4 or 2
    of `b` and 4 of `c`. Their order is that of the PTX instruction `mma.sync.m16n8k16` or `m16n8k8`. All lanes of the
    warp execute the same op.

    ```mlir
    %sums:4 = tile.thread_mma %a0, %a1, %a2, %a3 by %b0, %b1 plus %c0, %c1, %c2, %c3 : f32
    ```
  }];
  let arguments = (ins Variadic<Tile_Factor>:$a, Variadic<Tile_Factor>:$b, Variadic<F32>:$c);
  let results = (outs Variadic<F32>:$sums);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

#endif
