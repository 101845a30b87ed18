// `kpkg verify`: checks a package's signers and integrity, and its instances against their references.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/KeyFiles.h"
#include "runtime/format/Reader.h"
#include "runtime/format/WholeFile.h"
#include "tools/kpkg/InputText.h"
#include "tools/kpkg/Report.h"
#include "tools/kpkg/sign/Bundle.h"
#include "tools/kpkg/verify/InstanceCheck.h"
#include <filesystem>
#include <fmt/format.h>

namespace kpkg::command {

namespace {

struct VerifyOptions {
  std::string package, bundle;
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

Result<sign::SignedFiles> readBundle(const VerifyOptions &options) {
  std::vector<sign::EcKey> keys;
  for (const std::string &path : options.signedBy) {
    auto key = sign::EcKey::readPublic(path);
    if (!key)
      return key.error();
    keys.push_back(*key);
  }
  auto file = format::WholeFile::open(options.bundle);
  return file ? sign::readBundle(file->bytes(), options.bundle, keys) : file.error();
}

/// Checks that a bundle signs exactly these files.
Status checkBundle(const VerifyOptions &options, const sign::SignedFiles &wanted, const sign::SignedFiles &files) {
  if (std::string why = sign::difference(files, wanted); !why.empty())
    return Error{KPKG_ERROR_TRUST,
                 fmt::format("'{}' is not what the bundle '{}' signs: {}", options.package, options.bundle, why),
                 {},
                 {},
                 {}};
  fmt::print("bundle     valid, signs {} file{}\n", files.digests.size(), files.digests.size() == 1 ? "" : "s");
  return {};
}

/// Checks the files of a folder. Packages among them are checked by a call for each.
ExitCode runOnFolder(const VerifyOptions &options) {
  auto wanted = readBundle(options);
  if (!wanted)
    return report(wanted.error());
  std::vector<std::string> ignored = wanted->ignored;
  if (std::string inside = sign::insideOf(options.package, options.bundle); !inside.empty())
    ignored.push_back(inside);
  auto files = sign::ofFolder(options.package, std::move(ignored), wanted->allowsLinks);
  if (!files)
    return report(files.error());
  Status status = checkBundle(options, *wanted, *files);
  return status ? Success : report(status.error());
}

ExitCode run(const VerifyOptions &options) {
  std::error_code error;
  if (!options.bundle.empty() && std::filesystem::is_directory(options.package, error))
    return runOnFolder(options);
  for (const std::string &input : options.check.inputs)
    if (auto parsed = parseInput(input, 0); !parsed)
      return report(parsed.error());
  // With a bundle, the keys are the bundle's.
  auto keys = readPublicKeys(options.bundle.empty() ? options.signedBy : std::vector<std::string>{});
  if (!keys)
    return report(keys.error());
  // Read once, so that the checked bytes run, even if the file changes.
  auto file = format::WholeFile::open(options.package);
  if (file && !options.bundle.empty()) {
    auto wanted = readBundle(options);
    Status status = wanted ? checkBundle(options, *wanted, sign::ofBytes({}, file->bytes())) : wanted.error();
    if (!status)
      return report(status.error());
  }
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
                  "this machine can run is compared with the packaged reference, on inputs that are drawn.\n"
                  "With --bundle the detached signature in the form of OpenSSF Model Signing is checked first, of a "
                  "package, or of all files of a folder.");
  auto options = std::make_shared<VerifyOptions>();
  command->add_option("package", options->package, "The .kpkg file; with --bundle also a folder")->required();
  auto *signedBy =
      command
          ->add_option("--signed-by", options->signedBy,
                       "A public key, its digits or a file; may be repeated, and one of them must have signed")
          ->allow_extra_args(false);
  command->add_option("--bundle", options->bundle, "A detached signature, checked with the PEM files of --signed-by")
      ->needs(signedBy);
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
