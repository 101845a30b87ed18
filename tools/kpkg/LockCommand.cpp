// `kpkg lock`: writes which packages a program may open, with their digests and signers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/KeyFiles.h"
#include "runtime/format/Lock.h"
#include "runtime/format/OutputFile.h"
#include "tools/kpkg/Report.h"
#include <fmt/format.h>

namespace kpkg::command {

namespace {

struct LockOptions {
  std::vector<std::string> packages;
  std::vector<std::string> signedBy;
  std::string output = "kpkg.lock";
  bool bySigner = false;
};

ExitCode lock(const LockOptions &options) {
  auto keys = readPublicKeys(options.signedBy);
  if (!keys)
    return report(keys.error());
  format::Lock lock;
  for (const std::string &path : options.packages) {
    auto reader = format::Reader::open(path);
    if (!reader)
      return report(reader.error());
    if (!keys->empty())
      if (Status status = reader->checkSignature(*keys); !status)
        return report(status.error());
    if (Status status = lock.add(*reader, !options.bySigner); !status)
      return report(status.error());
  }
  if (Status status = format::writeFile(options.output, lock.text()); !status)
    return report(status.error());
  fmt::print("{}: {} package{}\n", printableLines(options.output), lock.size(), lock.size() == 1 ? "" : "s");
  return Success;
}

} // namespace

void addLock(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("lock", "Write which packages a program may open");
  command->footer("Example: kpkg lock softmax.kpkg gemm.kpkg -o kpkg.lock && KPKG_LOCK=kpkg.lock python serve.py\n"
                  "Packages are told by their file names. With a lock, a package that it does not have, or that is "
                  "another one, is not opened.");
  auto options = std::make_shared<LockOptions>();
  command->add_option("packages", options->packages, "The .kpkg files")->required();
  command->add_option("-o,--output", options->output, "The lock file")->capture_default_str();
  command
      ->add_option("--signed-by", options->signedBy,
                   "A public key, its digits or a file: lock only what one of these has signed")
      ->allow_extra_args(false);
  command->add_flag("--by-signer", options->bySigner, "No digests: later packages by the same signers will do, too");
  command->callback([options, &exitCode] { exitCode = lock(*options); });
}

} // namespace kpkg::command
