// Signs and checks with ECDSA keys in PEM files, by OpenSSL.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <kpkg/result.hpp>
#include <memory>
#include <string>
#include <string_view>

struct evp_pkey_st;

namespace kpkg::command::sign {

/// A key on the curve P-256, P-384 or P-521. Signatures are DER, over SHA-256, SHA-384 or SHA-512, as Sigstore has
/// them.
class EcKey {
public:
  /// Makes a pair of keys on P-256, and writes `name`.key and `name`.pub. Files that exist are never replaced.
  static Status writeNewPair(const std::string &name);
  /// Errors name the file, and say if it holds the other half of a pair, or a key of another type.
  static Result<EcKey> readSecret(const std::string &path);
  static Result<EcKey> readPublic(const std::string &path);

  /// Returns SHA-256 of the public key's PEM text, in hexadecimal digits: how bundles name a key.
  std::string hint() const;
  /// The key must be a secret one.
  std::string sign(std::string_view message) const;
  bool verify(std::string_view message, std::string_view signature) const;

private:
  explicit EcKey(evp_pkey_st *key);
  static Result<EcKey> checked(evp_pkey_st *key, const std::string &path);
  std::shared_ptr<evp_pkey_st> key;
};

/// Standard base64, with padding and without line breaks.
std::string toBase64(std::string_view bytes);
/// Returns false if `text` is not what toBase64 writes.
bool fromBase64(std::string_view text, std::string &bytes);

} // namespace kpkg::command::sign
