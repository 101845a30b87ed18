// Collects the remarks of passes while a kernel is laid out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/RemarkLog.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace kpkg::compiler {

namespace {

/// Returns "rows.k:12". Folders of the build machine stay out of packages.
std::string placeOf(mlir::Location location) {
  auto file = location->findInstanceOf<mlir::FileLineColLoc>();
  if (!file)
    return "";
  return sys::path::filename(file.getFilename().getValue()).str() + ":" + std::to_string(file.getLine());
}

class Collector final : public mlir::remark::detail::MLIRRemarkStreamerBase {
public:
  explicit Collector(std::vector<PackedRemark> &remarks) : remarks(remarks) {}

  void streamOptimizationRemark(const mlir::remark::detail::Remark &remark) override {
    PackedRemark packed{placeOf(remark.getLocation()), remark.getCombinedCategoryName().str(),
                        remark.getRemarkType() == remarks::Type::Passed, remark.getRemarkName().str(), ""};
    for (const mlir::remark::detail::Remark::Arg &argument : remark.getArgs())
      packed.text += argument.val;
    if (!is_contained(remarks, packed)) // a pass visits each copy of a loop
      remarks.push_back(std::move(packed));
  }

private:
  std::vector<PackedRemark> &remarks;
};

} // namespace

RemarkLog::RemarkLog(mlir::MLIRContext &context) : context(context) {
  mlir::remark::RemarkCategories all; // `all` alone enables nothing
  all.passed = all.missed = ".*";
  // The streamer opens no file, so that this does not fail.
  (void)mlir::remark::enableOptimizationRemarks(context, std::make_unique<Collector>(remarks),
                                                std::make_unique<mlir::remark::RemarkEmittingPolicyAll>(), all);
}

RemarkLog::~RemarkLog() { context.setRemarkEngine(nullptr); }

} // namespace kpkg::compiler
