// Implements libraries and fallbacks by op name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Registry.h"
#include "runtime/format/KeyFiles.h"
#include "runtime/format/Lock.h"
#include "runtime/package/Environment.h"
#include "runtime/package/Schema.h"

#include <algorithm>
#include <filesystem>
#include <optional>

namespace kpkg::package {

kpkg_op *OpTable::findExact(const std::string &name) const {
  for (const auto &op : ops)
    if (op->entry().name == name)
      return op.get();
  return nullptr;
}

kpkg_op *OpTable::add(const PackagedOp &op, const FallbackPolicy *policy) {
  if (kpkg_op *known = findExact(op.entry().name)) {
    known->addCandidate(op);
    return known;
  }
  ops.push_back(std::make_unique<kpkg_op>(op, policy));
  return ops.back().get();
}

kpkg_op *OpTable::add(OpEntry entry, const FallbackPolicy *policy) {
  ops.push_back(std::make_unique<kpkg_op>(std::move(entry), policy));
  return ops.back().get();
}

Result<kpkg_op *> OpTable::find(const std::string &name, const std::string &where) const {
  if (kpkg_op *found = findExact(name))
    return found;
  kpkg_op *match = nullptr;
  std::string all;
  for (const auto &op : ops) {
    const std::string &full = op->entry().name;
    all += (all.empty() ? "" : ", ") + full;
    if (full.size() <= name.size() + 2 || !full.ends_with("::" + name))
      continue;
    if (match)
      return Error{KPKG_ERROR_NOT_FOUND,
                   "'" + name + "' is ambiguous in " + where + ": " + match->entry().name + ", " + full,
                   {},
                   {},
                   {}};
    match = op.get();
  }
  if (match)
    return match;
  return Error{KPKG_ERROR_NOT_FOUND,
               where + " has no op '" + name + "' (" + (all.empty() ? "it has none" : all) + ")",
               {},
               {},
               {}};
}

/// Returns why a package with `op` conflicts with the known op of its name.
static std::string schemaConflict(const kpkg_op &known, const OpEntry &op) {
  const OpEntry &entry = known.entry();
  if (const PackagedOp *first = known.first())
    return entry.schema == op.schema ? "" : "that of '" + first->library().name() + "' is '" + entry.schema + "'";
  if (entry.schema.empty() || haveOneSchema(entry, op))
    return "";
  return "its fallback was registered with '" + entry.schema + "'";
}

Status Registry::add(std::shared_ptr<const Library> library) {
  std::lock_guard guard(lock);
  if (std::find(libraries.begin(), libraries.end(), library) != libraries.end())
    return {};
  for (const auto &op : library->ops())
    if (kpkg_op *known = ops.findExact(op->entry().name))
      if (std::string conflict = schemaConflict(*known, op->entry()); !conflict.empty())
        return Error{KPKG_ERROR_USE,
                     "'" + library->name() + "' is not added: its op " + op->entry().name + " has the schema '" +
                         op->entry().schema + "', " + conflict,
                     op->entry().name,
                     {},
                     {}};
  for (const auto &op : library->ops())
    ops.add(*op, &policy);
  libraries.push_back(std::move(library));
  return {};
}

Status Registry::addPath(const std::string &path) {
  namespace fs = std::filesystem;
  for (const std::string &part : splitList(path, ':')) {
    std::vector<std::string> files;
    std::error_code problem;
    if (fs::is_directory(part, problem)) {
      for (fs::directory_iterator entry(part, problem), end; !problem && entry != end; entry.increment(problem))
        if (entry->path().extension() == ".kpkg")
          files.push_back(entry->path().string());
      if (problem)
        return Error{KPKG_ERROR_FILE, "cannot list '" + part + "': " + problem.message(), {}, {}, {}};
      // The order of a folder is undefined, but the order of libraries matters.
      std::sort(files.begin(), files.end());
    } else {
      files.push_back(part);
    }
    for (const std::string &file : files) {
      auto library = openLibrary(format::Reader::open(file), nullptr);
      if (!library)
        return library.error();
      if (Status status = add(std::move(*library)); !status)
        return status;
    }
  }
  return {};
}

Result<kpkg_op *> Registry::findOrDeclare(const std::string &op) {
  bool isSchema = op.find('(') != op.npos;
  if (!isSchema)
    if (auto known = ops.find(op, "the registry"))
      return known;
  auto entry = readSchema(op);
  if (!entry)
    return entry.error();
  kpkg_op *known = ops.findExact(entry->name);
  if (!known)
    return ops.add(std::move(*entry), &policy);
  if (known->entry().schema.empty())
    known->declare(std::move(*entry));
  else if (!haveOneSchema(known->entry(), *entry))
    return Error{KPKG_ERROR_USE,
                 "the fallback has the schema '" + entry->schema + "', op " + entry->name + " has '" +
                     known->entry().schema + "'",
                 entry->name,
                 {},
                 {}};
  return known;
}

Status Registry::setFallback(const std::string &op, std::shared_ptr<const Fallback> fallback) {
  Result<kpkg_op *> found = nullptr;
  {
    std::lock_guard guard(lock);
    found = fallback ? findOrDeclare(op) : ops.find(op, "the registry");
  }
  if (!found)
    return found.error();
  (*found)->setFallback(std::move(fallback));
  return {};
}

Result<kpkg_op *> Registry::op(const std::string &name) const {
  std::lock_guard guard(lock);
  auto found = ops.find(name, "the registry");
  if (found && !(*found)->isPackaged() && !(*found)->hasFallback())
    return Error{KPKG_ERROR_NOT_FOUND,
                 "the registry has no op '" + name + "': no package has it, and its fallback was removed",
                 (*found)->entry().name,
                 {},
                 {}};
  return found;
}

size_t Registry::size() const {
  std::lock_guard guard(lock);
  return ops.size();
}

kpkg_op *Registry::at(size_t index) const {
  std::lock_guard guard(lock);
  return ops.at(index);
}

/// Returns the lock of KPKG_LOCK, read once; null without one.
static const Result<format::Lock> *environmentLock() {
  static const std::optional<Result<format::Lock>> lock =
      environment().lock.empty() ? std::nullopt : std::optional(format::Lock::open(environment().lock));
  return lock ? &*lock : nullptr;
}

/// Checks the environment's lock as well as the caller's.
static Status checkLocks(const format::Reader &reader, const char *own, bool &isLocked) {
  auto check = [&](const Result<format::Lock> &lock) {
    isLocked = true;
    return lock ? lock->check(reader) : Status(lock.error());
  };
  if (own)
    if (Status status = check(format::Lock::open(own)); !status)
      return status;
  const Result<format::Lock> *lock = environmentLock();
  return lock ? check(*lock) : Status();
}

Result<std::shared_ptr<Library>> openLibrary(Result<format::Reader> reader, const kpkg_open_options *options) {
  if (!reader)
    return reader.error();
  Trust trust;
  std::vector<std::string> keys;
  if (options && options->policy) {
    if (options->trust != KPKG_TRUST_DEFAULT)
      return Error{KPKG_ERROR_USE, "the options of opening have both `policy` and `trust`", {}, {}, {}};
    if (!parseTrust(options->policy, trust.level, keys))
      return Error{KPKG_ERROR_USE,
                   "unknown trust policy '" + std::string(options->policy) +
                       "'; there are any, digest and signed-by:<key>,<key>",
                   {},
                   {},
                   {}};
  } else if (options && options->trust != KPKG_TRUST_DEFAULT) {
    if (options->trust < KPKG_TRUST_ANY || options->trust > KPKG_TRUST_SIGNED)
      return Error{KPKG_ERROR_USE, "unknown trust policy " + std::to_string(options->trust), {}, {}, {}};
    trust.level = kpkg_trust(options->trust);
    for (size_t i = 0; i < options->key_count; ++i)
      keys.push_back(options->keys && options->keys[i] ? options->keys[i] : "");
  } else {
    trust.level = environment().trust;
    keys = environment().keys;
  }
  bool isLocked = false;
  if (Status status = checkLocks(*reader, options ? options->lock : nullptr, isLocked); !status)
    return status.error();
  if (isLocked && trust.level == KPKG_TRUST_ANY)
    trust.level = KPKG_TRUST_DIGEST; // a signer's name means nothing without comparing the sections
  for (const std::string &text : keys) {
    auto key = format::parsePublicKey(text);
    if (!key)
      return key.error();
    trust.keys.push_back(*key);
  }
  return Library::open(std::move(reader), std::move(trust));
}

} // namespace kpkg::package
