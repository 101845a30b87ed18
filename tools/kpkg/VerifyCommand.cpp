// `kpkg verify`: checks who signed a package and that it is whole.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/KeyFiles.h"
#include "runtime/format/Reader.h"
#include "tools/kpkg/Report.h"
#include <fmt/format.h>

namespace kpkg::command {

namespace {

struct VerifyOptions {
  std::string package;
  std::vector<std::string> signedBy;
};

/// One of the keys must have signed; without keys, says who did.
Status checkSigners(const format::Reader &reader, const std::vector<format::PublicKey> &keys) {
  if (!keys.empty())
    if (Status status = reader.checkSignature(keys); !status)
      return status;
  auto signers = reader.signers();
  if (!signers)
    return signers.error();
  for (const format::Signer &signer : *signers)
    fmt::print("signature  {} by {}\n", signer.isValid ? "valid," : "NOT VALID,", format::keyText(signer.key));
  if (signers->empty())
    fmt::print("signature  none\n");
  return {};
}

ExitCode verify(const VerifyOptions &options) {
  std::vector<format::PublicKey> keys;
  for (const std::string &text : options.signedBy) {
    auto key = format::readPublicKey(text);
    if (!key)
      return report(key.error());
    keys.push_back(*key);
  }
  auto reader = format::Reader::open(options.package);
  if (!reader)
    return report(reader.error());
  if (Status status = checkSigners(*reader, keys); !status)
    return report(status.error());
  if (Status status = reader->checkSections(); !status)
    return report(status.error());
  fmt::print("sections   all {} digests are right\n", reader->sections().size());
  auto library = openPackage(options.package);
  if (!library)
    return report(library.error());
  if (Status status = library->verify(); !status)
    return report(status.error());
  fmt::print("code       plans are good, and what this CPU runs loads\n");
  return Success;
}

} // namespace

void addVerify(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("verify", "Check a package: who signed it, and that it is whole");
  command->footer("Example: kpkg verify gemm.kpkg --signed-by release.pub");
  auto options = std::make_shared<VerifyOptions>();
  command->add_option("package", options->package, "The .kpkg file")->required();
  command
      ->add_option("--signed-by", options->signedBy,
                   "A public key, its digits or a file; may be repeated, and one of them must have signed")
      ->allow_extra_args(false);
  command->callback([options, &exitCode] { exitCode = verify(*options); });
}

} // namespace kpkg::command
