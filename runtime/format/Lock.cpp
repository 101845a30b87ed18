// Reads and checks lock files, which allow packages by digest and by signer.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/Lock.h"
#include "runtime/format/CanonicalJson.h"
#include "runtime/format/KeyFiles.h"
#include "runtime/format/WholeFile.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace kpkg::format {

using nlohmann::json;

static std::string fileName(const std::string &path) { return path.substr(path.rfind('/') + 1); }

static std::string hex(const Sha256 &digest) { return toHex(digest.data(), digest.size()); }

/// Parses an entry. Returns an error text, or an empty string.
static std::string readEntry(const json &value, LockEntry &entry) {
  if (!value.is_object())
    return "is no object";
  for (const auto &[key, item] : value.items()) {
    if (key == "sha256") {
      const auto *text = item.get_ptr<const std::string *>();
      if (!text || !fromHex(*text, entry.digest.emplace().data(), sizeof(Sha256)))
        return "has a `sha256` that is not 64 lower-case hexadecimal digits";
    } else if (key == "signers" && item.is_array()) {
      for (const json &signer : item) {
        const auto *text = signer.get_ptr<const std::string *>();
        auto parsed = parsePublicKey(text ? *text : signer.dump());
        if (!parsed)
          return "has a wrong signer: " + parsed.error().message;
        entry.signers.push_back(*parsed);
      }
    } else {
      return "has an entry `" + key + "` that is not understood";
    }
  }
  return entry.digest || !entry.signers.empty() ? "" : "says neither `sha256` nor `signers`";
}

Result<Lock> Lock::open(const std::string &path) {
  auto file = WholeFile::open(path);
  if (!file)
    return file.error();
  return parse(file->bytes(), path);
}

Result<Lock> Lock::parse(std::string_view text, std::string path) {
  auto refuse = [&](const std::string &why) {
    return Error{KPKG_ERROR_FORMAT, "the lock '" + path + "' " + why, {}, {}, {}};
  };
  auto value = parseJson(text);
  if (!value)
    return refuse(value.error().message);
  bool isLock = value->is_object() && value->size() == 2 && value->contains("format") && value->contains("packages");
  if (!isLock || !value->at("packages").is_object())
    return refuse("is no lock: it is not {\"format\": 1, \"packages\": {...}}");
  if (value->at("format").dump() != "1")
    return refuse("is of format " + value->at("format").dump() + ", this runtime reads 1; update kpkg");
  Lock lock;
  for (const auto &[name, item] : value->at("packages").items()) {
    LockEntry entry;
    if (std::string why = readEntry(item, entry); !why.empty())
      return refuse("is refused: '" + name + "' " + why);
    lock.packages.emplace(name, std::move(entry));
  }
  lock.path = std::move(path);
  return lock;
}

Status Lock::add(const Reader &package, bool withDigest) {
  if (Status status = package.checkSections(); !status)
    return status;
  auto signers = package.signers();
  if (!signers)
    return signers.error();
  LockEntry entry;
  if (withDigest)
    entry.digest = package.fileDigest();
  for (const Signer &signer : *signers)
    if (signer.isValid)
      entry.signers.push_back(signer.key);
  std::string name = fileName(package.name());
  if (!entry.digest && entry.signers.empty())
    return Error{KPKG_ERROR_TRUST,
                 "'" + package.name() + "' has no valid signature, so that its signers say nothing of it",
                 {},
                 {},
                 {}};
  if (!packages.emplace(name, std::move(entry)).second)
    return Error{
        KPKG_ERROR_USE, "two packages are called '" + name + "'; a lock tells them by their file names", {}, {}, {}};
  return {};
}

Status Lock::check(const Reader &package) const {
  auto refuse = [&](const std::string &why) {
    return Error{
        KPKG_ERROR_TRUST, "'" + package.name() + "' is not trusted: the lock '" + path + "' " + why, {}, {}, {}};
  };
  auto found = packages.find(fileName(package.name()));
  if (found == packages.end())
    return refuse("does not have it");
  const LockEntry &entry = found->second;
  if (entry.digest && package.fileDigest() != *entry.digest)
    return refuse("has another file: SHA-256 " + hex(*entry.digest) + ", this one's is " + hex(package.fileDigest()));
  auto signers = package.signers();
  if (!signers)
    return signers.error();
  for (const PublicKey &key : entry.signers)
    if (std::none_of(signers->begin(), signers->end(),
                     [&](const Signer &signer) { return signer.isValid && signer.key == key; }))
      return refuse("asks for a signature by " + keyText(key) + ", and there is no valid one");
  return {};
}

std::string Lock::text() const {
  json all = json::object();
  for (const auto &[name, entry] : packages) {
    json &item = all[name] = json::object();
    if (entry.digest)
      item["sha256"] = hex(*entry.digest);
    for (const PublicKey &key : entry.signers)
      item["signers"].push_back(keyText(key));
  }
  return json{{"format", 1}, {"packages", std::move(all)}}.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace kpkg::format
