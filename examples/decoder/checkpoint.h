// Declares checkpoints: the tensors of safetensors files, mapped into memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef DECODER_CHECKPOINT_H
#define DECODER_CHECKPOINT_H

#include <kpkg/kpkg.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace decoder {

/// A tensor in a file.
struct StoredTensor {
  kpkg::DType dtype = kpkg::DType::None;
  std::vector<int64_t> shape;
  const char *data = nullptr; ///< may lie at any address
  size_t bytes = 0;
};

/// The tensors of a folder with model.safetensors, or with several files and model.safetensors.index.json.
///
/// Nothing in the files is trusted: every offset, shape and dtype is checked before its use.
class Checkpoint {
public:
  /// Throws std::runtime_error that names the file and what is wrong with it.
  explicit Checkpoint(const std::string &folder);

  /// Throws if there is no such tensor, or if it has another shape.
  const StoredTensor &tensor(const std::string &name, const std::vector<int64_t> &shape) const;
  bool has(const std::string &name) const { return tensors.count(name) != 0; }

private:
  void readFile(const std::string &path);

  std::string folder;
  std::map<std::string, StoredTensor> tensors;
  std::vector<std::shared_ptr<const char>> files;
};

} // namespace decoder
#endif
