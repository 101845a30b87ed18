// Makes changed copies of packages, and their signatures.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/Rewrite.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace kpkg::format {

Status copySections(const Reader &from, Writer &to, const std::function<bool(const Section &)> &keep) {
  if (from.minor() > minorVersion)
    return Error{KPKG_ERROR_UNSUPPORTED,
                 "'" + from.name() + "' is of format version " + std::to_string(majorVersion) + "." +
                     std::to_string(from.minor()) + ", this kpkg writes " + std::to_string(majorVersion) + "." +
                     std::to_string(minorVersion) + "; update kpkg",
                 {},
                 {},
                 {}};
  for (const Section &section : from.sections())
    if (section.kind != "signature" && keep(section))
      if (Status status = to.copy(from, section); !status)
        return status;
  return {};
}

Result<std::string> withSignature(const Reader &package, const SecretKey &key) {
  Writer writer;
  if (Status status = copySections(package, writer, [](const Section &) { return true; }); !status)
    return status.error();
  auto signers = package.signers();
  if (!signers)
    return signers.error();
  PublicKey own = publicKey(key);
  auto signer = signers->begin();
  for (const Section &section : package.sections()) {
    if (section.kind != "signature")
      continue;
    if (signer->isValid && signer->key != own)
      if (Status status = writer.copy(package, section); !status)
        return status.error();
    ++signer;
  }
  return writer.finish(package.manifest(), &key);
}

} // namespace kpkg::format
