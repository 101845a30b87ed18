// Reads and writes files with Ed25519 keys.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/KeyFiles.h"
#include "runtime/format/WholeFile.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace kpkg::format {

/// Precedes a secret key's digits, so that it is not mistaken for a public key.
static constexpr std::string_view secretPrefix = "kpkg-secret-key-1:";

static Error useError(std::string message) { return {KPKG_ERROR_USE, std::move(message), {}, {}, {}}; }

std::string keyText(const PublicKey &key) { return toHex(key.data(), key.size()); }

Result<PublicKey> parsePublicKey(std::string_view text) {
  PublicKey key;
  if (!fromHex(text, key.data(), key.size()))
    return useError("'" + std::string(text) + "' is no Ed25519 public key (64 lower-case hexadecimal digits)");
  return key;
}

/// Creates a file that must not exist yet. Errors name it.
static Status writeNew(const std::string &path, std::string_view text, int mode) {
  auto failure = [&] {
    return Error{errno == EEXIST ? KPKG_ERROR_USE : KPKG_ERROR_FILE,
                 "cannot write '" + path + "': " + std::strerror(errno) +
                     (errno == EEXIST ? "; keys are never replaced" : ""),
                 {},
                 {},
                 {}};
  };
  int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (descriptor < 0)
    return failure();
  // A key's text is too short for a partial write.
  bool isWritten = ::write(descriptor, text.data(), text.size()) == ssize_t(text.size()) && ::fsync(descriptor) == 0;
  Status status = isWritten ? Status{} : failure();
  ::close(descriptor);
  if (!isWritten)
    ::unlink(path.c_str());
  return status;
}

Status writeKeyFiles(const std::string &name, const SecretKey &key) {
  // In libsodium's format the first half is the seed, which determines the whole key.
  return writeKeyTexts(name, std::string(secretPrefix) + toHex(key.data(), 32) + "\n", keyText(publicKey(key)) + "\n");
}

Status writeKeyTexts(const std::string &name, std::string_view secret, std::string_view publicText) {
  std::string path = name + ".pub";
  if (Status status = writeNew(path, publicText, 0666); !status)
    return status;
  Status status = writeNew(name + ".key", secret, 0600);
  if (!status)
    ::unlink(path.c_str());
  return status;
}

/// Returns the only line of a file.
static Result<std::string> readLine(const std::string &path) {
  auto file = WholeFile::open(path);
  if (!file)
    return file.error();
  std::string_view text = file->bytes();
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r'))
    text.remove_suffix(1);
  return std::string(text);
}

Result<SecretKey> readSecretKey(const std::string &path) {
  auto line = readLine(path);
  if (!line)
    return line.error();
  std::array<unsigned char, 32> seed;
  if (!line->starts_with(secretPrefix) ||
      !fromHex(std::string_view(*line).substr(secretPrefix.size()), seed.data(), seed.size()))
    return useError("'" + path + "' is no secret key of kpkg keygen" +
                    (parsePublicKey(*line) ? ", but a public key"
                     : line->starts_with("-----BEGIN")
                         ? "; it is in PEM, and keys of keygen --ecdsa sign with --bundle alone"
                         : ""));
  return secretKeyFromSeed(seed);
}

Result<PublicKey> readPublicKey(const std::string &textOrPath) {
  if (auto key = parsePublicKey(textOrPath))
    return key;
  if (::access(textOrPath.c_str(), F_OK) != 0)
    return useError("'" + textOrPath +
                    "' is neither an Ed25519 public key (64 lower-case hexadecimal digits) nor a file with one");
  auto line = readLine(textOrPath);
  if (!line)
    return line.error();
  auto key = parsePublicKey(*line);
  if (!key)
    return useError("'" + textOrPath + "' holds " +
                    (line->starts_with(secretPrefix) ? "a secret key; name the file that ends with .pub"
                                                     : "no Ed25519 public key (64 lower-case hexadecimal digits)"));
  return key;
}

} // namespace kpkg::format
