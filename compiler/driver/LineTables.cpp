// Describes the source's files, functions and lines to LLVM.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/LineTables.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/BinaryFormat/Dwarf.h"

using namespace mlir;

namespace kpkg::compiler {

namespace {

/// The place of the source that an operation came from; null if it has none.
FileLineColLoc placeOf(Location location) { return location->findInstanceOf<FileLineColLoc>(); }

LLVM::DIFileAttr fileOf(FileLineColLoc place) {
  // An empty folder keeps the path relative to wherever the build ran.
  return LLVM::DIFileAttr::get(place.getContext(), place.getFilename(), "");
}

/// Gives each operation of `function` one place. Lowering fuses places, and LLVM would merge these to line 0.
void describeOperations(LLVM::LLVMFuncOp function, LLVM::DISubprogramAttr subprogram) {
  function.getBody().walk([&](Operation *op) {
    FileLineColLoc place = placeOf(op->getLoc());
    if (!place) {
      if (isa<LLVM::CallOp>(op)) // LLVM demands a place of calls
        op->setLoc(function.getLoc());
      return;
    }
    LLVM::DIFileAttr file = fileOf(place);
    if (file == subprogram.getFile())
      op->setLoc(place);
    else
      op->setLoc(FusedLoc::get(op->getContext(), {place}, LLVM::DILexicalBlockFileAttr::get(subprogram, file, 0)));
  });
}

} // namespace

void addLineTables(Operation *module, LineTableKind kind) {
  MLIRContext *context = module->getContext();
  LLVM::DIEmissionKind emission = kind == LineTableKind::Directives ? LLVM::DIEmissionKind::DebugDirectivesOnly
                                                                    : LLVM::DIEmissionKind::LineTablesOnly;
  auto newId = [&] { return DistinctAttr::create(UnitAttr::get(context)); };
  LLVM::DICompileUnitAttr unit;
  module->walk([&](LLVM::LLVMFuncOp function) {
    FileLineColLoc place = placeOf(function.getLoc());
    if (!place || function.isExternal())
      return;
    LLVM::DIFileAttr file = fileOf(place);
    if (!unit)
      unit = LLVM::DICompileUnitAttr::get(newId(), llvm::dwarf::DW_LANG_C, file, StringAttr::get(context, "kpkg"),
                                          /*isOptimized=*/true, emission);
    StringAttr name = function.getSymNameAttr();
    auto type = LLVM::DISubroutineTypeAttr::get(context, llvm::dwarf::DW_CC_normal, {});
    auto subprogram = LLVM::DISubprogramAttr::get(
        context, newId(), unit, file, name, name, file, place.getLine(), place.getLine(),
        LLVM::DISubprogramFlags::Definition | LLVM::DISubprogramFlags::Optimized, type, /*retainedNodes=*/{},
        /*annotations=*/{});
    function->setLoc(FusedLoc::get(context, {place}, subprogram));
    describeOperations(function, subprogram);
  });
}

std::string withFixedFileTimes(llvm::StringRef ptx) {
  std::string fixed;
  while (!ptx.empty()) {
    auto [line, rest] = ptx.split('\n');
    fixed += line;
    if (line.starts_with("\t.file\t"))
      fixed += ", 1, 1"; // ptxas takes 0 for absent
    fixed += '\n';
    ptx = rest;
  }
  return fixed;
}

} // namespace kpkg::compiler
