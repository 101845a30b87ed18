// `kpkg keygen`: writes a new key pair for signing packages.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/KeyFiles.h"
#include "tools/kpkg/Report.h"
#include "tools/kpkg/sign/EcKey.h"
#include <fmt/format.h>

namespace kpkg::command {

namespace {

struct KeygenOptions {
  std::string name;
  bool ecdsa = false;
};

ExitCode keygenEcdsa(const std::string &name) {
  if (Status status = sign::EcKey::writeNewPair(name); !status)
    return report(status.error());
  fmt::print("wrote {0}.key, which must stay secret, and {0}.pub\n", printableLines(name));
  return Success;
}

ExitCode keygen(const std::string &name) {
  format::SecretKey key = format::newSecretKey();
  if (Status status = format::writeKeyFiles(name, key); !status)
    return report(status.error());
  fmt::print("wrote {0}.key, which must stay secret, and {0}.pub: {1}\n", printableLines(name),
             format::keyText(format::publicKey(key)));
  return Success;
}

} // namespace

void addKeygen(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("keygen", "Make a pair of keys to sign packages with");
  command->footer("Example: kpkg keygen release && kpkg sign gemm.kpkg --key release.key\n"
                  "NAME.key signs, and only its owner may read it. NAME.pub is for those who check. Files that exist "
                  "are never replaced.");
  auto options = std::make_shared<KeygenOptions>();
  command->add_option("name", options->name, "The files are NAME.key and NAME.pub")->required();
  command->add_flag("--ecdsa", options->ecdsa, "ECDSA keys on P-256 in PEM files, for kpkg sign --bundle");
  command->callback(
      [options, &exitCode] { exitCode = options->ecdsa ? keygenEcdsa(options->name) : keygen(options->name); });
}

} // namespace kpkg::command
