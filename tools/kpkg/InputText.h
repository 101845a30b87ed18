// Parses the texts of `--input`: "a=randn(512,512,bf16)", "alpha=0.5", "dim=-1", "shape=[2,3]", "flag=true", "c=none".
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <kpkg/kpkg.hpp>
#include <optional>
#include <string_view>

namespace kpkg::command {

/// Returns the dtype of a name such as `f32` or `float32`, or nothing.
std::optional<DType> parseDType(std::string_view text);

/// Creates the argument that `text` describes.
///
/// Tensors are `randn`, `rand`, `zeros`, `ones` or `arange` of extents and a dtype (f32 by default), or `tensor` of
/// numbers in brackets, `tensor([[1,2],[3,4]],i64)`. Random ones may have `seed=N`. The suffix `.T` is a transposed
/// view of the last two dimensions. Dtypes are `f32` or `float32`, and so on.
///
/// All other texts are an integer, a float, `true`, `false`, `none`, a list `[1,2]`, a dtype, or text in single quotes.
/// `seed` is used if the text has none.
Result<Named> parseInput(std::string_view text, uint64_t seed);
/// Parses several texts; the number of each is added to the seed. Returns the first error.
Result<std::vector<Named>> parseInputs(const std::vector<std::string> &texts, uint64_t seed);

} // namespace kpkg::command
