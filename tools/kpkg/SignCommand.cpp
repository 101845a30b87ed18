// `kpkg sign`: adds a signature to a package.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/KeyFiles.h"
#include "runtime/format/OutputFile.h"
#include "runtime/format/Rewrite.h"
#include "tools/kpkg/Report.h"
#include <fmt/format.h>

namespace kpkg::command {

namespace {

struct SignOptions {
  std::string package, key, output;
};

ExitCode sign(const SignOptions &options) {
  auto key = format::readSecretKey(options.key);
  if (!key)
    return report(key.error());
  auto reader = format::Reader::open(options.package);
  if (!reader)
    return report(reader.error());
  auto bytes = format::withSignature(*reader, *key);
  if (!bytes)
    return report(bytes.error());
  // A signature states that the package is usable, so it must open.
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
  command->footer("Example: kpkg sign gemm.kpkg --key release.key\n"
                  "The signature covers everything in the package. Signatures by other keys stay; one by the same key "
                  "is replaced. kpkg keygen makes keys, and kpkg verify --signed-by checks.");
  auto options = std::make_shared<SignOptions>();
  command->add_option("package", options->package, "The .kpkg file")->required();
  command->add_option("--key", options->key, "The secret key, a file of kpkg keygen")->required();
  command->add_option("-o,--output", options->output, "Write the package here instead of back");
  command->callback([options, &exitCode] { exitCode = sign(*options); });
}

} // namespace kpkg::command
