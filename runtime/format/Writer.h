// Writes a package. The same input gives the same bytes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FORMAT_WRITER_H
#define KPKG_FORMAT_WRITER_H

#include "runtime/format/Container.h"
#include "runtime/format/Digest.h"

#include <kpkg/result.hpp>
#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace kpkg::format {

class Reader;

/// Collects sections, then lays them out in the order of their addition.
class Writer {
public:
  /// Adds a section. `compression` Zstd is a hint: contents that do not shrink are stored uncompressed. If it is
  /// required, readers that do not know the kind refuse the file.
  Status add(std::string name, std::string kind, std::string contents, Compression compression = Compression::Zstd,
             bool required = true);

  /// Adds a section of another package with its stored bytes, however they were compressed.
  Status copy(const Reader &from, const Section &section);
  /// Returns whether there is a section of this name.
  bool has(std::string_view name) const;

  /// Returns the whole file. `manifest` is an object, to which `format` and `sections` are added here. With `key`, a
  /// signature section is added last.
  Result<std::string> finish(const nlohmann::json &manifest, const SecretKey *key = nullptr);

private:
  struct Pending {
    Section section;
    std::string stored;
  };
  std::vector<Pending> pending;
};

} // namespace kpkg::format
#endif
