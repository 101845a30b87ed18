// Caches machine code on disk by content, shared by processes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/cache/CodeCache.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace kpkg::compiler {

CodeCache CodeCache::fromEnvironment() {
  if (auto named = sys::Process::GetEnv("KPKG_CACHE_DIR"))
    return CodeCache(*named);
  SmallString<128> folder;
  if (!sys::path::cache_directory(folder))
    return CodeCache("");
  sys::path::append(folder, "kpkg");
  return CodeCache(std::string(folder));
}

std::string CodeCache::keyOf(ArrayRef<StringRef> inputs) {
  SHA256 hash;
  for (StringRef input : inputs) {
    char size[8];
    support::endian::write64le(size, input.size());
    hash.update(StringRef(size, sizeof size));
    hash.update(input);
  }
  return toHex(hash.final(), /*LowerCase=*/true);
}

static std::string pathOf(StringRef folder, StringRef key) {
  SmallString<128> path(folder);
  sys::path::append(path, "llvmcache-" + key); // the names that pruneCache knows
  return std::string(path);
}

/// Returns the digest. A file is the digest of its content, then the content.
static std::string digestOf(StringRef content) { return CodeCache::keyOf({content}); }

std::optional<std::string> CodeCache::read(StringRef key) const {
  if (folder.empty())
    return std::nullopt;
  std::string path = pathOf(folder, key);
  auto descriptor = sys::fs::openNativeFileForRead(path, sys::fs::OF_UpdateAtime); // pruning goes by the last access
  if (!descriptor) {
    consumeError(descriptor.takeError());
    return std::nullopt;
  }
  auto file = MemoryBuffer::getOpenFile(*descriptor, path, /*FileSize=*/-1, /*RequiresNullTerminator=*/false);
  sys::fs::closeFile(*descriptor);
  if (!file)
    return std::nullopt;
  StringRef bytes = (*file)->getBuffer();
  constexpr size_t DigestSize = 64;
  if (bytes.size() < DigestSize || digestOf(bytes.drop_front(DigestSize)) != bytes.take_front(DigestSize))
    return std::nullopt;
  return bytes.drop_front(DigestSize).str();
}

static CachePruningPolicy pruningPolicy() {
  CachePruningPolicy policy;
  policy.Expiration = std::chrono::hours(24 * 30);
  policy.MaxSizeBytes = uint64_t(2) << 30;
  return policy;
}

void CodeCache::write(StringRef key, StringRef content) const {
  if (folder.empty() || sys::fs::create_directories(folder))
    return;
  std::string path = pathOf(folder, key);
  auto file = sys::fs::TempFile::create(path + ".%%%%%%%%");
  if (!file) {
    consumeError(file.takeError());
    return;
  }
  raw_fd_ostream stream(file->FD, /*shouldClose=*/false);
  stream << digestOf(content) << content;
  stream.flush();
  bool failed = stream.has_error();
  stream.clear_error();
  consumeError(failed ? file->discard() : file->keep(path));
  pruneCache(folder, pruningPolicy());
}

} // namespace kpkg::compiler
