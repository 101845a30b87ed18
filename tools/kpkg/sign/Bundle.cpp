// Writes and checks detached signatures in the form of OpenSSF Model Signing: Sigstore bundles, signed with a key.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/sign/Bundle.h"
#include "runtime/format/CanonicalJson.h"
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kpkg::command::sign {

using nlohmann::json;

// github.com/sigstore/model-transparency and the pages of Sigstore, DSSE and in-toto define these.
static const std::string bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json";
static const std::string payloadType = "application/vnd.in-toto+json";
static const std::string statementType = "https://in-toto.io/Statement/v1";
static const std::string predicateType = "https://model_signing/signature/v1.0";

/// Returns DSSE's pre-authentication encoding, which is what the key signs.
static std::string signedText(const std::string &payload) {
  return fmt::format("DSSEv1 {} {} {} {}", payloadType.size(), payloadType, payload.size(), payload);
}

static std::string hex(const format::Sha256 &digest) { return format::toHex(digest.data(), digest.size()); }

Result<std::string> bundleText(const SignedFiles &files, const EcKey &key) {
  json resources = json::array();
  std::string digests;
  for (const auto &[name, digest] : files.digests) {
    resources.push_back({{"name", name}, {"algorithm", "sha256"}, {"digest", hex(digest)}});
    digests.append(digest.begin(), digest.end());
  }
  json serialization = {{"method", "files"}, {"hash_type", "sha256"}, {"allow_symlinks", files.allowsLinks}};
  if (!files.ignored.empty())
    serialization["ignore_paths"] = files.ignored;
  json statement = {
      {"_type", statementType},
      {"subject", json::array({{{"name", files.name}, {"digest", {{"sha256", hex(format::sha256(digests))}}}}})},
      {"predicateType", predicateType},
      {"predicate", {{"serialization", std::move(serialization)}, {"resources", std::move(resources)}}},
  };
  auto payload = format::writeCanonical(statement);
  if (!payload)
    return Error{KPKG_ERROR_USE, fmt::format("'{}' cannot be signed: a name is not UTF-8", files.name), {}, {}, {}};
  json bundle = {
      {"mediaType", bundleType},
      {"verificationMaterial", {{"publicKey", {{"hint", key.hint()}}}, {"tlogEntries", json::array()}}},
      {"dsseEnvelope",
       {{"payload", toBase64(*payload)},
        {"payloadType", payloadType},
        {"signatures", json::array({{{"sig", toBase64(key.sign(signedText(*payload)))}, {"keyid", ""}}})}}},
  };
  return format::writeCanonical(bundle);
}

namespace {

/// Reads one bundle. Functions return an error's predicate, such as "has no ...", or an empty text.
class BundleReader {
public:
  std::string readEnvelope(const json &bundle, const std::vector<EcKey> &keys, bool &isUntrusted);
  std::string readStatement();
  SignedFiles files;

private:
  std::string readSerialization(const json &statement);
  std::string readResource(const json &resource, std::string &digests);
  std::string payload;
};

/// Returns the text at a pointer such as "/a/b", or null.
const std::string *textAt(const json &value, const std::string &pointer) {
  json::json_pointer where(pointer);
  return value.contains(where) ? value.at(where).get_ptr<const std::string *>() : nullptr;
}

std::string expectText(const json &value, const std::string &pointer, const std::string &wanted) {
  const std::string *text = textAt(value, pointer);
  std::string name = pointer.substr(1);
  if (!text)
    return fmt::format("has no text `{}`", name);
  return *text == wanted ? "" : fmt::format("has '{}' as `{}`, and kpkg reads '{}'", *text, name, wanted);
}

std::string BundleReader::readEnvelope(const json &bundle, const std::vector<EcKey> &keys, bool &isUntrusted) {
  if (std::string why = expectText(bundle, "/mediaType", bundleType); !why.empty())
    return why;
  if (bundle.contains("/verificationMaterial/certificate"_json_pointer) ||
      bundle.contains("/verificationMaterial/x509CertificateChain"_json_pointer))
    return "is signed with a certificate, and kpkg checks keys; use the verifier of model-signing";
  if (std::string why = expectText(bundle, "/dsseEnvelope/payloadType", payloadType); !why.empty())
    return why;
  const std::string *encoded = textAt(bundle, "/dsseEnvelope/payload");
  if (!encoded || !fromBase64(*encoded, payload))
    return "has no `dsseEnvelope/payload` in base64";
  const std::string *first = textAt(bundle, "/dsseEnvelope/signatures/0/sig");
  std::string signature;
  if (!first || !fromBase64(*first, signature) || bundle["dsseEnvelope"]["signatures"].size() != 1)
    return "has no `dsseEnvelope/signatures` with one `sig` in base64";

  isUntrusted = true;
  const std::string *hint = textAt(bundle, "/verificationMaterial/publicKey/hint");
  auto isNamed = [&](const EcKey &key) { return !hint || hint->empty() || *hint == key.hint(); };
  if (std::none_of(keys.begin(), keys.end(), isNamed))
    return "is signed by another key, whose PEM text has the SHA-256 " + *hint;
  if (std::none_of(keys.begin(), keys.end(),
                   [&](const EcKey &key) { return isNamed(key) && key.verify(signedText(payload), signature); }))
    return "has a signature that is not valid: what it signs was changed, or the key is another one";
  isUntrusted = false;
  return "";
}

std::string BundleReader::readSerialization(const json &statement) {
  const std::string place = "/predicate/serialization";
  for (const auto &[key, wanted] : {std::pair("/method", "files"), {"/hash_type", "sha256"}})
    if (std::string why = expectText(statement, place + key, wanted); !why.empty())
      return why;
  const json &all = statement.at(json::json_pointer(place));
  if (all.contains("allow_symlinks") && all["allow_symlinks"].is_boolean())
    files.allowsLinks = all["allow_symlinks"];
  if (!all.contains("ignore_paths"))
    return "";
  for (const json &path : all["ignore_paths"]) {
    const auto *text = path.get_ptr<const std::string *>();
    if (!text)
      return "has a path in `predicate/serialization/ignore_paths` that is no text";
    files.ignored.push_back(std::filesystem::path(*text).lexically_normal().generic_string());
  }
  return "";
}

std::string BundleReader::readResource(const json &resource, std::string &digests) {
  const std::string *name = textAt(resource, "/name"), *digits = textAt(resource, "/digest");
  if (!name || !digits)
    return "has an entry in `predicate/resources` without a text `name` or `digest`";
  if (std::string why = expectText(resource, "/algorithm", "sha256"); !why.empty())
    return why;
  format::Sha256 digest;
  if (!format::fromHex(*digits, digest.data(), digest.size()))
    return fmt::format("has a digest of '{}' that is not 64 lower-case hexadecimal digits", *name);
  if (!files.digests.emplace(*name, digest).second)
    return fmt::format("lists '{}' twice", *name);
  digests.append(digest.begin(), digest.end());
  return "";
}

std::string BundleReader::readStatement() {
  auto statement = format::parseJson(payload);
  if (!statement)
    return "has a payload that " + statement.error().message;
  for (const auto &[key, wanted] : {std::pair("/_type", statementType), {"/predicateType", predicateType}})
    if (std::string why = expectText(*statement, key, wanted); !why.empty())
      return why;
  const std::string *name = textAt(*statement, "/subject/0/name");
  const std::string *digest = textAt(*statement, "/subject/0/digest/sha256");
  if (!name || !digest || (*statement)["subject"].size() != 1)
    return "has no `subject` that is one name with its `sha256`";
  files.name = *name;
  if (std::string why = readSerialization(*statement); !why.empty())
    return why;
  const auto place = "/predicate/resources"_json_pointer;
  if (!statement->contains(place) || !statement->at(place).is_array() || statement->at(place).empty())
    return "has no list of files `predicate/resources`";
  std::string digests;
  for (const json &resource : statement->at(place))
    if (std::string why = readResource(resource, digests); !why.empty())
      return why;
  if (hex(format::sha256(digests)) != *digest)
    return "contradicts itself: the digest of its `subject` is not that of its `predicate/resources`";
  return "";
}

} // namespace

Result<SignedFiles> readBundle(std::string_view text, const std::string &path, const std::vector<EcKey> &keys) {
  auto refuse = [&](kpkg_status status, const std::string &why) {
    return Error{status, fmt::format("the bundle '{}' {}", path, why), {}, {}, {}};
  };
  auto bundle = format::parseJson(text);
  if (!bundle)
    return refuse(KPKG_ERROR_FORMAT, bundle.error().message);
  BundleReader reader;
  bool isUntrusted = false;
  if (std::string why = reader.readEnvelope(*bundle, keys, isUntrusted); !why.empty())
    return refuse(isUntrusted ? KPKG_ERROR_TRUST : KPKG_ERROR_FORMAT, why);
  if (std::string why = reader.readStatement(); !why.empty())
    return refuse(KPKG_ERROR_FORMAT, why);
  return std::move(reader.files);
}

} // namespace kpkg::command::sign
