// Computes SHA-256 and Ed25519 with libsodium.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FORMAT_DIGEST_H
#define KPKG_FORMAT_DIGEST_H

#include "runtime/format/Container.h"

#include <optional>
#include <string>
#include <string_view>

namespace kpkg::format {

using PublicKey = std::array<unsigned char, 32>;
/// libsodium's format: seed, then public key.
using SecretKey = std::array<unsigned char, 64>;
using Signature = std::array<unsigned char, 64>;

Sha256 sha256(std::string_view bytes);
std::string toHex(const unsigned char *bytes, size_t count);
/// Parses exactly 2 * count lower-case hexadecimal digits, else returns false.
bool fromHex(std::string_view text, unsigned char *bytes, size_t count);

/// Returns a new key from the system's source of randomness.
SecretKey newSecretKey();
/// Returns the key pair of a 32-byte seed.
SecretKey secretKeyFromSeed(const std::array<unsigned char, 32> &seed);
PublicKey publicKey(const SecretKey &key);
Signature sign(std::string_view message, const SecretKey &key);
bool verify(std::string_view message, const Signature &signature, const PublicKey &key);

} // namespace kpkg::format
#endif
