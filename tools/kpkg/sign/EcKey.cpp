// Signs and checks with ECDSA keys in PEM files, by OpenSSL.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/sign/EcKey.h"
#include "runtime/format/Digest.h"
#include "runtime/format/KeyFiles.h"
#include "runtime/format/WholeFile.h"
#include <cassert>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

namespace kpkg::command::sign {

namespace {

Error useError(std::string message) { return {KPKG_ERROR_USE, std::move(message), {}, {}, {}}; }

using Memory = std::unique_ptr<BIO, decltype(&BIO_free)>;

std::string textOf(const Memory &memory) {
  char *bytes = nullptr;
  long size = BIO_get_mem_data(memory.get(), &bytes);
  return {bytes, size_t(size)};
}

std::string publicText(EVP_PKEY *key) {
  Memory memory(BIO_new(BIO_s_mem()), BIO_free);
  [[maybe_unused]] int isWritten = PEM_write_bio_PUBKEY(memory.get(), key);
  assert(isWritten && "a key that was read can be written");
  return textOf(memory);
}

/// Refuses the question for a passphrase, which OpenSSL would ask on the terminal.
int noPassphrase(char *, int, int, void *) { return -1; }

EVP_PKEY *parse(std::string_view text, bool isSecret) {
  Memory memory(BIO_new_mem_buf(text.data(), int(text.size())), BIO_free);
  return isSecret ? PEM_read_bio_PrivateKey(memory.get(), nullptr, noPassphrase, nullptr)
                  : PEM_read_bio_PUBKEY(memory.get(), nullptr, nullptr, nullptr);
}

/// Returns the hash that Sigstore takes with the key's curve; null for other keys.
const EVP_MD *hashOf(EVP_PKEY *key) {
  char name[64] = {};
  if (EVP_PKEY_get_base_id(key) != EVP_PKEY_EC || !EVP_PKEY_get_group_name(key, name, sizeof(name), nullptr))
    return nullptr;
  std::string_view curve = name;
  return curve == SN_X9_62_prime256v1 ? EVP_sha256()
         : curve == SN_secp384r1      ? EVP_sha384()
         : curve == SN_secp521r1      ? EVP_sha512()
                                      : nullptr;
}

/// A PEM file of a key is far smaller.
constexpr size_t mostBytes = 1 << 16;

Result<std::string> readText(const std::string &path) {
  auto file = format::WholeFile::open(path);
  if (!file)
    return file.error();
  return std::string(file->bytes().substr(0, mostBytes));
}

} // namespace

EcKey::EcKey(EVP_PKEY *key) : key(key, EVP_PKEY_free) {}

Result<EcKey> EcKey::checked(EVP_PKEY *parsed, const std::string &path) {
  EcKey key(parsed);
  if (!hashOf(parsed))
    return useError("'" + path +
                    "' holds a key that bundles do not have: they take ECDSA keys on P-256, P-384 and P-521");
  // Bundles name a key by its text, in which a point is uncompressed.
  EVP_PKEY_set_utf8_string_param(parsed, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT, "uncompressed");
  return key;
}

Status EcKey::writeNewPair(const std::string &name) {
  EcKey key(EVP_EC_gen(SN_X9_62_prime256v1));
  assert(key.key && "OpenSSL has P-256");
  Memory memory(BIO_new(BIO_s_mem()), BIO_free);
  [[maybe_unused]] int isWritten =
      PEM_write_bio_PrivateKey(memory.get(), key.key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  assert(isWritten && "a new key can be written");
  return format::writeKeyTexts(name, textOf(memory), publicText(key.key.get()));
}

Result<EcKey> EcKey::readSecret(const std::string &path) {
  auto text = readText(path);
  if (!text)
    return text.error();
  if (EVP_PKEY *key = parse(*text, /*isSecret=*/true))
    return checked(key, path);
  if (EVP_PKEY *key = parse(*text, /*isSecret=*/false)) {
    EVP_PKEY_free(key);
    return useError("'" + path + "' holds a public key; name the file with the secret one");
  }
  if (text->find("ENCRYPTED") != std::string::npos)
    return useError("'" + path + "' is protected by a passphrase; `openssl pkey` writes it without one");
  return useError("'" + path + "' is no secret ECDSA key in a PEM file; kpkg keygen --ecdsa makes one");
}

Result<EcKey> EcKey::readPublic(const std::string &path) {
  auto text = readText(path);
  if (!text)
    return text.error();
  if (EVP_PKEY *key = parse(*text, /*isSecret=*/false))
    return checked(key, path);
  if (text->find("PRIVATE KEY-----") != std::string::npos)
    return useError("'" + path + "' holds a secret key; name the file that ends with .pub");
  return useError("'" + path + "' is no public ECDSA key in a PEM file, which bundles are checked with");
}

std::string EcKey::hint() const {
  format::Sha256 digest = format::sha256(publicText(key.get()));
  return format::toHex(digest.data(), digest.size());
}

using Context = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

static const unsigned char *bytesOf(std::string_view text) {
  return reinterpret_cast<const unsigned char *>(text.data());
}

std::string EcKey::sign(std::string_view message) const {
  Context context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  size_t size = 0;
  [[maybe_unused]] bool isGood =
      EVP_DigestSignInit(context.get(), nullptr, hashOf(key.get()), nullptr, key.get()) == 1 &&
      EVP_DigestSign(context.get(), nullptr, &size, bytesOf(message), message.size()) == 1;
  assert(isGood && "the key is a secret ECDSA key");
  std::string signature(size, '\0');
  isGood = EVP_DigestSign(context.get(), reinterpret_cast<unsigned char *>(signature.data()), &size, bytesOf(message),
                          message.size()) == 1;
  assert(isGood && "the key is a secret ECDSA key");
  signature.resize(size);
  return signature;
}

bool EcKey::verify(std::string_view message, std::string_view signature) const {
  Context context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  return EVP_DigestVerifyInit(context.get(), nullptr, hashOf(key.get()), nullptr, key.get()) == 1 &&
         EVP_DigestVerify(context.get(), bytesOf(signature), signature.size(), bytesOf(message), message.size()) == 1;
}

std::string toBase64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  text.resize(
      size_t(EVP_EncodeBlock(reinterpret_cast<unsigned char *>(text.data()), bytesOf(bytes), int(bytes.size()))));
  return text;
}

bool fromBase64(std::string_view text, std::string &bytes) {
  bytes.assign(text.size() / 4 * 3 + 1, '\0');
  int size = EVP_DecodeBlock(reinterpret_cast<unsigned char *>(bytes.data()), bytesOf(text), int(text.size()));
  if (size < 0)
    return false;
  // OpenSSL counts bytes for padding as well, and skips white space.
  size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  bytes.resize(size_t(size) - padding);
  return toBase64(bytes) == text;
}

} // namespace kpkg::command::sign
