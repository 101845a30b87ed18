// Compiles random kernels for GPUs and writes them with their calls.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "DeviceBundle.h"
#include "dialect/tile/transforms/Variants.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace kpkg;
using namespace kpkg::sim;
using namespace kpkg::sim::test;

static constexpr unsigned kOptLevel = 2; // The level of `kpkg build`.

/// Returns whether the facts of `type` hold for the view, by the rules of the runtime. The buffer's address is a
/// multiple of 256.
static bool factsHold(tile::ViewType type, const ViewArgument &view) {
  const tile::ViewFacts &facts = type.getFacts();
  int64_t lowest = 0, highest = 0;
  if (view.offset * storageSize(type.getElementType()) % facts.align != 0)
    return false;
  for (auto [d, extent, stride] : llvm::enumerate(view.shape, view.strides)) {
    bool isUnit = static_cast<int64_t>(d) == facts.unit;
    if (isUnit ? extent % facts.divisible != 0 || (stride != 1 && extent > 1)
               : extent > 1 && stride % facts.divisible != 0)
      return false;
    (stride < 0 ? lowest : highest) += stride * std::max<int64_t>(0, extent - 1);
  }
  return facts.index != 32 || (highest <= INT32_MAX && lowest >= INT32_MIN);
}

static bool factsHold(tile::KernelOp variant, const RandomKernel &kernel) {
  return llvm::all_of(llvm::zip_equal(variant.getArgumentTypes(), kernel.arguments), [](auto pair) {
    auto view = dyn_cast<tile::ViewType>(std::get<0>(pair));
    return !view || factsHold(view, std::get<ViewArgument>(std::get<1>(pair)));
  });
}

/// Returns a module with the kernel in the form that packages have before variants are made.
static OwningOpRef<ModuleOp> simplified(tile::KernelOp kernel) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  module->push_back(kernel->clone());
  PassManager passes(kernel.getContext());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  return failed(passes.run(*module)) ? OwningOpRef<ModuleOp>() : std::move(module);
}

static int64_t wordOf(const ScalarArgument &scalar) {
  int64_t word = 0;
  storeCell(reinterpret_cast<char *>(&word), scalar.value, scalar.type);
  return word;
}

llvm::json::Array DeviceBundle::append(const void *data, size_t bytes) {
  binary.resize((binary.size() + 7) / 8 * 8);
  llvm::json::Array span({static_cast<int64_t>(binary.size()), static_cast<int64_t>(bytes)});
  binary.append(static_cast<const char *>(data), bytes);
  return span;
}

llvm::json::Object DeviceBundle::describe(const compiler::GpuCode &code, tile::KernelOp variant) {
  ++variants[variant.getVariant()->str()];
  codeBytes += code.object.bytes.size();
  return llvm::json::Object{{"chip", code.target},
                            {"variant", *variant.getVariant()},
                            {"symbol", variant.getSymName()},
                            {"image", append(code.object.bytes.data(), code.object.bytes.size())},
                            {"threads", code.launch.threads},
                            {"blocks", code.launch.blocks},
                            {"cluster", code.launch.cluster},
                            {"shared", code.launch.shared},
                            {"occupancy", code.launch.occupancy},
                            {"persistent", variant.isPersistent()}};
}

llvm::Error DeviceBundle::add(RandomKernel &kernel) {
  llvm::Expected<Expectation> expectation = Expectation::of(kernel);
  if (!expectation)
    return expectation.takeError();
  if (llvm::Error failed = expectation->observeMore(kernel))
    return failed;

  std::string messages;
  ScopedDiagnosticHandler handler(kernel.kernel->getContext(), [&](Diagnostic &diagnostic) {
    messages += diagnostic.str() + "\n";
    return success();
  });
  OwningOpRef<ModuleOp> module = simplified(kernel.kernel);
  if (!module)
    return llvm::createStringError("simplifying it fails: " + messages);
  tile::makeVariants(*module, tile::VariantKind::Gpu);
  std::vector<tile::KernelOp> usable;
  for (auto variant : module->getOps<tile::KernelOp>())
    if (factsHold(variant, kernel))
      usable.push_back(variant);
  tile::KernelOp variant = usable[kernel.seed % usable.size()];
  std::vector<compiler::GpuCode> codes;
  for (const std::string &chip : chips) {
    llvm::Expected<compiler::GpuCode> code =
        compiler::compileForChip(variant, chip, ptxas, kOptLevel, compiler::SlowCode::Accept);
    if (!code)
      return llvm::createStringError(variant.getSymName() + ": " + llvm::toString(code.takeError()) + ": " + messages);
    codes.push_back(std::move(*code));
  }

  llvm::json::Array arguments, entries;
  for (const compiler::GpuCode &code : codes)
    entries.push_back(describe(code, variant));
  Memory initial = makeMemory(kernel);
  for (auto [a, argument] : llvm::enumerate(kernel.arguments)) {
    if (auto *scalar = std::get_if<ScalarArgument>(&argument)) {
      arguments.push_back(llvm::json::Object{{"word", wordOf(*scalar)}});
      continue;
    }
    const auto &view = std::get<ViewArgument>(argument);
    Type element = view.type.getElementType();
    std::string dtype;
    llvm::raw_string_ostream(dtype) << element;
    llvm::json::Object described{{"dtype", dtype},
                                 {"bytes", storageSize(element)},
                                 {"shape", llvm::json::Array(view.shape)},
                                 {"strides", llvm::json::Array(view.strides)},
                                 {"offset", view.offset},
                                 {"initial", append(initial[a].data(), initial[a].size())}};
    if (view.type.getIsMut()) {
      const std::vector<char> &expected = expectation->exact()[a];
      described["expected"] = append(expected.data(), expected.size());
      std::vector<double> allowed;
      for (int64_t i = 0; i < view.count; ++i)
        allowed.push_back(expectation->allowed(a, i));
      if (llvm::any_of(allowed, [](double difference) { return difference != 0; }))
        described["allowed"] = append(allowed.data(), allowed.size() * sizeof(double));
    }
    arguments.push_back(std::move(described));
  }
  kernels.push_back(llvm::json::Object{{"seed", static_cast<int64_t>(kernel.seed)},
                                       {"grid", llvm::json::Array(kernel.grid)},
                                       {"arguments", std::move(arguments)},
                                       {"code", std::move(entries)}});
  return llvm::Error::success();
}

static llvm::Error writeFile(const llvm::Twine &path, llvm::StringRef bytes) {
  std::error_code code;
  llvm::raw_fd_ostream stream(path.str(), code);
  if (code)
    return llvm::createFileError(path, code);
  stream << bytes;
  stream.close();
  return stream.has_error() ? llvm::createFileError(path, stream.error()) : llvm::Error::success();
}

llvm::Error DeviceBundle::write(llvm::StringRef stem) const {
  if (!llvm::compression::zlib::isAvailable())
    return llvm::createStringError("this build of LLVM has no zlib");
  llvm::SmallVector<uint8_t, 0> packed;
  llvm::compression::zlib::compress(llvm::arrayRefFromStringRef(binary), packed,
                                    llvm::compression::zlib::BestSizeCompression);
  std::string json;
  llvm::raw_string_ostream(json) << llvm::json::Value(llvm::json::Array(kernels));
  if (llvm::Error failed = writeFile(stem + ".json", json))
    return failed;
  return writeFile(stem + ".bin", llvm::toStringRef(packed));
}
