// `kpkg sign`: adds a signature to a package, or writes a detached one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/KeyFiles.h"
#include "runtime/format/OutputFile.h"
#include "runtime/format/Rewrite.h"
#include "runtime/format/WholeFile.h"
#include "tools/kpkg/Report.h"
#include "tools/kpkg/sign/Bundle.h"
#include <filesystem>
#include <fmt/format.h>

namespace kpkg::command {

namespace {

struct SignOptions {
  std::string package, key, output, bundle;
};

namespace fs = std::filesystem;

/// A signature states that the package is usable, so it must open, and be whole.
Status checkPackage(std::string_view bytes, const std::string &path) {
  auto reader = format::Reader::fromMemory(bytes, path);
  if (!reader)
    return reader.error();
  if (Status status = reader->checkSections(); !status)
    return status;
  auto opened = Library::openMemory(bytes, path);
  return opened ? Status{} : opened.error();
}

Result<sign::SignedFiles> filesOfFolder(const SignOptions &options) {
  std::vector<std::string> ignored = sign::gitPaths;
  if (std::string inside = sign::insideOf(options.package, options.bundle); !inside.empty())
    ignored.push_back(inside);
  auto files = sign::ofFolder(options.package, std::move(ignored), /*allowsLinks=*/false);
  if (!files)
    return files.error();
  if (files->digests.empty())
    return Error{KPKG_ERROR_USE, "'" + options.package + "' has no files to sign", {}, {}, {}};
  for (const auto &[name, digest] : files->digests) {
    std::string path = (fs::path(options.package) / name).string();
    if (fs::path(name).extension() != ".kpkg")
      continue;
    auto file = format::WholeFile::open(path);
    if (!file)
      return file.error();
    if (Status status = checkPackage(file->bytes(), path); !status)
      return status.error();
  }
  return files;
}

Result<sign::SignedFiles> filesOfPackage(const std::string &path) {
  auto file = format::WholeFile::open(path);
  if (!file)
    return file.error();
  if (Status status = checkPackage(file->bytes(), path); !status)
    return status.error();
  return sign::ofBytes(fs::path(path).filename().string(), file->bytes());
}

ExitCode signDetached(const SignOptions &options) {
  auto key = sign::EcKey::readSecret(options.key);
  if (!key)
    return report(key.error());
  std::error_code error;
  auto files = fs::is_directory(options.package, error) ? filesOfFolder(options) : filesOfPackage(options.package);
  if (!files)
    return report(files.error());
  auto text = sign::bundleText(*files, *key);
  if (!text)
    return report(text.error());
  if (Status status = format::writeFile(options.bundle, *text); !status)
    return report(status.error());
  fmt::print("{}: signs {} file{}, by {}\n", printableLines(options.bundle), files->digests.size(),
             files->digests.size() == 1 ? "" : "s", key->hint());
  return Success;
}

ExitCode signInside(const SignOptions &options) {
  auto key = format::readSecretKey(options.key);
  if (!key)
    return report(key.error());
  auto reader = format::Reader::open(options.package);
  if (!reader)
    return report(reader.error());
  auto bytes = format::withSignature(*reader, *key);
  if (!bytes)
    return report(bytes.error());
  if (auto opened = Library::openMemory(*bytes, options.package); !opened)
    return report(opened.error());
  const std::string &path = options.output.empty() ? options.package : options.output;
  if (Status status = format::writeFile(path, *bytes); !status)
    return report(status.error());
  fmt::print("{}: signed by {}\n", printableLines(path), format::keyText(format::publicKey(*key)));
  return Success;
}

} // namespace

void addSign(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("sign", "Sign a package");
  command->footer(
      "Example: kpkg sign gemm.kpkg --key release.key\n"
      "The signature covers everything in the package. Signatures by other keys stay; one by the same key "
      "is replaced. kpkg keygen makes keys, and kpkg verify --signed-by checks.\n"
      "--bundle leaves the package alone. It writes a signature in the form of OpenSSF Model Signing, for a "
      "package or a folder of files, with a key of kpkg keygen --ecdsa.");
  auto options = std::make_shared<SignOptions>();
  command->add_option("package", options->package, "The .kpkg file; with --bundle also a folder")->required();
  command->add_option("--key", options->key, "The secret key, a file of kpkg keygen")->required();
  auto *output = command->add_option("-o,--output", options->output, "Write the package here instead of back");
  command->add_option("--bundle", options->bundle, "Write a detached signature here, a Sigstore bundle")
      ->excludes(output);
  command->callback(
      [options, &exitCode] { exitCode = options->bundle.empty() ? signInside(*options) : signDetached(*options); });
}

} // namespace kpkg::command
