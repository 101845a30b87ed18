// Writes and reads the files that show an error of the compiler or of a tool again.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/reproducer/Reproducer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace kpkg::compiler {

static constexpr StringRef kFirstLine = "// kpkg reproducer 1\n";

StringRef Reproducer::get(StringRef name) const {
  for (const auto &[key, value] : fields)
    if (key == name)
      return value;
  return "";
}

void Reproducer::set(StringRef name, std::string value) {
  replace(value, '\n', ' ');
  for (auto &[key, old] : fields)
    if (key == name) {
      old = std::move(value);
      return;
    }
  fields.emplace_back(name, std::move(value));
}

std::string Reproducer::text() const {
  std::string text = kFirstLine.str();
  for (const auto &[name, value] : fields)
    text += "// " + name + ": " + value + "\n";
  return text + "//\n" + input;
}

Expected<Reproducer> parseReproducer(StringRef text) {
  if (!text.consume_front(kFirstLine))
    return createStringError("it is no reproducer: its first line is not `%s`", kFirstLine.trim().str().c_str());
  Reproducer result;
  while (text.consume_front("// ")) {
    auto [line, rest] = text.split('\n');
    auto [name, value] = line.split(": ");
    result.fields.emplace_back(name, value);
    text = rest;
  }
  text.consume_front("//\n");
  result.input = text.str();
  for (StringRef name : {"stage", "target"})
    if (result.get(name).empty())
      return createStringError("it has no line `// %s: ...`", name.str().c_str());
  return result;
}

static std::string &folder() {
  static std::string path = [] {
    SmallString<128> folder;
    sys::path::system_temp_directory(/*ErasedOnReboot=*/true, folder);
    return std::string(folder);
  }();
  return path;
}

void keepReproducersIn(std::string path) { folder() = std::move(path); }

Expected<std::string> keep(const Reproducer &reproducer) {
  std::string name = "kpkg-" +
                     reproducer.get("instance").take_while([](char c) { return isAlnum(c) || c == '_'; }).str() + "-" +
                     reproducer.get("target").str() + "-%%%%%%";
  SmallString<128> model(folder()), path;
  sys::path::append(model, name + (reproducer.get("stage") == "ptxas" ? ".ptx" : ".mlir"));
  int descriptor = -1;
  if (std::error_code error = sys::fs::createUniqueFile(model, descriptor, path))
    return createStringError(error, "cannot make a file in %s: %s", folder().c_str(), error.message().c_str());
  raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  stream << reproducer.text();
  stream.close();
  if (std::error_code error = stream.error()) {
    stream.clear_error();
    return createStringError(error, "cannot write %s: %s", path.c_str(), error.message().c_str());
  }
  return std::string(path);
}

} // namespace kpkg::compiler
