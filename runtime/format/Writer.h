// Writes a package; the same input gives the same bytes.
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

/// Collects sections, then lays them out in the order in which they were added.
class Writer {
public:
  /// `compression` Zstd is a wish: contents that do not shrink are stored as they are. A required section of a kind
  /// that a reader does not know makes that reader refuse the file.
  Status add(std::string name, std::string kind, std::string contents, Compression compression = Compression::Zstd,
             bool required = true);

  /// A section of another package, as it is stored there: equal bytes, whatever compressed them.
  Status copy(const Reader &from, const Section &section);
  /// Whether there is a section of this name.
  bool has(std::string_view name) const;

  /// The whole file. `manifest` is the object, in which `format` and `sections` are filled in here; with `key`, a
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
