// Changed copies of packages: what they keep, and their signatures.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FORMAT_REWRITE_H
#define KPKG_FORMAT_REWRITE_H

#include "runtime/format/Reader.h"
#include "runtime/format/Writer.h"

#include <functional>

namespace kpkg::format {

/// Adds to `to` the sections of `from` that `keep` accepts, without signatures, which a changed copy does not have.
/// Their digests are checked. A package of a later minor version is refused: a copy would lose what that version adds.
Status copySections(const Reader &from, Writer &to, const std::function<bool(const Section &)> &keep);

/// The package with a signature by `key`. It keeps valid ones by other keys, whose text is the same.
Result<std::string> withSignature(const Reader &package, const SecretKey &key);

} // namespace kpkg::format
#endif
