// Finds out how much memory the coroutines of threads need, once LLVM has split them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: call void @kpkg.frame_size(ptr @f$frame_bytes, i64 112), where LLVM has computed 112
// After:  @f$frame_bytes = internal constant i64 128
#include "compiler/codegen/host/ThreadFrames.h"
#include "dialect/lower/cpu/LowerCpu.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace kpkg::compiler {

namespace cpu = lower::cpu;

std::string settleFrames(Module &module) {
  std::string lines;
  Function *tells = module.getFunction(cpu::frameSizeName);
  if (!tells)
    return lines;
  for (User *user : make_early_inc_range(tells->users())) {
    auto *call = cast<CallInst>(user);
    auto *global = cast<GlobalVariable>(call->getArgOperand(0));
    auto *bytes = cast<ConstantInt>(call->getArgOperand(1));
    uint64_t aligned = alignTo(bytes->getZExtValue(), 64);
    global->setInitializer(ConstantInt::get(bytes->getType(), aligned));
    global->setLinkage(GlobalValue::InternalLinkage);
    StringRef kernel = global->getName();
    kernel.consume_back(cpu::frameBytesSuffix);
    lines += (kernel + " " + Twine(aligned) + "\n").str();
    call->eraseFromParent();
  }
  tells->eraseFromParent();
  return lines;
}

bool addFrames(std::vector<HostKernel> &kernels, StringRef lines) {
  std::vector<int64_t> bytes;
  for (const HostKernel &kernel : kernels) {
    int64_t frame = 0;
    for (StringRef line : split(lines, '\n')) {
      auto [name, size] = line.rsplit(' ');
      if (name == kernel.symbol && size.getAsInteger(10, frame))
        return false;
    }
    if (kernel.frames != 0 && frame == 0)
      return false;
    bytes.push_back(frame * kernel.frames);
  }
  for (auto [kernel, more] : zip(kernels, bytes))
    kernel.scratchBytes += more;
  return true;
}

} // namespace kpkg::compiler
