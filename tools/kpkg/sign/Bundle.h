// Writes and checks detached signatures in the form of OpenSSF Model Signing: Sigstore bundles, signed with a key.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/sign/EcKey.h"
#include "tools/kpkg/sign/SignedFiles.h"
#include <vector>

namespace kpkg::command::sign {

/// Returns the bundle: a DSSE envelope around an in-toto statement of the files' digests, in a Sigstore bundle of
/// version 0.3, as `model_signing verify key` reads it. Fails if a name is not UTF-8.
Result<std::string> bundleText(const SignedFiles &files, const EcKey &key);

/// Returns what the bundle signs. Errors call it `path`: KPKG_ERROR_FORMAT if it is no such bundle, KPKG_ERROR_TRUST if
/// no signature is by one of `keys`.
Result<SignedFiles> readBundle(std::string_view text, const std::string &path, const std::vector<EcKey> &keys);

} // namespace kpkg::command::sign
