// Computes SHA-256 and Ed25519 with libsodium.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/Digest.h"

#include <sodium.h>

namespace kpkg::format {

static const unsigned char *data(std::string_view bytes) {
  return reinterpret_cast<const unsigned char *>(bytes.data());
}

Sha256 sha256(std::string_view bytes) {
  static_assert(sizeof(Sha256) == crypto_hash_sha256_BYTES);
  Sha256 digest;
  crypto_hash_sha256(digest.data(), data(bytes), bytes.size());
  return digest;
}

std::string toHex(const unsigned char *bytes, size_t count) {
  std::string text;
  text.reserve(2 * count);
  for (size_t i = 0; i < count; ++i) {
    text += "0123456789abcdef"[bytes[i] >> 4];
    text += "0123456789abcdef"[bytes[i] & 15];
  }
  return text;
}

static int hexDigit(char digit) {
  if (digit >= '0' && digit <= '9')
    return digit - '0';
  if (digit >= 'a' && digit <= 'f')
    return digit - 'a' + 10;
  return -1;
}

bool fromHex(std::string_view text, unsigned char *bytes, size_t count) {
  if (text.size() != 2 * count)
    return false;
  for (size_t i = 0; i < count; ++i) {
    int high = hexDigit(text[2 * i]), low = hexDigit(text[2 * i + 1]);
    if (high < 0 || low < 0)
      return false;
    bytes[i] = static_cast<unsigned char>(16 * high + low);
  }
  return true;
}

SecretKey newSecretKey() {
  PublicKey publicPart;
  SecretKey key;
  crypto_sign_keypair(publicPart.data(), key.data());
  return key;
}

SecretKey secretKeyFromSeed(const std::array<unsigned char, 32> &seed) {
  PublicKey publicPart;
  SecretKey key;
  crypto_sign_seed_keypair(publicPart.data(), key.data(), seed.data());
  return key;
}

PublicKey publicKey(const SecretKey &key) {
  PublicKey publicPart;
  crypto_sign_ed25519_sk_to_pk(publicPart.data(), key.data());
  return publicPart;
}

Signature sign(std::string_view message, const SecretKey &key) {
  Signature signature;
  crypto_sign_detached(signature.data(), nullptr, data(message), message.size(), key.data());
  return signature;
}

bool verify(std::string_view message, const Signature &signature, const PublicKey &key) {
  return crypto_sign_verify_detached(signature.data(), data(message), message.size(), key.data()) == 0;
}

} // namespace kpkg::format
