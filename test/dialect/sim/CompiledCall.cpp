// Compiles random kernels to loaded machine code, and calls them by the kernel ABI.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CompiledCall.h"
#include "dialect/lower/cpu/LowerCpu.h"
#include "dialect/tile/transforms/Variants.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "runtime/include/kpkg/kernel_abi.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <cstring>
#include <memory>

using namespace mlir;
using namespace kpkg;
using namespace kpkg::sim::test;

static llvm::Expected<compiler::HostObject> compileModule(ModuleOp module, const lower::cpu::CpuTarget &target,
                                                          unsigned optLevel) {
  std::string messages;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    messages += diagnostic.str() + "\n";
    return success();
  });
  if (failed(lower::cpu::lowerToLLVM(module, target)))
    return llvm::createStringError("lowering fails: " + messages);
  llvm::Expected<compiler::HostObject> object = compiler::compileToObject(module, target, optLevel);
  if (!object)
    return llvm::createStringError(llvm::toString(object.takeError()) + "\n" + messages);
  return object;
}

/// Returns whether the call has the strides that the variant's argument types state.
static bool factsHold(tile::KernelOp variant, const RandomKernel &kernel) {
  return llvm::all_of(llvm::zip_equal(variant.getArgumentTypes(), kernel.arguments), [](auto pair) {
    auto &[type, argument] = pair;
    auto view = dyn_cast<tile::ViewType>(type);
    return !view || view.getUnit() < 0 || std::get<ViewArgument>(argument).strides[view.getUnit()] == 1;
  });
}

llvm::Expected<CompiledModule> CompiledModule::compile(ArrayRef<RandomKernel> kernels, const std::string &isa,
                                                       unsigned optLevel) {
  llvm::Expected<lower::cpu::CpuTarget> target = lower::cpu::CpuTarget::find(isa);
  if (!target)
    return target.takeError();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(kernels.front().kernel->getContext()));
  for (const RandomKernel &kernel : kernels)
    module->push_back(kernel.kernel->clone());
  tile::makeVariants(*module, tile::VariantKind::Cpu);
  // Variants whose facts the call does not satisfy are not worth compiling.
  std::vector<std::vector<std::string>> variants(kernels.size());
  for (auto variant : llvm::make_early_inc_range(module->getOps<tile::KernelOp>())) {
    StringRef symbol = variant.getSymName();
    auto kernel = llvm::find_if(kernels, [&](const RandomKernel &candidate) {
      std::string name = "p" + std::to_string(candidate.seed);
      return symbol == name || symbol.starts_with(name + "__");
    });
    if (kernel != kernels.end() && factsHold(variant, *kernel))
      variants[kernel - kernels.begin()].push_back(symbol.str());
    else
      variant.erase();
  }
  llvm::Expected<compiler::HostObject> object = compileModule(*module, *target, optLevel);
  if (!object)
    return object.takeError();
  llvm::Expected<std::string> linked = compiler::linkObjects({*object}, *target);
  if (!linked)
    return linked.takeError();
  auto loaded = cpu::HostObject::load(*linked, "random kernels");
  if (!loaded)
    return llvm::createStringError(loaded.error().message);
  CompiledModule result(std::move(*loaded));
  result.kernels = std::move(object->kernels);
  result.variants = std::move(variants);
  return result;
}

llvm::Error CompiledModule::run(const RandomKernel &kernel, const std::string &variant, Memory &memory) const {
  std::vector<int64_t> words;
  for (auto [argument, bytes] : llvm::zip_equal(kernel.arguments, memory)) {
    if (auto *scalar = std::get_if<ScalarArgument>(&argument)) {
      words.push_back(0);
      storeCell(reinterpret_cast<char *>(&words.back()), scalar->value, scalar->type);
      continue;
    }
    const auto &view = std::get<ViewArgument>(argument);
    words.push_back(reinterpret_cast<int64_t>(bytes.data() + view.offset * storageSize(view.type.getElementType())));
    words.insert(words.end(), view.shape.begin(), view.shape.end());
    words.insert(words.end(), view.strides.begin(), view.strides.end());
  }
  auto info = llvm::find_if(kernels, [&](const compiler::HostKernel &k) { return k.symbol == variant; });
  auto entry = reinterpret_cast<KpkgCpuKernel>(const_cast<void *>(object.find(variant)));
  if (info == kernels.end() || !entry)
    return llvm::createStringError("the object has no kernel " + variant);
  KpkgCpuCall call = {};
  call.args = words.data();
  llvm::copy(kernel.grid, call.grid);
  if (info->isPersistent) {
    auto count = reinterpret_cast<KpkgCpuTileCount>(const_cast<void *>(object.find(variant + "$tiles")));
    if (!count)
      return llvm::createStringError("a persistent kernel has no tile count");
    call.grid[0] = count(words.data());
    call.grid[1] = call.grid[2] = 1;
  }
  size_t scratchBytes = (info->scratchBytes + 127) / 64 * 64;
  std::unique_ptr<void, void (*)(void *)> scratch(std::aligned_alloc(64, scratchBytes), std::free);
  std::memset(scratch.get(), 0xff, scratchBytes); // NaN in every float type.
  call.scratch = scratch.get();
  call.print = [](void *, int32_t, const uint64_t *, int32_t) {};
  int64_t blocks = call.grid[0] * call.grid[1] * call.grid[2], middle = blocks / 2;
  for (auto [begin, end] : {std::pair(middle, blocks), std::pair(int64_t(0), middle)})
    if (int32_t status = begin < end ? entry(&call, begin, end) : 0)
      return llvm::createStringError("assert " + llvm::Twine(status - 1) + " failed");
  auto *tail = static_cast<unsigned char *>(scratch.get()) + info->scratchBytes;
  if (!std::all_of(tail, tail + scratchBytes - info->scratchBytes, [](unsigned char byte) { return byte == 0xff; }))
    return llvm::createStringError("writes beyond its scratch memory");
  return llvm::Error::success();
}
