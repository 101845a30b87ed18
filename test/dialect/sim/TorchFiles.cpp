// Writes random kernels and their calls to files.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TorchFiles.h"
#include "TorchText.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace kpkg;
using namespace kpkg::sim::test;

static llvm::Error writeText(const llvm::Twine &path, llvm::StringRef text) {
  std::error_code code;
  llvm::raw_fd_ostream stream(path.str(), code);
  if (code)
    return llvm::createFileError(path, code);
  stream << text;
  return llvm::Error::success();
}

static std::string nameOf(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return name;
}

llvm::Error kpkg::sim::test::writeTorchFiles(llvm::StringRef stem, llvm::MutableArrayRef<RandomKernel> kernels) {
  std::string text, binary;
  llvm::raw_string_ostream python(text);
  llvm::json::Array calls;
  auto append = [&](const void *data, size_t bytes) {
    binary.resize((binary.size() + 7) / 8 * 8);
    int64_t at = binary.size();
    binary.append(static_cast<const char *>(data), bytes);
    return at;
  };
  for (RandomKernel &kernel : kernels) {
    llvm::Expected<Expectation> expectation = Expectation::of(kernel);
    if (!expectation)
      return expectation.takeError();
    if (llvm::Error failed = expectation->observeMore(kernel))
      return failed;
    printAsTorch(kernel.kernel, python);
    Memory initial = makeMemory(kernel);
    llvm::json::Array arguments;
    for (auto [a, argument] : llvm::enumerate(kernel.arguments)) {
      if (auto *scalar = std::get_if<ScalarArgument>(&argument)) {
        llvm::json::Value value =
            isFloat(scalar->type) ? llvm::json::Value(scalar->value.f) : llvm::json::Value(scalar->value.i);
        arguments.push_back(llvm::json::Object{{"dtype", nameOf(scalar->type)}, {"value", value}});
        continue;
      }
      const auto &view = std::get<ViewArgument>(argument);
      std::vector<double> allowed;
      for (int64_t i = 0; i < view.count; ++i)
        allowed.push_back(expectation->allowed(a, i));
      const std::vector<char> &expected = expectation->exact()[a];
      arguments.push_back(llvm::json::Object{{"dtype", nameOf(view.type.getElementType())},
                                             {"shape", llvm::json::Array(view.shape)},
                                             {"strides", llvm::json::Array(view.strides)},
                                             {"offset", view.offset},
                                             {"count", view.count},
                                             {"initial", append(initial[a].data(), initial[a].size())},
                                             {"expected", append(expected.data(), expected.size())},
                                             {"allowed", append(allowed.data(), allowed.size() * sizeof(double))}});
    }
    calls.push_back(llvm::json::Object{{"symbol", kernel.kernel.getSymName()},
                                       {"grid", llvm::json::Array(kernel.grid)},
                                       {"arguments", std::move(arguments)}});
  }
  std::string json;
  llvm::raw_string_ostream(json) << llvm::json::Value(std::move(calls));
  if (llvm::Error failed = writeText(stem + ".py", text))
    return failed;
  if (llvm::Error failed = writeText(stem + ".json", json))
    return failed;
  return writeText(stem + ".bin", binary);
}
