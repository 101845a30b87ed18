// What `--input` takes, as text: "a=randn(512,512,bf16)", "alpha=0.5", "dim=-1", "shape=[2,3]", "flag=true", "c=none".
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <kpkg/kpkg.hpp>
#include <string_view>

namespace kpkg::command {

/// Makes the argument that `text` describes.
///
/// Tensors are `randn`, `rand`, `zeros`, `ones` or `arange` of extents and a dtype (f32 when none is given), with
/// `seed=N` for the random ones and `.T` behind for a transposed view of the last two dimensions. Dtypes are `f32` or
/// `float32`, and so on. Everything else is an integer, a float, `true`, `false`, `none`, a list `[1,2]`, a dtype, or
/// text in single quotes. `seed` is used where the text gives none.
Result<Named> parseInput(std::string_view text, uint64_t seed);
/// Several, the number of each added to the seed; the first error.
Result<std::vector<Named>> parseInputs(const std::vector<std::string> &texts, uint64_t seed);

} // namespace kpkg::command
