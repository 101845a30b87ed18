// Accesses elements of host tensors of any dtype as doubles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <functional>
#include <kpkg/kpkg.hpp>

namespace kpkg::command {

/// Returns whether readElement and writeElement support the dtype: whole bytes, and floats from 16 bits on.
bool isReadable(DType dtype);
double readElement(DType dtype, const void *address);
/// Writes an element, rounded to nearest even; integers are truncated.
void writeElement(DType dtype, void *address, double value);

/// Calls `visit` with the address of every element, last dimension fastest.
void forEachElement(const Tensor &tensor, const std::function<void(void *)> &visit);

/// Returns half a unit in the last place of 1.0: 2^-24 for Float32, 2^-8 for BFloat16; 0 for integers.
double unitRoundoff(DType dtype);

} // namespace kpkg::command
