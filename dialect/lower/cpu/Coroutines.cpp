// Turns functions that wait into coroutines, and adds the function that runs the threads of a cluster.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: ...; llvm.call @kpkg.suspend(); ...; llvm.return %handle
// After:  ...; %s = llvm.intr.coro.suspend ...; llvm.switch %s [0: ^next, 1: ^end] ^end
//         ^end: llvm.intr.coro.end; llvm.return %handle
#include "dialect/lower/cpu/Coroutines.h"
#include "dialect/lower/cpu/LowerCpu.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace kpkg::lower::cpu {

/// Runs the threads of a cluster until all have ended, or until those that are left wait for threads that will not
/// come. Returns 0, or the number of the place where a thread is left. A thread's word in `sites` is 0 if it has ended.
/// Else it is the number of the place where it waits, and in bits 24 and 25 the scope: 1 warp, 2 block, 3 cluster.
/// Threads go on when all threads of the scope wait at one place. The phase of a warp counts how often it went
/// on.
static constexpr llvm::StringLiteral driver = R"mlir(
llvm.func internal @kpkg.run_threads(%body: !llvm.ptr, %context: !llvm.ptr, %frames: !llvm.ptr, %bytes: i64,
                                     %threads: i64, %block: i64, %sites: !llvm.ptr, %phases: !llvm.ptr) -> i32
    attributes {passthrough = ["noinline"]} {
  %false = arith.constant false
  %true = arith.constant true
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %c4 = arith.constant 4 : i64
  %lanes = arith.constant 32 : i64
  %lane_mask = arith.constant 31 : i64
  %shift = arith.constant 24 : i32
  %number = arith.constant 16777215 : i32
  %ended = arith.constant 0 : i32
  scf.for %t = %c0 to %threads step %lanes : i64 {
    %warp = arith.divui %t, %lanes : i64
    %at = llvm.getelementptr %phases[%warp] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    llvm.store %c0, %at : i64, !llvm.ptr
  }
  scf.for %t = %c0 to %threads step %c1 : i64 {
    %offset = arith.muli %t, %bytes : i64
    %frame = llvm.getelementptr %frames[%offset] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %handle = llvm.call %body(%frame, %context, %t) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i64) -> !llvm.ptr
  }
  scf.while : () -> () {
    %moved = scf.for %scope = %c1 to %c4 step %c1 iter_args(%any = %false) -> (i1) : i64 {
      %is_warp = arith.cmpi eq, %scope, %c1 : i64
      %is_block = arith.cmpi eq, %scope, %c2 : i64
      %of_block = arith.select %is_block, %block, %threads : i64
      %size = arith.select %is_warp, %lanes, %of_block : i64
      %scope_word = arith.trunci %scope : i64 to i32
      %here = scf.for %first = %c0 to %threads step %size iter_args(%before = %any) -> (i1) : i64 {
        %rest = arith.addi %first, %size : i64
        %end = arith.minui %rest, %threads : i64
        %first_at = llvm.getelementptr %sites[%first] : (!llvm.ptr, i64) -> !llvm.ptr, i32
        %site = llvm.load %first_at : !llvm.ptr -> i32
        %site_scope = arith.shrui %site, %shift : i32
        %is_here = arith.cmpi eq, %site_scope, %scope_word : i32
        %together = scf.for %t = %first to %end step %c1 iter_args(%all = %is_here) -> (i1) : i64 {
          %at = llvm.getelementptr %sites[%t] : (!llvm.ptr, i64) -> !llvm.ptr, i32
          %own = llvm.load %at : !llvm.ptr -> i32
          %same = arith.cmpi eq, %own, %site : i32
          %both = arith.andi %all, %same : i1
          scf.yield %both : i1
        }
        scf.if %together {
          scf.for %t = %first to %end step %c1 : i64 {
            %lane = arith.andi %t, %lane_mask : i64
            %is_first = arith.cmpi eq, %lane, %c0 : i64
            scf.if %is_first {
              %warp = arith.divui %t, %lanes : i64
              %at = llvm.getelementptr %phases[%warp] : (!llvm.ptr, i64) -> !llvm.ptr, i64
              %phase = llvm.load %at : !llvm.ptr -> i64
              %next = arith.addi %phase, %c1 : i64
              llvm.store %next, %at : i64, !llvm.ptr
            }
          }
          scf.for %t = %first to %end step %c1 : i64 {
            %offset = arith.muli %t, %bytes : i64
            %frame = llvm.getelementptr %frames[%offset] : (!llvm.ptr, i64) -> !llvm.ptr, i8
            llvm.intr.coro.resume %frame : !llvm.ptr
          }
        }
        %now = arith.ori %before, %together : i1
        scf.yield %now : i1
      }
      scf.yield %here : i1
    }
    scf.condition(%moved)
  } do {
    scf.yield
  }
  %left = scf.for %t = %c0 to %threads step %c1 iter_args(%found = %ended) -> (i32) : i64 {
    %at = llvm.getelementptr %sites[%t] : (!llvm.ptr, i64) -> !llvm.ptr, i32
    %site = llvm.load %at : !llvm.ptr -> i32
    %is_none = arith.cmpi eq, %found, %ended : i32
    %next = arith.select %is_none, %site, %found : i32
    scf.yield %next : i32
  }
  %place = arith.andi %left, %number : i32
  llvm.return %place : i32
}
)mlir";

void addThreadDriver(ModuleOp module) {
  if (module.lookupSymbol(runThreadsName))
    return;
  OwningOpRef<ModuleOp> parsed = parseSourceString<ModuleOp>(driver, ParserConfig(module.getContext()));
  assert(parsed && "the driver's text is MLIR");
  Operation *function = &parsed->getBody()->front();
  function->remove();
  // Its lines are none of the kernel's.
  function->walk([&](Operation *op) { op->setLoc(module.getLoc()); });
  module.push_back(function);
}

static void splitFunction(LLVM::LLVMFuncOp function) {
  SmallVector<LLVM::CallOp> suspensions;
  LLVM::CoroBeginOp begin;
  LLVM::ReturnOp exit;
  function.walk([&](Operation *op) {
    if (auto call = dyn_cast<LLVM::CallOp>(op); call && call.getCallee() == StringRef(suspendName))
      suspensions.push_back(call);
    if (auto found = dyn_cast<LLVM::CoroBeginOp>(op))
      begin = found;
    if (auto found = dyn_cast<LLVM::ReturnOp>(op))
      exit = found;
  });
  Value handle = begin.getRes();
  OpBuilder builder(exit);
  Location loc = exit.getLoc();
  Block *last = exit->getBlock(), *end = last->splitBlock(exit);
  builder.setInsertionPointToEnd(last);
  LLVM::BrOp::create(builder, loc, ValueRange(), end);
  builder.setInsertionPoint(exit);
  Type flag = builder.getI1Type();
  Value no = LLVM::ConstantOp::create(builder, loc, builder.getBoolAttr(false));
  Value none = LLVM::NoneTokenOp::create(builder, loc, LLVM::LLVMTokenType::get(builder.getContext()));
  LLVM::CoroEndOp::create(builder, loc, flag, handle, no, none);
  for (LLVM::CallOp call : suspensions) {
    Location here = call.getLoc();
    Block *before = call->getBlock(), *next = before->splitBlock(call->getNextNode());
    builder.setInsertionPoint(call);
    Value save = LLVM::CoroSaveOp::create(builder, here, LLVM::LLVMTokenType::get(builder.getContext()), handle);
    Value isFinal = LLVM::ConstantOp::create(builder, here, builder.getBoolAttr(false));
    Value how = LLVM::CoroSuspendOp::create(builder, here, builder.getI8Type(), save, isFinal);
    builder.setInsertionPointToEnd(before);
    LLVM::SwitchOp::create(builder, here, how, end, ValueRange(), ArrayRef<APInt>{APInt(8, 0), APInt(8, 1)},
                           BlockRange{next, end}, ArrayRef<ValueRange>{{}, {}});
    call.erase();
  }
}

void splitAtSuspensions(ModuleOp module) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (function->hasAttr(attributes::coroutine))
      splitFunction(function);
  if (Operation *marker = module.lookupSymbol(suspendName))
    marker->erase();
}

} // namespace kpkg::lower::cpu
