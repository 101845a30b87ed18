// `kpkg verify`: checks a package's signers and integrity, and its instances against their references.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/KeyFiles.h"
#include "runtime/format/Reader.h"
#include "runtime/format/WholeFile.h"
#include "tools/kpkg/InputText.h"
#include "tools/kpkg/Report.h"
#include "tools/kpkg/verify/InstanceCheck.h"
#include <fmt/format.h>

namespace kpkg::command {

namespace {

struct VerifyOptions {
  std::string package;
  std::vector<std::string> signedBy;
  bool noRun = false;
  verify::CheckOptions check;
};

/// Checks that one of the keys has signed; without keys, prints the signers.
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

ExitCode run(const VerifyOptions &options) {
  for (const std::string &input : options.check.inputs)
    if (auto parsed = parseInput(input, 0); !parsed)
      return report(parsed.error());
  auto keys = readPublicKeys(options.signedBy);
  if (!keys)
    return report(keys.error());
  // Read once, so that the checked bytes run, even if the file changes.
  auto file = format::WholeFile::open(options.package);
  auto reader = file ? format::Reader::fromMemory(file->bytes(), options.package) : file.error();
  if (!reader)
    return report(reader.error());
  if (Status status = checkSigners(*reader, *keys); !status)
    return report(status.error());
  if (Status status = reader->checkSections(); !status)
    return report(status.error());
  fmt::print("sections   all {} digests are right\n", reader->sections().size());
  auto library = Library::openMemory(file->bytes(), options.package);
  if (!library)
    return report(library.error());
  if (Status status = library->verify(); !status)
    return report(status.error());
  fmt::print("code       plans are good, and what this CPU runs loads\n");
  return options.noRun ? Success : verify::checkInstances(*library, options.check);
}

} // namespace

void addVerify(CLI::App &app, int &exitCode) {
  auto *command =
      app.add_subcommand("verify", "Check a package: who signed it, that it is whole, and what its instances compute");
  command->footer("Example: kpkg verify gemm.kpkg --signed-by release.pub\n"
                  "Code of the package runs, unless its signature is refused or --no-run is there. Each instance that "
                  "this machine can run is compared with the packaged reference, on inputs that are drawn.");
  auto options = std::make_shared<VerifyOptions>();
  command->add_option("package", options->package, "The .kpkg file")->required();
  command
      ->add_option("--signed-by", options->signedBy,
                   "A public key, its digits or a file; may be repeated, and one of them must have signed")
      ->allow_extra_args(false);
  command->add_flag("--no-run", options->noRun, "Run no code of the package");
  command->add_option("--op", options->check.op, "Run this op alone, such as kpkg::gemm or gemm");
  command->add_option("-i,--input", options->check.inputs, "An argument, name=value; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--cases", options->check.cases, "Drawn cases of each op and dtype")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--seed", options->check.seed, "Seed of the drawn inputs")->capture_default_str();
  command->callback([options, &exitCode] { exitCode = run(*options); });
}

} // namespace kpkg::command
