// Prints machine code of GPUs with the CUDA toolkit's disassembler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/nvptx/Disassemble.h"
#include "compiler/codegen/nvptx/Tool.h"
#include "compiler/codegen/temporary/TemporaryFolder.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

using namespace llvm;

namespace kpkg::compiler {

Expected<std::string> findDisassembler() {
  if (auto named = sys::Process::GetEnv("KPKG_NVDISASM"))
    return *named;
  for (StringRef name : {"nvdisasm", "cuobjdump"})
    if (std::string path = findTool(name); !path.empty())
      return path;
  return createStringError(
      "no nvdisasm or cuobjdump found (looked at KPKG_NVDISASM, CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda and the "
      "Python "
      "environment); they are part of the CUDA toolkit, and `pip install nvidia-cuda-nvdisasm` installs the first");
}

Expected<std::string> disassemble(StringRef cubin) {
  auto program = findDisassembler();
  if (!program)
    return program.takeError();
  auto folder = TemporaryFolder::create();
  if (!folder)
    return folder.takeError();
  auto input = folder->write("kernel.cubin", cubin);
  if (!input)
    return input.takeError();
  bool isObjdump = sys::path::filename(*program).starts_with("cuobjdump");
  ToolOutcome outcome = runTool(*program, {isObjdump ? "-sass" : "-c", *input});
  if (outcome.code != 0)
    return createStringError("%s failed: %s%s", program->c_str(), outcome.failure.c_str(), outcome.output.c_str());
  return std::move(outcome.output);
}

} // namespace kpkg::compiler
