// Compiles tile kernels from text to a loaded shared object and calls them, for tests.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/dialect/lower/cpu/CompiledKernels.h"
#include "dialect/lower/cpu/LowerCpu.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace kpkg::test {

std::string compileShared(const std::string &mlirText, const char *isa, std::vector<compiler::HostKernel> *kernels) {
  auto target = lower::cpu::CpuTarget::find(isa);
  if (!target) {
    ADD_FAILURE() << llvm::toString(target.takeError());
    return {};
  }
  mlir::DialectRegistry registry;
  lower::cpu::registerLoweringDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(mlirText, &context);
  if (!module || mlir::failed(lower::cpu::lowerToLLVM(*module, *target))) {
    ADD_FAILURE() << "does not lower";
    return {};
  }
  auto object = compiler::compileToObject(*module, *target, 2);
  if (!object) {
    ADD_FAILURE() << llvm::toString(object.takeError());
    return {};
  }
  if (kernels)
    *kernels = object->kernels;
  auto linked = compiler::linkObjects({*object}, *target);
  if (!linked) {
    ADD_FAILURE() << llvm::toString(linked.takeError());
    return {};
  }
  return *linked;
}

CompiledKernels::CompiledKernels(const std::string &mlirText, const char *isa) {
  std::string bytes = compileShared(mlirText, isa, &kernels);
  if (bytes.empty())
    return;
  int file = memfd_create("kernels", 0);
  size_t written = 0;
  while (written < bytes.size())
    written += write(file, bytes.data() + written, bytes.size() - written);
  library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    ADD_FAILURE() << dlerror();
  close(file);
}

CompiledKernels::~CompiledKernels() {
  if (library)
    dlclose(library);
}

const compiler::HostKernel &CompiledKernels::kernel(const std::string &symbol) const {
  for (const compiler::HostKernel &kernel : kernels)
    if (kernel.symbol == symbol)
      return kernel;
  ADD_FAILURE() << "no kernel " << symbol;
  static compiler::HostKernel none;
  return none;
}

int32_t CompiledKernels::run(const std::string &symbol, const Arguments &arguments, std::vector<int64_t> grid) {
  if (!library)
    return -1;
  auto entry = reinterpret_cast<KpkgCpuKernel>(dlsym(library, symbol.c_str()));
  if (!entry) {
    ADD_FAILURE() << dlerror();
    return -1;
  }
  const compiler::HostKernel &info = kernel(symbol);
  if (info.isPersistent)
    grid = {reinterpret_cast<KpkgCpuTileCount>(dlsym(library, (symbol + "$tiles").c_str()))(arguments.words.data())};
  grid.resize(3, 1);
  // A guard after the scratch memory detects writes beyond the requested size.
  constexpr unsigned char mark = 0xa5;
  size_t size = info.scratchBytes, guard = 256;
  auto *scratch = static_cast<unsigned char *>(std::aligned_alloc(64, (size + guard + 63) / 64 * 64));
  std::memset(scratch, mark, size + guard);
  KpkgCpuCall call = {};
  call.args = arguments.words.data();
  std::copy(grid.begin(), grid.end(), call.grid);
  call.scratch = scratch;
  call.printContext = this;
  call.print = [](void *context, int32_t format, const uint64_t *values, int32_t count) {
    std::vector<uint64_t> record = {uint64_t(format)};
    record.insert(record.end(), values, values + count);
    static_cast<CompiledKernels *>(context)->printed.push_back(record);
  };
  int32_t status = entry(&call, 0, grid[0] * grid[1] * grid[2]);
  for (size_t i = 0; i < guard; ++i)
    EXPECT_EQ(scratch[size + i], mark) << "write beyond the scratch memory";
  std::free(scratch);
  return status;
}

} // namespace kpkg::test
