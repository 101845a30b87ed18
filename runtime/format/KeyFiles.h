// Reads and writes files with Ed25519 keys.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FORMAT_KEYFILES_H
#define KPKG_FORMAT_KEYFILES_H

#include "runtime/format/Digest.h"

#include <kpkg/result.hpp>

#include <string>
#include <string_view>

namespace kpkg::format {

/// Returns the digits of a public key.
std::string keyText(const PublicKey &key);
/// Parses 64 lower-case hexadecimal digits. KPKG_ERROR_USE for any other text.
Result<PublicKey> parsePublicKey(std::string_view text);

/// Writes `name`.key, which only its owner may read, and `name`.pub. If one of them exists, neither is written.
Status writeKeyFiles(const std::string &name, const SecretKey &key);
/// The same for keys of other types, in their own texts.
Status writeKeyTexts(const std::string &name, std::string_view secret, std::string_view publicText);
Result<SecretKey> readSecretKey(const std::string &path);
/// Reads a public key from its digits, or from a file that has them. A file with a secret key is refused, because it
/// does not belong where public keys are named.
Result<PublicKey> readPublicKey(const std::string &textOrPath);

} // namespace kpkg::format
#endif
