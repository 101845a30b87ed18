// Makes changed copies of packages, and their signatures.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FORMAT_REWRITE_H
#define KPKG_FORMAT_REWRITE_H

#include "runtime/format/Reader.h"
#include "runtime/format/Writer.h"

#include <functional>

namespace kpkg::format {

/// Adds the sections of `from` that `keep` accepts to `to`, after checking their digests. Signatures are omitted,
/// because they are not valid for a changed copy. A package of a later minor version is refused, because a copy would
/// lose its additions.
Status copySections(const Reader &from, Writer &to, const std::function<bool(const Section &)> &keep);

/// Returns the package with a signature by `key`. It keeps valid signatures by other keys, because the signed text is
/// the same.
Result<std::string> withSignature(const Reader &package, const SecretKey &key);

} // namespace kpkg::format
#endif
