// Reports failures of the runtime, and describes tensors, for all commands.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/Report.h"
#include "compiler/diag/Render.h"
#include "tools/kpkg/Elements.h"
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kpkg::command {

ExitCode report(const Error &error) {
  fmt::print(stderr, "kpkg: error: {}\n", printableLines(error.message));
  switch (error.status) {
  case KPKG_ERROR_FILE:
  case KPKG_ERROR_DEVICE:
  case KPKG_ERROR_MEMORY:
  case KPKG_ERROR_INTERNAL:
    return WorldError;
  default:
    return InputRefused;
  }
}

Result<Library> openPackage(const std::string &path) {
  std::error_code error;
  bool isFolder = std::filesystem::is_directory(path, error);
  if (!isFolder && std::filesystem::path(path).extension() != ".k")
    return Library::open(path);
  std::string name = std::filesystem::weakly_canonical(path, error).stem().string();
  std::string message = fmt::format("'{}' is {}, not a package; build one first: kpkg build {} -o {}.kpkg", path,
                                    isFolder ? "a folder" : "a source", path, name);
  return Error{KPKG_ERROR_USE, std::move(message), {}, {}, {}};
}

Result<std::vector<format::PublicKey>> readPublicKeys(const std::vector<std::string> &texts) {
  std::vector<format::PublicKey> keys;
  for (const std::string &text : texts) {
    auto key = format::readPublicKey(text);
    if (!key)
      return key.error();
    keys.push_back(*key);
  }
  return keys;
}

std::string printableLines(const std::string &text) {
  std::string printed;
  for (size_t start = 0; start < text.size();) {
    size_t end = std::min(text.find('\n', start), text.size());
    printed += compiler::printable(std::string_view(text).substr(start, end - start));
    if (end < text.size())
      printed += '\n';
    start = end + 1;
  }
  return printed;
}

std::string describe(const Tensor &tensor) {
  std::string text = fmt::format("{} [{}]", kpkg_dtype_name(int32_t(tensor.dtype())), fmt::join(tensor.shape(), ", "));
  if (tensor.strides() != Tensor(nullptr, tensor.dtype(), tensor.shape()).strides())
    text += fmt::format(" strides [{}]", fmt::join(tensor.strides(), ", "));
  return text;
}

bool Difference::within(double limit) const { return !classMismatch && largest <= limit * scale; }

Difference compare(const Tensor &actual, const Tensor &expected) {
  Difference difference;
  std::vector<double> wanted;
  wanted.reserve(size_t(expected.elements()));
  forEachElement(expected, [&](void *address) { wanted.push_back(readElement(expected.dtype(), address)); });
  size_t next = 0;
  forEachElement(actual, [&](void *address) {
    double found = readElement(actual.dtype(), address), reference = wanted[next++];
    if (std::isfinite(found) && std::isfinite(reference)) {
      difference.largest = std::max(difference.largest, std::abs(found - reference));
      difference.scale = std::max(difference.scale, std::abs(reference));
    } else if (!(std::isnan(found) && std::isnan(reference)) && found != reference) {
      difference.classMismatch = true;
    }
  });
  return difference;
}

} // namespace kpkg::command
